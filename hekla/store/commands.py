"""Commands: what users ask of jobs. Rows are appended, and taken by the pass that obeys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import delete, insert, select, text

from hekla.domain.errors import NotFoundError
from hekla.domain.phases import JobAction
from hekla.domain.trigger import Command
from hekla.store import batch, jobs, work
from hekla.store.batch import Question
from hekla.store.database import Session
from hekla.store.schema import CommandRow, JobRow


def ask(session: Session, uid: UUID, command: Command) -> None:
    """Append a command and have the job looked at. Its ``id`` is given here.

    Raises:
        NotFoundError: the job is gone.
    """
    # The share of the row makes a removal under way wait, or this find the job gone.
    there = (
        select(JobRow.uid).where(JobRow.uid == uid).with_for_update(key_share=True, read=True)
    )
    if session.scalars(there).one_or_none() is None:
        raise NotFoundError(f"job {uid} does not exist")
    session.execute(
        insert(CommandRow).values(
            job_uid=uid,
            action=command.action,
            task=command.task,
            index=command.index,
            reason=command.reason,
            message=command.message,
        )
    )
    work.wake(session, jobs.KIND, str(uid), urgent=True)


def of_job(session: Session, uid: UUID) -> Sequence[Command]:
    """Commands that nobody has carried out, oldest first."""
    return batch.answer(session, asked(uid))


_ASKED = text(
    "select id, action, task, index, reason, message from command where job_uid = :job"
    " order by id"
)


def asked(uid: UUID) -> Question[Sequence[Command]]:
    """As :func:`of_job`, to be asked together with other things."""

    def read(rows: Sequence[Any]) -> Sequence[Command]:
        return [
            Command(row.id, JobAction(row.action), row.task, row[3], row.reason, row.message)
            for row in rows
        ]

    return Question(_ASKED, {"job": uid}, read)


def forget(session: Session, ids: Sequence[int]) -> None:
    """Remove commands in the transaction that carries them out."""
    if ids:
        session.execute(delete(CommandRow).where(CommandRow.id.in_(ids)))
