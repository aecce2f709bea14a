"""What observers see of pods, written into attempts.

Any number of observers write the same things: a row takes only what is newer than what it
has, of its own pod. Jobs whose attempts changed are woken in the same transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import text

from hekla.domain.attempt import PodSeen
from hekla.store import batch, jobs, work
from hekla.store.batch import Question
from hekla.store.database import Session
from hekla.store.objects import to_text

_SEEN = """
    select * from jsonb_to_recordset(cast(:rows as jsonb)) as s(
        attempt_uid uuid, pod_uid text, rv bigint, phase text, ready bool, terminating bool,
        disrupted bool, rejected bool, restarts int, exit_codes jsonb, reason text, node text,
        started_at timestamptz, finished_at timestamptz, cut bool, gone bool)
"""

_OBSERVE = text(f"""
    with seen as ({_SEEN}),
    locked as (
        select a.uid, a.phase, a.terminating, a.outcome, a.gone_at, a.restarts, a.pod_uid,
               a.doomed, s.pod_uid as seen_uid
          from attempt a join seen s on a.uid = s.attempt_uid
         where (a.pod_uid = s.pod_uid or (a.pod_uid is null and a.gone_at is null))
           and a.resource_version < s.rv
         order by a.uid
           for update of a
    ),
    changed as (
        update attempt a
           set pod_uid = s.pod_uid,
               phase = s.phase,
               ready = s.ready,
               terminating = s.terminating,
               restarts = s.restarts,
               exit_codes = s.exit_codes,
               reason = s.reason,
               node = s.node,
               resource_version = s.rv,
               started_at = coalesce(s.started_at, a.started_at),
               outcome = e.outcome,
               finished_at = case when e.outcome is null then a.finished_at
                   else coalesce(a.finished_at, s.finished_at, clock_timestamp()) end,
               handled = a.handled or coalesce(e.outcome in ('Succeeded', 'Removed'), false),
               gone_at = case when s.gone then coalesce(a.gone_at, clock_timestamp())
                   else a.gone_at end
          from seen s
          join locked l on l.uid = s.attempt_uid and l.seen_uid = s.pod_uid
         cross join lateral (
            select coalesce(l.outcome, case
                when s.phase = 'Succeeded' then 'Succeeded'
                when s.phase <> 'Failed' and not s.gone and not s.cut then null
                when l.doomed is not null then 'Removed'
                when s.phase = 'Failed' and s.rejected then 'Rejected'
                when s.phase = 'Failed' and not s.terminating and not s.disrupted
                     then 'Failed'
                else 'Evicted' end) as outcome) e
         where a.uid = l.uid
        returning a.uid, a.job_uid,
                  (a.phase, a.terminating, a.restarts, a.pod_uid)
                      is distinct from (l.phase, l.terminating, l.restarts, l.pod_uid)
                  or a.outcome is distinct from l.outcome
                  or (a.gone_at is null) <> (l.gone_at is null) as news
    )
    select distinct job_uid from changed where news
""")  # noqa: S608

_VERDICTS = text("""
    select s.attempt_uid, s.pod_uid, a.uid is not null as known,
           a.pod_uid is not distinct from s.pod_uid as ours, a.outcome is not null as over,
           a.gone_at is not null as gone,
           a.uid is null and exists (
               select from attempt_history h where h.uid = s.attempt_uid) as past
      from jsonb_to_recordset(cast(:rows as jsonb)) as s(attempt_uid uuid, pod_uid text)
      left join attempt a on a.uid = s.attempt_uid
""")


class Verdict(NamedTuple):
    """What becomes of pods that are there."""

    release: Sequence[PodSeen]
    """Their outcome is recorded, or nobody wants to know it: our finalizer can go."""
    late: Sequence[PodSeen]
    """They came, or stayed, after their attempt was over: they are deleted."""
    strange: Sequence[PodSeen]
    """Nobody here knows them: they are reported and left alone."""


def observe(session: Session, pods: Sequence[PodSeen]) -> Verdict:
    """Write down what was seen of pods, one row a pod, and wake their jobs."""
    newest: dict[tuple[UUID, str], PodSeen] = {}
    for pod in pods:
        key = (pod.attempt_uid, pod.pod_uid)
        known = newest.get(key)
        if known is None or pod.resource_version >= known.resource_version:
            newest[key] = pod
    rows = to_text([_row(pod) for pod in newest.values()])
    observing = Question(
        _OBSERVE, {"rows": rows}, lambda found: [str(row.job_uid) for row in found]
    )
    there = {key: pod for key, pod in newest.items() if not pod.gone}
    keys = to_text([{"attempt_uid": str(uid), "pod_uid": pod} for uid, pod in there])
    judging = Question(_VERDICTS, {"rows": keys}, lambda found: _verdict(found, there))
    batch.ask(session, observing, judging)
    work.wake(session, jobs.KIND, *sorted(observing.answer))
    return judging.answer


def _verdict(rows: Sequence[Any], pods: dict[tuple[UUID, str], PodSeen]) -> Verdict:
    release: list[PodSeen] = []
    late: list[PodSeen] = []
    strange: list[PodSeen] = []
    for row in rows:
        pod = pods[row.attempt_uid, row.pod_uid]
        if row.known and row.ours:
            if row.over and pod.finalizer:
                release.append(pod)
            if row.gone and not pod.terminating:
                late.append(pod)
        elif row.known or row.past:
            late.append(pod)
        else:
            strange.append(pod)
            if pod.terminating and pod.finalizer:  # whoever deletes it waits for us
                release.append(pod)
    return Verdict(release, late, strange)


def _row(pod: PodSeen) -> dict[str, object]:
    return {
        "attempt_uid": str(pod.attempt_uid),
        "pod_uid": pod.pod_uid,
        "rv": pod.resource_version,
        "phase": pod.phase,
        "ready": pod.ready,
        "terminating": pod.terminating,
        "disrupted": pod.disrupted,
        "rejected": pod.rejected,
        "restarts": pod.restarts,
        "exit_codes": dict(pod.exit_codes),
        "reason": pod.reason.replace("\0", ""),
        "node": pod.node,
        "started_at": pod.started_at,
        "finished_at": pod.finished_at,
        "cut": pod.cut,
        "gone": pod.gone,
    }


class Unseen(NamedTuple):
    """An attempt whose pod should be there and was not in a full list."""

    uid: UUID
    namespace: str
    pod_name: str
    pod_uid: str


def unseen(
    session: Session, listed: Sequence[str], *, before: int, after: UUID, limit: int
) -> Sequence[Unseen]:
    """Confirmed attempts that are not among the pods ``listed`` at version ``before``."""
    rows = session.execute(
        text(
            "select uid, namespace, pod_name, pod_uid from attempt"
            " where gone_at is null and pod_uid is not null and resource_version <= :before"
            " and uid > :after and not pod_uid = any(:listed) order by uid limit :limit"
        ),
        {"listed": list(listed), "before": before, "after": after, "limit": limit},
    )
    return [Unseen(*row) for row in rows]


_LOST = text("""
    with locked as (
        select uid from attempt where uid = any(:uids) order by uid for update
    )
    update attempt
       set gone_at = clock_timestamp(), handled = handled or doomed is not null,
           outcome = coalesce(outcome, case when doomed is null then 'Lost' else 'Removed' end),
           finished_at = coalesce(finished_at, :at)
     where uid in (select uid from locked) and gone_at is null
    returning job_uid
""")


def lost(session: Session, uids: Sequence[UUID], *, at: datetime) -> None:
    """Note that these pods are not there any more, though nobody saw them end."""
    rows = session.execute(_LOST, {"uids": list(uids), "at": at})
    work.wake(session, jobs.KIND, *sorted({str(row.job_uid) for row in rows}))
