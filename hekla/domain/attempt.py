"""Attempts: the lives of a job's pods, as they are observed and as they end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from hekla.domain.names import OUTCOME_FINALIZER


class Outcome(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    EVICTED = "Evicted"
    """Deleted by someone else, or ended while carrying a mark of it."""
    REJECTED = "Rejected"
    """The kubelet refused it before any container started."""
    LOST = "Lost"
    """It was there, and is not any more; nobody saw it end."""
    REMOVED = "Removed"
    """The controller removed it."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for a pod: an index of a task, and the run it is in."""

    task: str
    index: int
    run: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt, as much of it as acting on its pod takes."""

    uid: UUID
    task: str
    index: int
    run: int
    job_version: int
    group_uid: UUID | None
    pod_name: str
    pod_uid: str | None
    doomed: str | None
    outcome: Outcome | None
    terminating: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt whose outcome policies have not seen."""

    uid: UUID
    task: str
    index: int
    job_version: int
    outcome: Outcome
    exit_codes: Mapping[str, int]
    finished_at: datetime
    superseded: bool = False


@dataclass(frozen=True, slots=True)
class PodSeen:
    """What an observer saw of a pod."""

    namespace: str
    name: str
    pod_uid: str
    job_uid: UUID
    attempt_uid: UUID
    resource_version: int
    phase: str
    ready: bool
    terminating: bool
    disrupted: bool
    """It carries the condition ``DisruptionTarget``."""
    rejected: bool
    """The kubelet refused it."""
    restarts: int
    exit_codes: Mapping[str, int]
    """Of every container that terminated, init containers too, by name."""
    reason: str
    node: str
    started_at: datetime | None
    finished_at: datetime | None
    finalizers: tuple[str, ...]
    cut: bool
    """It is being deleted and no kubelet will say how it ended: never placed, or forced."""
    gone: bool
    """It is no longer there; the rest is its last state."""

    @property
    def finalizer(self) -> bool:
        """Whether it still carries ours."""
        return OUTCOME_FINALIZER in self.finalizers


@dataclass(frozen=True, slots=True)
class Span:
    """Indices from ``first`` to ``last``, which is one of them."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Kill:
    """Which of a job's pods the controller removes."""

    reason: str
    ended: bool = False
    """Pods that have ended too."""
    supersede: bool = False
    """The indices begin a new run."""
    task: str | None = None
    """Of this task only."""
    indices: Span | None = None
    """Of these indices only."""
    outcomes: tuple[Outcome, ...] = ()
    """Only those that ended so."""
    beyond: Mapping[str, int] | None = None
    """Only what a job of these tasks, with these replicas, has no place for."""
