"""Attempts as people list them: all of a job, or those whose pods are there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

from sqlalchemy import case, select, tuple_

from hekla.store.database import Session
from hekla.store.objects import Place
from hekla.store.schema import AttemptRow

PLANNED: Final = "Planned"
"""The phase of a pod that nobody has seen."""


def page(
    session: Session,
    job: UUID,
    *,
    task: str = "",
    outcomes: Collection[str] = (),
    after: Place | None = None,
    limit: int,
) -> Sequence[AttemptRow]:
    """A job's attempts from the oldest to the newest, of one task, with some outcomes."""
    statement = (
        select(AttemptRow)
        .where(AttemptRow.job_uid == job)
        .order_by(AttemptRow.created_at, AttemptRow.uid)
        .limit(limit)
    )
    if task:
        statement = statement.where(AttemptRow.task == task)
    if outcomes:
        statement = statement.where(AttemptRow.outcome.in_(outcomes))
    if after is not None:
        statement = statement.where(
            tuple_(AttemptRow.created_at, AttemptRow.uid) > tuple(after)
        )
    return session.scalars(statement).all()


def present(
    session: Session,
    *,
    namespace: str = "",
    job: UUID | None = None,
    task: str = "",
    phases: Collection[str] = (),
    after: tuple[str, str, UUID] | None = None,
    limit: int,
) -> Sequence[AttemptRow]:
    """Attempts whose pod is there, or may be, by namespace, name and uid.

    A pod that nobody has seen is in the phase Planned.
    """
    statement = (
        select(AttemptRow)
        .where(AttemptRow.gone_at.is_(None))
        .order_by(AttemptRow.namespace, AttemptRow.pod_name, AttemptRow.uid)
        .limit(limit)
    )
    if namespace:
        statement = statement.where(AttemptRow.namespace == namespace)
    if job is not None:
        statement = statement.where(AttemptRow.job_uid == job)
    if task:
        statement = statement.where(AttemptRow.task == task)
    if phases:
        unseen = AttemptRow.outcome.is_(None) & AttemptRow.pod_uid.is_(None)
        shown = case((unseen, PLANNED), else_=AttemptRow.phase)
        statement = statement.where(shown.in_(phases))
    if after is not None:
        place = tuple_(AttemptRow.namespace, AttemptRow.pod_name, AttemptRow.uid)
        statement = statement.where(place > after)
    return session.scalars(statement).all()
