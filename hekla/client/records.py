"""What calls answer besides the objects themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Generic, TypeVar

from hekla.domain import timestamps
from hekla.v1 import job_pb2, job_service_pb2

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Admitted(Generic[T_co]):
    """An object as it was stored, and what its author should know."""

    object: T_co
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Listing(Generic[T_co]):
    """All objects that were asked for, and where to watch from so that nothing is missed."""

    items: Sequence[T_co]
    cursor: str


class ChangeType(StrEnum):
    """What happened to an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    """Nothing happened; the cursor is newer."""


@dataclass(frozen=True, slots=True)
class Change(Generic[T_co]):
    """One message of a watch. The object of a deletion is its last state."""

    cursor: str
    type: ChangeType
    object: T_co | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One life of one pod; remembered after the pod is gone."""

    uid: str
    task: str
    index: int
    run: int
    job_version: int
    pod_name: str
    pod_uid: str
    phase: str
    ready: bool
    node: str
    reason: str
    outcome: str
    """Empty while it lives."""
    exit_codes: Mapping[str, int] = field(default_factory=dict)
    created_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @classmethod
    def of(cls, message: job_pb2.Attempt) -> Attempt:
        """From its message."""
        return cls(
            uid=message.uid,
            task=message.task,
            index=message.index,
            run=message.run,
            job_version=message.job_version,
            pod_name=message.pod_name,
            pod_uid=message.pod_uid,
            phase=message.phase,
            ready=message.ready,
            node=message.node,
            reason=message.reason,
            outcome=message.outcome,
            exit_codes=dict(message.exit_codes),
            created_at=_instant(message.created_at),
            started_at=_instant(message.started_at),
            finished_at=_instant(message.finished_at),
        )


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod of a job as the controller last saw it."""

    namespace: str
    job: str
    attempt: Attempt

    @classmethod
    def of(cls, message: job_service_pb2.PodView) -> PodView:
        """From its message."""
        return cls(message.namespace, message.job, Attempt.of(message.attempt))


@dataclass(frozen=True, slots=True)
class JobEvent:
    """Something that happened to a job."""

    type: str
    reason: str
    message: str
    at: datetime | None

    @classmethod
    def of(cls, message: job_pb2.JobEvent) -> JobEvent:
        """From its message."""
        return cls(message.type, message.reason, message.message, _instant(message.at))


def _instant(text: str) -> datetime | None:
    return timestamps.from_text(text) if text else None
