"""What happened to jobs, for people to read; the last 200 of each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import insert, select, text

from hekla.store.database import Session
from hekla.store.schema import JobEventRow

KEPT: Final = 200
LONGEST_MESSAGE: Final = 1024
NORMAL: Final = "Normal"
WARNING: Final = "Warning"


class Event(NamedTuple):
    """One thing that happened."""

    type: str
    reason: str
    message: str
    at: datetime | None = None


def add(session: Session, job: UUID, events: Sequence[Event]) -> None:
    """Append events; one that says what the job's last one said is left out."""
    if not events:
        return
    last = session.execute(
        select(JobEventRow.type, JobEventRow.reason, JobEventRow.message)
        .where(JobEventRow.job_uid == job)
        .order_by(JobEventRow.id.desc())
        .limit(1)
    ).one_or_none()
    fresh = []
    for event in events:
        if last is None or event[:3] != tuple(last):
            fresh.append(
                {
                    "job_uid": job,
                    "type": event.type,
                    "reason": event.reason,
                    "message": event.message.replace("\0", "")[:LONGEST_MESSAGE],
                }
            )
    if not fresh:
        return
    session.execute(insert(JobEventRow), fresh)
    session.execute(
        text(
            "delete from job_event where job_uid = :job and id <= (select id from job_event"
            " where job_uid = :job order by id desc offset :kept limit 1)"
        ),
        {"job": job, "kept": KEPT},
    )


def of_job(session: Session, job: UUID) -> Sequence[Event]:
    """A job's events, oldest first."""
    rows = session.scalars(
        select(JobEventRow).where(JobEventRow.job_uid == job).order_by(JobEventRow.id)
    )
    return [Event(row.type, row.reason, row.message, row.at) for row in rows]
