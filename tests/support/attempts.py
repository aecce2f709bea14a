"""Attempts as they are counted and asked for, and what pods may show of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from hekla.domain.attempt import Slot
from hekla.store import attempts, batch, observations
from hekla.store.attempts import Counts
from hekla.store.database import Database, now
from hekla.store.jobs import StoredJob
from tests.support.store import (
    MINUTE,
)


def counts(database: Database, job: StoredJob) -> Counts:
    with database.transaction() as session:
        return attempts.counts(session, job.uid)


def states(database: Database, job: StoredJob) -> Mapping[str, Mapping[str, int]]:
    return counts(database, job).by_task


def missing(
    database: Database,
    job: StoredJob,
    pause: timedelta = MINUTE,
    limit: int = 100,
    **tasks: int,
) -> Sequence[Slot]:
    with database.transaction() as session:
        return batch.answer(
            session, attempts.missing(job.uid, list(tasks.items()), pause=pause, limit=limit)
        )


def never_was(database: Database, *uids: UUID) -> None:
    with database.transaction() as session:
        attempts.never_was(session, uids)


def lose(database: Database, *uids: UUID) -> None:
    with database.transaction() as session:
        observations.lost(session, uids, at=now(session))


PENDING: Mapping[str, Any] = {}
RUNNING = {"phase": "Running"}
SUCCEEDED = {"phase": "Succeeded"}
FAILED = {"phase": "Failed"}
EVICTED = {"phase": "Running", "gone": True}
REJECTED = {"phase": "Failed", "rejected": True}
