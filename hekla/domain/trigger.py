"""Triggers: events that a job's policies react to, once each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from hekla.domain.attempt import Outcome
from hekla.domain.phases import JobAction, JobEvent


class TriggerState(StrEnum):
    """How far the reaction to an event has come."""

    NEW = "new"
    ARMED = "armed"
    FIRED = "fired"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Trigger:
    """One event of one scope, in one version of a job."""

    version: int
    scope: str
    """The attempt's uid for events of pods, else the task's name, or empty for the job."""
    event: JobEvent
    state: TriggerState
    action: JobAction
    due_at: datetime | None = None
    task: str = ""
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """What someone asked of a job."""

    id: int
    action: JobAction
    task: str = ""
    index: int | None = None
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Watched:
    """A trigger, and how the attempt it is about fares now."""

    trigger: Trigger
    attempt_phase: str | None
    attempt_outcome: Outcome | None
    attempt_doomed: bool
    replaced: bool
    """A newer attempt of the same index is running or has succeeded."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """An attempt that is pending and for which no timer was set."""

    uid: UUID
    task: str
    index: int
    seconds: float
    """For how long it has been pending."""
