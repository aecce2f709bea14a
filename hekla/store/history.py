"""Jobs that were removed, with their attempts and events, kept by month of removal."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import delete, insert, select, text

from hekla.api.job import Job
from hekla.domain import timestamps
from hekla.domain.errors import NotFoundError
from hekla.domain.names import Key
from hekla.store import events, feed, jobs, pod_groups
from hekla.store.database import Session, now
from hekla.store.events import Event
from hekla.store.jobs import StoredJob
from hekla.store.objects import Place, last_state
from hekla.store.schema import (
    AttemptHistoryRow,
    CommandRow,
    JobEventRow,
    JobHistoryRow,
    JobRow,
    TriggerRow,
)

TABLES: Final = ("job_history", "attempt_history", "job_flow_history")
_SHORT_WAITS: Final = "set local lock_timeout = '500ms'"
"""Removals and reads wait behind who waits for these locks."""


def retire(session: Session, stored: StoredJob) -> None:
    """Move a job whose pods are gone, its group, attempts and events, out of the way.

    It is remembered as it is now, whatever changed since it was read.

    Raises:
        NotFoundError: it is gone.
    """
    # Locked, or a command that is being given just now would keep the row from going.
    stored = jobs.get_by_uid(session, stored.uid, to_remove=True)
    removed_at = now(session)
    group = pod_groups.of_job(session, stored.uid)
    if group is not None:
        pod_groups.remove(session, group.uid)
    version = stored.version + 1
    last = last_state(stored.job, version)
    session.execute(
        insert(JobHistoryRow).values(
            removed_at=removed_at,
            uid=stored.uid,
            namespace=stored.key.namespace,
            name=stored.key.name,
            object=last,
            events=[_event_json(event) for event in events.of_job(session, stored.uid)],
        )
    )
    session.execute(
        text(
            "with past as (delete from attempt where job_uid = :job returning *)"
            " insert into attempt_history (removed_at, uid, job_uid, created_at, row)"
            " select :at, uid, job_uid, created_at, to_jsonb(past) from past"
        ),
        {"job": stored.uid, "at": removed_at},
    )
    for table in (TriggerRow, CommandRow, JobEventRow):
        session.execute(delete(table).where(table.job_uid == stored.uid))
    session.execute(delete(JobRow).where(JobRow.uid == stored.uid))
    feed.record(session, feed.Change(jobs.KIND, str(stored.uid), version, feed.DELETED, last))


def job(session: Session, *, uid: UUID | None = None, key: Key | None = None) -> Job:
    """The removed job of that uid, or the last one of that name.

    Raises:
        NotFoundError: none is remembered.
    """
    statement = select(JobHistoryRow.object)
    if uid is not None:
        statement = statement.where(JobHistoryRow.uid == uid)
    elif key is not None:
        statement = statement.where(
            JobHistoryRow.namespace == key.namespace, JobHistoryRow.name == key.name
        )
    newest = statement.order_by(JobHistoryRow.removed_at.desc()).limit(1)
    found = session.scalars(newest).one_or_none()
    if found is None:
        raise NotFoundError(f"job {uid or key} does not exist, nor is it remembered")
    return Job.model_validate(found)


def known(session: Session, uids: Collection[UUID]) -> set[UUID]:
    """Those of ``uids`` that are of jobs that exist, or existed and are remembered."""
    wanted = list(uids)
    present = session.scalars(select(JobRow.uid).where(JobRow.uid.in_(wanted)))
    return {*present, *past(session, wanted)}


def past(session: Session, uids: Collection[UUID]) -> set[UUID]:
    """Those of ``uids`` that are of jobs that were removed and are remembered."""
    found = session.scalars(select(JobHistoryRow.uid).where(JobHistoryRow.uid.in_(list(uids))))
    return set(found)


def attempts(
    session: Session,
    job: UUID,
    *,
    task: str = "",
    outcomes: Collection[str] = (),
    after: Place | None = None,
    limit: int,
) -> Sequence[Mapping[str, Any]]:
    """A removed job's attempts from the oldest to the newest, as their rows were."""
    statement = (
        select(AttemptHistoryRow.row)
        .where(AttemptHistoryRow.job_uid == job)
        .order_by(AttemptHistoryRow.created_at, AttemptHistoryRow.uid)
        .limit(limit)
    )
    if task:
        statement = statement.where(AttemptHistoryRow.row["task"].astext == task)
    if outcomes:
        statement = statement.where(AttemptHistoryRow.row["outcome"].astext.in_(outcomes))
    if after is not None:
        statement = statement.where(
            text("(created_at, uid) > (:created_at, :uid)").bindparams(**after._asdict())
        )
    return session.scalars(statement).all()


def events_of(session: Session, job: UUID) -> Sequence[Event]:
    """A removed job's events, oldest first."""
    found = session.scalars(
        select(JobHistoryRow.events).where(JobHistoryRow.uid == job)
    ).one_or_none()
    return [
        Event(one["type"], one["reason"], one["message"], timestamps.from_text(one["at"]))
        for one in found or ()
    ]


def make_partitions(session: Session, today: datetime) -> Sequence[str]:
    """Make the partitions of this month and the next unless they are there; return their names.

    What was removed while a month had none lies in the default partition and moves to its own.

    Raises:
        UnavailableError: the tables are in use for longer than a moment; try again.
    """
    this = _month(today)
    made = []
    for table in TABLES:
        stray = session.scalars(
            text(
                "select distinct date_trunc('month', removed_at at time zone 'UTC')"  # noqa: S608
                f" from {table}_default"
            )
        )
        months = {this, _next_month(this), *(month.replace(tzinfo=UTC) for month in stray)}
        for first in sorted(months):
            name = f"{table}_{first:%Y_%m}"
            there = text("select to_regclass(:name) is not null")
            if not session.scalar(there, {"name": name}):
                _make_partition(session, table, name, first)
                made.append(name)
    return made


def _make_partition(session: Session, table: str, name: str, first: datetime) -> None:
    start, end = first.isoformat(), _next_month(first).isoformat()
    for statement in (
        _SHORT_WAITS,
        # Nothing may be removed into the default partition between the move and the end.
        f"lock table {table}_default in access exclusive mode",
        f"create table {name} (like {table} including all)",
        f"with moved as (delete from {table}_default"  # noqa: S608
        f" where removed_at >= '{start}' and removed_at < '{end}' returning *)"
        f" insert into {name} select * from moved",
        f"alter table {table} attach partition {name} for values from ('{start}') to ('{end}')",
    ):
        session.execute(text(statement.replace(":", r"\:")))


def drop_partitions(session: Session, before: datetime) -> Sequence[str]:
    """Drop the months that ended before ``before``; return the tables' names.

    Raises:
        UnavailableError: the tables are in use for longer than a moment; try again.
    """
    dropped = []
    for table in TABLES:
        children = session.scalars(
            text(
                "select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid"
                " where i.inhparent = cast(:table as regclass) order by 1"
            ),
            {"table": table},
        ).all()
        for child in children:
            year, _, month = child.removeprefix(f"{table}_").partition("_")
            if not (year.isdigit() and month.isdigit()):
                continue
            end = _next_month(datetime(int(year), int(month), 1, tzinfo=UTC))
            if end <= before:
                session.execute(text(_SHORT_WAITS))
                session.execute(text(f"drop table {child}"))
                dropped.append(child)
    return dropped


def _month(day: datetime) -> datetime:
    start = day.astimezone(UTC).replace(day=1)
    return start.replace(hour=0, minute=0, second=0, microsecond=0)


def _next_month(first: datetime) -> datetime:
    if first.month == 12:
        return first.replace(year=first.year + 1, month=1)
    return first.replace(month=first.month + 1)


def _event_json(event: Event) -> Mapping[str, Any]:
    return {
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "at": timestamps.to_micro_text(event.at) if event.at else None,
    }
