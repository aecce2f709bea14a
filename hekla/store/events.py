"""What happened to jobs, for people to read; the last 200 of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import select, text

from hekla.store import batch
from hekla.store.database import Session
from hekla.store.objects import to_text
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


# By ``id + 0``: ordered by ``id`` alone, a plan made while there were few events goes through
# all of them by their ids, where those of the job are found by its uid.
_ADD = text("""
    insert into job_event (job_uid, type, reason, message)
    select :job, new.type, new.reason, new.message
      from rows from (jsonb_to_recordset(cast(:rows as jsonb))
               as (type text, reason text, message text))
           with ordinality as new(type, reason, message, place)
     where not exists (
           select from (select type, reason, message from job_event
                         where job_uid = :job order by id + 0 desc limit 1) as last
            where (last.type, last.reason, last.message)
                = (new.type, new.reason, new.message))
     order by place
""")

_FORGET = text("""
    delete from job_event
     where job_uid = :job
       and id <= (select id from job_event where job_uid = :job
                   order by id + 0 desc offset :kept limit 1)
""")


def add(session: Session, job: UUID, events: Sequence[Event]) -> None:
    """Append events; one that says what the job's last one said is left out."""
    if not events:
        return
    rows = [
        {
            "type": event.type,
            "reason": event.reason,
            "message": event.message.replace("\0", "")[:LONGEST_MESSAGE],
        }
        for event in events
    ]
    batch.later(session, _ADD, {"job": job, "rows": to_text(rows)})
    batch.later(session, _FORGET, {"job": job, "kept": KEPT})


_SINCE = text("""
    select job_uid, id, type, reason, message, at
      from job_event
     where job_uid = any(:jobs) and at > clock_timestamp() - cast(:within as interval)
     order by id + 0
""")


def since(
    session: Session, after: Mapping[UUID, int], *, within: timedelta
) -> Sequence[tuple[UUID, int, Event]]:
    """Events of some jobs with their numbers, oldest first.

    For each job those beyond a number, 0 for all; none that are older than ``within``.
    """
    asking = batch.rows_of(_SINCE, {"jobs": list(after), "within": within})
    return [
        (row.job_uid, row.id, Event(row.type, row.reason, row.message, row.at))
        for row in batch.answer(session, asking)
        if row.id > after[row.job_uid]
    ]


def of_job(session: Session, job: UUID) -> Sequence[Event]:
    """A job's events, oldest first."""
    rows = session.scalars(
        select(JobEventRow).where(JobEventRow.job_uid == job).order_by(JobEventRow.id)
    )
    return [Event(row.type, row.reason, row.message, row.at) for row in rows]
