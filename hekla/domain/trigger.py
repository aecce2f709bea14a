"""Triggers: events that a job's policies react to, once each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

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
