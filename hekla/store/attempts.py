"""Attempts: planned, acted on, listed. What observers see of them is in ``observations.py``.

Everything a pass reads is counted or picked by SQL, so that it costs what changed and not
what the job has. Whoever changes several attempts locks them in the order of their uids, as
observers do, or the two would wait for each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import text

from hekla.domain.attempt import Attempt, Ended, Kill, Outcome, Slot
from hekla.domain.names import pod_name
from hekla.store import batch
from hekla.store.batch import Question
from hekla.store.database import Session
from hekla.store.jobs import StoredJob
from hekla.store.objects import to_text

_COUNTS = text("""
    select task,
           case when gone_at is null and current and not superseded and doomed is null
                     and not terminating and outcome in ('Evicted', 'Rejected', 'Lost')
                then 'Stale'
                when gone_at is null and (
                     (outcome is null and (doomed is not null or terminating))
                     or not current or superseded
                     or outcome in ('Evicted', 'Rejected', 'Lost', 'Removed'))
                then 'Terminating'
                when not current or superseded then 'Over'
                when outcome in ('Succeeded', 'Failed') then outcome
                when outcome is not null then 'Over'
                when phase = 'Pending' and pod_uid is null then 'Planned'
                else phase end as state,
           count(*), count(*) filter (where gone_at is null) as present,
           coalesce(sum(restarts) filter (where outcome is null), 0) as restarts,
           max(index) as highest,
           count(*) filter (where outcome = 'Succeeded' and current and not superseded
               and (gone_at is not null or group_uid is distinct from
                    (select g.uid from pod_group g where g.job_uid = :job))) as unseen
      from attempt
     where job_uid = :job and (current or gone_at is null)
     group by 1, 2
""")


UNSETTLED: Final = frozenset({"Terminating", "Stale", "Over"})
"""States in which an index wants another attempt, or will."""


class Counts(NamedTuple):
    """How many attempts of a job are in each state."""

    by_task: Mapping[str, Mapping[str, int]]
    """Planned, Pending, Running, Succeeded, Failed, Unknown, Terminating, Stale by task."""
    present: int
    """Pods that are there, or may be."""
    restarts: Mapping[str, int]
    """How often containers of a task's live pods were started again."""
    highest: Mapping[str, int]
    """The highest index of a task among those that are settled."""
    unseen: Mapping[str, int]
    """Successes whose pods the job's present group does not count."""


def counts(session: Session, job: UUID) -> Counts:
    """Count the newest attempt of each index, and pods on their way out."""
    return batch.answer(session, counting(job))


def counting(job: UUID) -> Question[Counts]:
    """As :func:`counts`, to be asked together with other things."""
    return Question(_COUNTS, {"job": job}, _to_counts)


def _to_counts(rows: Sequence[Any]) -> Counts:
    by_task: dict[str, dict[str, int]] = defaultdict(dict)
    restarts: dict[str, int] = defaultdict(int)
    highest: dict[str, int] = {}
    unseen: dict[str, int] = defaultdict(int)
    present = 0
    for row in rows:
        by_task[row.task][row.state] = int(row[2])
        present += int(row.present)
        restarts[row.task] += int(row.restarts)
        unseen[row.task] += int(row.unseen)
        if row.state not in UNSETTLED:
            highest[row.task] = max(highest.get(row.task, -1), row.highest)
    return Counts(by_task, present, restarts, highest, unseen)


_MISSING = text("""
    select want.task, i as index,
           coalesce(had.run + case when had.superseded then 1 else 0 end, 0) as run
      from jsonb_to_recordset(cast(:tasks as jsonb)) as want(task text, replicas int, rank int)
     cross join generate_series(0, want.replicas - 1) as i
      left join attempt had
        on had.job_uid = :job and had.task = want.task and had.index = i and had.current
     where (had.uid is null or had.superseded
            or had.outcome in ('Evicted', 'Rejected', 'Lost', 'Removed'))
       and (had.outcome is distinct from 'Rejected' or had.superseded
            or had.finished_at < clock_timestamp() - cast(:pause as interval))
       and (want.task, i) not in (
            select task, index from attempt where job_uid = :job and gone_at is null)
     order by want.rank, i
     limit :limit
""")


def missing(
    job: UUID, tasks: Sequence[tuple[str, int]], *, pause: timedelta, limit: int
) -> Question[Sequence[Slot]]:
    """Indices that want a new attempt and can have it: no pod of theirs is left.

    ``tasks`` are names and replicas. An index whose pod a kubelet refused is left out for
    ``pause``.
    """
    wanted = [
        {"task": task, "replicas": replicas, "rank": rank}
        for rank, (task, replicas) in enumerate(tasks)
        if replicas > 0
    ]
    values = {"job": job, "tasks": to_text(wanted), "pause": pause, "limit": limit}
    return Question(_MISSING, values, lambda rows: [Slot(*row) for row in rows])


_RETRY_AT = text("""
    select min(finished_at) + cast(:pause as interval) from attempt
     where job_uid = :job and current and not superseded and outcome = 'Rejected'
       and finished_at >= clock_timestamp() - cast(:pause as interval)
""")


def retry_at(job: UUID, *, pause: timedelta) -> Question[datetime | None]:
    """When the first index whose pod a kubelet refused may have another attempt."""
    return Question(_RETRY_AT, {"job": job, "pause": pause}, lambda rows: rows[0][0])


_UNHANDLED = text("""
    select uid, task, index, job_version, outcome, exit_codes,
           coalesce(finished_at, gone_at, created_at), superseded
      from attempt
     where job_uid = :job and outcome is not null and not handled
     order by 7, task, index
     limit :limit
""")


def unhandled(session: Session, job: UUID, *, limit: int) -> Sequence[Ended]:
    """Attempts whose outcome policies have not seen, oldest end first."""
    return batch.answer(session, ended(job, limit=limit))


def ended(job: UUID, *, limit: int) -> Question[Sequence[Ended]]:
    """As :func:`unhandled`, to be asked together with other things."""

    def read(rows: Sequence[Any]) -> Sequence[Ended]:
        return [
            Ended(row[0], row[1], row[2], row[3], Outcome(row[4]), row[5], row[6], row[7])
            for row in rows
        ]

    return Question(_UNHANDLED, {"job": job, "limit": limit}, read)


_LOCKED: Final = (
    "with locked as (select uid from attempt where uid = any(:uids) order by uid for update)"
)
_HANDLE = text(f"""
    {_LOCKED} update attempt set handled = true where uid in (select uid from locked)
""")  # noqa: S608


def handle(session: Session, uids: Sequence[UUID]) -> None:
    """Note that policies have seen these outcomes."""
    if uids:
        batch.later(session, _HANDLE, {"uids": list(uids)})


_PAST = text("""
    with locked as (
        select a.uid from attempt a
          join jsonb_to_recordset(cast(:slots as jsonb)) as slot(task text, index int)
            on a.task = slot.task and a.index = slot.index
         where a.job_uid = :job and a.current
         order by a.uid for update of a
    )
    update attempt set current = false where uid in (select uid from locked)
""")

_INSERT = text("""
    insert into attempt (uid, job_uid, task, index, run, job_version, group_uid, namespace,
                         pod_name)
    select uid, :job, task, index, run, :version, :group, :namespace, pod_name
      from jsonb_to_recordset(cast(:slots as jsonb))
           as s(uid uuid, task text, index int, run int, pod_name text)
""")


def plan(
    session: Session, stored: StoredJob, slots: Sequence[Slot], *, version: int, group: UUID
) -> Sequence[Attempt]:
    """Write attempts down, before their pods are made.

    The transaction ends in ConflictError if an index has a live attempt: someone else planned
    it just now.
    """
    planned = [
        Attempt(
            uid=uuid4(),
            task=slot.task,
            index=slot.index,
            run=slot.run,
            job_version=version,
            group_uid=group,
            pod_name=pod_name(stored.key.name, slot.task, slot.index),
            pod_uid=None,
            doomed=None,
            outcome=None,
            terminating=False,
        )
        for slot in slots
    ]
    if not planned:
        return planned
    rows = [
        {
            "uid": str(one.uid),
            "task": one.task,
            "index": one.index,
            "run": one.run,
            "pod_name": one.pod_name,
        }
        for one in planned
    ]
    values = {
        "job": stored.uid,
        "version": version,
        "group": group,
        "namespace": stored.key.namespace,
        "slots": to_text(rows),
    }
    batch.later(session, _PAST, values)
    batch.later(session, _INSERT, values)
    return planned


_DOOM = text("""
    with locked as (
        select uid from attempt
         where job_uid = :job
           and (gone_at is null or (:supersede and current))
           and (:ended or outcome is null)
           and (doomed is null or (:supersede and not superseded))
           and (cast(:task as text) is null or task = :task)
           and (cast(:first as int) is null or index between :first and :last)
           and (cast(:outcomes as text[]) is null or outcome = any(:outcomes))
           and (cast(:beyond as jsonb) is null
                or index >= coalesce((cast(:beyond as jsonb) ->> task)::int, 0))
         order by uid for update
    )
    update attempt
       set doomed = case when gone_at is null then coalesce(doomed, :reason) else doomed end,
           superseded = superseded or (:supersede and current),
           handled = handled or (:supersede and outcome is not null)
     where uid in (select uid from locked)
""")


def doom(session: Session, job: UUID, kill: Kill) -> int:
    """Mark pods for removal; return how many attempts that touched."""
    values = {
        "job": job,
        "reason": kill.reason,
        "ended": kill.ended,
        "supersede": kill.supersede,
        "task": kill.task,
        "first": None if kill.indices is None else kill.indices.first,
        "last": None if kill.indices is None else kill.indices.last,
        "outcomes": [str(one) for one in kill.outcomes] or None,
        "beyond": None if kill.beyond is None else to_text(dict(kill.beyond)),
    }
    return int(session.execute(_DOOM, values).rowcount)  # type: ignore[attr-defined]


_ACTING: Final = (
    "select uid, task, index, run, job_version, group_uid, pod_name, pod_uid, doomed, outcome,"
    " terminating from attempt where job_uid = :job and gone_at is null"
)
_TO_CREATE = text(
    f"{_ACTING} and pod_uid is null and doomed is null and outcome is null"
    " order by created_at, task, index limit :limit"
)
_TO_DELETE = text(
    f"{_ACTING} and doomed is not null and not terminating order by task, index limit :limit"
)


def with_pods(session: Session, job: UUID) -> Sequence[UUID]:
    """Attempts of a job that have, or had, a pod."""
    return session.scalars(
        text("select uid from attempt where job_uid = :job and pod_uid is not null"),
        {"job": job},
    ).all()


def to_create(session: Session, job: UUID, *, limit: int) -> Sequence[Attempt]:
    """Attempts that are planned and whose pod nobody has seen."""
    return batch.answer(session, creating(job, limit=limit))


def creating(job: UUID, *, limit: int) -> Question[Sequence[Attempt]]:
    """As :func:`to_create`, to be asked together with other things."""
    return Question(_TO_CREATE, {"job": job, "limit": limit}, _to_attempts)


def to_delete(session: Session, job: UUID, *, limit: int) -> Sequence[Attempt]:
    """Attempts whose pod is to go and was not seen going."""
    return batch.answer(session, deleting(job, limit=limit))


def deleting(job: UUID, *, limit: int) -> Question[Sequence[Attempt]]:
    """As :func:`to_delete`, to be asked together with other things."""
    return Question(_TO_DELETE, {"job": job, "limit": limit}, _to_attempts)


def _to_attempts(rows: Sequence[Any]) -> Sequence[Attempt]:
    return [
        Attempt(
            uid=row.uid,
            task=row.task,
            index=row[2],
            run=row.run,
            job_version=row.job_version,
            group_uid=row.group_uid,
            pod_name=row.pod_name,
            pod_uid=row.pod_uid,
            doomed=row.doomed,
            outcome=None if row.outcome is None else Outcome(row.outcome),
            terminating=row.terminating,
        )
        for row in rows
    ]


class Confirmed(NamedTuple):
    """An attempt whose pod Kubernetes has."""

    uid: UUID
    pod_uid: str


_CONFIRM = text("""
    with locked as (
        select a.uid, seen.pod_uid from attempt a
          join jsonb_to_recordset(cast(:rows as jsonb)) as seen(uid uuid, pod_uid text)
            on a.uid = seen.uid
         where a.pod_uid is null and a.gone_at is null
         order by a.uid for update of a
    )
    update attempt set pod_uid = locked.pod_uid from locked where attempt.uid = locked.uid
""")


def confirm(session: Session, confirmed: Sequence[Confirmed]) -> None:
    """Note the uids of pods that were made."""
    if confirmed:
        rows = [{"uid": str(one.uid), "pod_uid": one.pod_uid} for one in confirmed]
        batch.later(session, _CONFIRM, {"rows": to_text(rows)})


_ADOPT = text("""
    update attempt a set uid = :theirs, pod_uid = :pod_uid
     where uid = :planned and pod_uid is null and gone_at is null and outcome is null
       and doomed is null
       and not exists (select from attempt b where b.uid = :theirs)
       and not exists (select from attempt_history h where h.uid = :theirs)
    returning uid
""")


def adopt(session: Session, planned: UUID, theirs: UUID, pod_uid: str) -> bool:
    """Take the pod that has the place of a planned attempt for it, if nobody knows the pod.

    A restored database does not know pods that were made since; their places are planned
    anew. Return whether it was taken: an attempt that is known has its own end.
    """
    values = {"planned": planned, "theirs": theirs, "pod_uid": pod_uid}
    return session.execute(_ADOPT, values).first() is not None


_LEAVING = text(f"""
    {_LOCKED} update attempt set terminating = true where uid in (select uid from locked)
""")  # noqa: S608


def leaving(session: Session, uids: Sequence[UUID]) -> None:
    """Note that these pods were asked to go, before anybody has seen them going."""
    if uids:
        batch.later(session, _LEAVING, {"uids": list(uids)})


_NEVER_WAS = text(f"""
    {_LOCKED}
    update attempt
       set gone_at = clock_timestamp(), outcome = coalesce(outcome, 'Removed'),
           finished_at = coalesce(finished_at, clock_timestamp()), handled = true
     where uid in (select uid from locked)
       and pod_uid is null and doomed is not null and gone_at is null
""")  # noqa: S608


def never_was(session: Session, uids: Sequence[UUID]) -> None:
    """Give up doomed attempts whose pod was never made. A pod that comes late is deleted."""
    if uids:
        batch.later(session, _NEVER_WAS, {"uids": list(uids)})
