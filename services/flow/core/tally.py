"""A flow's steps in numbers, by where their jobs stand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hekla.domain.phases import JobPhase
from services.flow.core.observed import Step


class Bucket(StrEnum):
    """The lists of a flow's status."""

    PENDING = "pending"
    RUNNING = "running"
    FAILED = "failed"
    COMPLETED = "completed"
    TERMINATED = "terminated"
    UNKNOWN = "unknown"


BUCKETS: Final[Mapping[str, Bucket]] = {
    JobPhase.PENDING: Bucket.PENDING,
    JobPhase.RUNNING: Bucket.RUNNING,
    # On their way to an end, and in no list of Volcano's.
    JobPhase.COMPLETING: Bucket.RUNNING,
    JobPhase.TERMINATING: Bucket.RUNNING,
    JobPhase.COMPLETED: Bucket.COMPLETED,
    JobPhase.TERMINATED: Bucket.TERMINATED,
    JobPhase.FAILED: Bucket.FAILED,
}
"""Every other phase is unknown: Restarting, Aborting, Aborted, and none at all."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How many steps there are, and how many have jobs that stand where."""

    steps: int
    pending: int = 0
    running: int = 0
    failed: int = 0
    completed: int = 0
    terminated: int = 0
    unknown: int = 0


def bucket(step: Step) -> Bucket | None:
    """The list that a step's job is in; none before it is made, here or elsewhere."""
    if step.job_uid is None and step.seen is None:
        return None
    if step.lost:
        return Bucket.FAILED
    return BUCKETS.get(step.phase, Bucket.UNKNOWN)


def tally(steps: Iterable[Step]) -> Tally:
    """The steps in numbers."""
    found = [bucket(step) for step in steps]
    counts = {str(one): found.count(one) for one in Bucket}
    return Tally(steps=len(found), **counts)
