"""Triggers: what a job's policies have reacted to, so that each event counts once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import text

from hekla.domain.attempt import Outcome, Span
from hekla.domain.phases import JobAction, JobEvent
from hekla.domain.trigger import Trigger, TriggerState, Waiting, Watched
from hekla.store.batch import Question
from hekla.store.database import Session
from hekla.store.objects import to_text

_OF_JOB = text("""
    select t.version, t.scope, t.event, t.state, t.action, t.due_at, t.task, t.index,
           a.phase, a.outcome, a.doomed is not null as doomed,
           exists (select from attempt n
                    where n.job_uid = t.job_uid and n.task = t.task and n.index = t.index
                      and n.current and n.uid::text <> t.scope
                      and (n.phase = 'Running' or n.outcome = 'Succeeded')) as replaced
      from trigger t
      left join attempt a
        on a.uid = case when t.index is not null then cast(t.scope as uuid) end
     where t.job_uid = :job and t.version = :version
       and (t.state = 'armed' or t.index is null)
     order by t.due_at nulls last, t.scope, t.event
     limit :limit
""")


def of_job(job: UUID, *, version: int, limit: int) -> Question[Sequence[Watched]]:
    """The triggers of a version that are armed, and all of its tasks and of the job."""
    values = {"job": job, "version": version, "limit": limit}
    return Question(_OF_JOB, values, lambda rows: [_to_watched(row) for row in rows])


def _to_watched(row: Any) -> Watched:
    return Watched(
        trigger=Trigger(
            version=row.version,
            scope=row.scope,
            event=JobEvent(row.event),
            state=TriggerState(row.state),
            action=JobAction(row.action),
            due_at=row.due_at,
            task=row.task,
            index=row[7],
        ),
        attempt_phase=row.phase,
        attempt_outcome=None if row.outcome is None else Outcome(row.outcome),
        attempt_doomed=bool(row.doomed),
        replaced=row.replaced,
    )


_PUT = text("""
    insert into trigger (job_uid, version, scope, event, state, action, due_at, task, index)
    select :job, version, scope, event, state, action, due_at, task, index
      from jsonb_to_recordset(cast(:rows as jsonb))
           as t(version int, scope text, event text, state text, action text,
                due_at timestamptz, task text, index int)
    on conflict (job_uid, version, scope, event) do update
       set state = excluded.state, action = excluded.action, due_at = excluded.due_at
     where trigger.state in ('new', 'armed')
""")


def put(session: Session, job: UUID, triggers: Sequence[Trigger]) -> None:
    """Write triggers; one that has fired or was cancelled stays so."""
    if not triggers:
        return
    rows = [
        {
            "version": trigger.version,
            "scope": trigger.scope,
            "event": trigger.event,
            "state": trigger.state,
            "action": trigger.action,
            "due_at": trigger.due_at,
            "task": trigger.task,
            "index": trigger.index,
        }
        for trigger in triggers
    ]
    session.execute(_PUT, {"job": job, "rows": to_text(rows)})


def reset(session: Session, job: UUID, task: str, indices: Span | None) -> None:
    """Forget the events of a task, and of its pods at ``indices`` (all, if None).

    They begin a new run, so that the events may happen again.
    """
    session.execute(
        text(
            "delete from trigger where job_uid = :job and task = :task and (index is null"
            " or cast(:first as int) is null or index between :first and :last)"
        ),
        {
            "job": job,
            "task": task,
            "first": None if indices is None else indices.first,
            "last": None if indices is None else indices.last,
        },
    )


def carry(session: Session, job: UUID, *, before: int, version: int) -> None:
    """Keep what tasks have fired over a resume: what succeeded stays so, and is no news."""
    session.execute(
        text(
            "update trigger set version = :version where job_uid = :job"
            " and version = :before and state = 'fired' and index is null and task <> ''"
        ),
        {"job": job, "before": before, "version": version},
    )


def cancel_armed(session: Session, job: UUID) -> None:
    """Stop every timer of a job."""
    session.execute(
        text(
            "update trigger set state = 'cancelled', due_at = null"
            " where job_uid = :job and state = 'armed'"
        ),
        {"job": job},
    )


_PENDING_UNARMED = text("""
    select uid, task, index, extract(epoch from clock_timestamp() - created_at)::float8
      from attempt a
     where job_uid = :job and current and outcome is null and doomed is null
       and phase = 'Pending' and task = any(cast(:tasks as text[]))
       and not exists (
           select from trigger t where t.job_uid = a.job_uid and t.version = :version
              and t.scope = a.uid::text and t.event = 'PodPending')
     order by created_at, uid limit :limit
""")


def pending_unarmed(
    job: UUID, *, version: int, tasks: Sequence[str], limit: int
) -> Question[Sequence[Waiting]]:
    """Pending attempts of ``tasks`` without a PodPending trigger of ``version``."""
    values = {"job": job, "version": version, "tasks": list(tasks), "limit": limit}
    return Question(_PENDING_UNARMED, values, lambda rows: [Waiting(*row) for row in rows])
