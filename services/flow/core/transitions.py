"""What is done about a flow: one entry for each phase and action.

``TRANSITIONS`` is the specification: change behaviour there. ``docs/states.md`` is drawn from
it, and the tests walk every entry of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, StrEnum, auto
from typing import Final, NamedTuple

from hekla.domain.phases import FlowPhase
from services.flow.core.tally import Tally


class FlowAction(StrEnum):
    """Why a flow is looked at."""

    SYNC = "SyncJobFlow"
    DELETE = "Delete"
    """Its removal was asked for."""


class JobStep(Enum):
    """What is done about the jobs of its steps."""

    START = auto()
    """Makes those whose steps are due."""
    LEAVE = auto()
    """Leaves them alone; what becomes of them is shown."""
    RETAIN = auto()
    """Does as ``jobRetainPolicy`` says."""
    REMOVE = auto()
    """Removes them."""


NextPhase = Callable[[FlowPhase, Tally], FlowPhase]


class Step(NamedTuple):
    """One entry of the table."""

    jobs: JobStep
    then: NextPhase


def to(phase: FlowPhase) -> NextPhase:
    """Go there whatever the jobs do."""
    return lambda _phase, _tally: phase


def stay(phase: FlowPhase, _tally: Tally) -> FlowPhase:
    """Stay there."""
    return phase


def once_a_job_runs(phase: FlowPhase, tally: Tally) -> FlowPhase:
    """Run when a job does, or did; fail when one has."""
    if tally.failed or tally.terminated:
        return FlowPhase.FAILED
    return FlowPhase.RUNNING if tally.running or tally.completed else phase


def once_all_completed(phase: FlowPhase, tally: Tally) -> FlowPhase:
    """Succeed when every job is completed; fail when one has failed or was terminated."""
    if tally.failed or tally.terminated:
        return FlowPhase.FAILED
    return FlowPhase.SUCCEED if tally.completed == tally.steps else phase


_REMOVAL: Final = Step(JobStep.REMOVE, to(FlowPhase.TERMINATING))

TRANSITIONS: Final[Mapping[FlowPhase, Mapping[FlowAction, Step]]] = {
    FlowPhase.PENDING: {
        FlowAction.SYNC: Step(JobStep.START, once_a_job_runs),
        FlowAction.DELETE: _REMOVAL,
    },
    FlowPhase.RUNNING: {
        FlowAction.SYNC: Step(JobStep.START, once_all_completed),
        FlowAction.DELETE: _REMOVAL,
    },
    FlowPhase.SUCCEED: {
        FlowAction.SYNC: Step(JobStep.RETAIN, stay),
        FlowAction.DELETE: _REMOVAL,
    },
    FlowPhase.FAILED: {
        FlowAction.SYNC: Step(JobStep.LEAVE, stay),
        FlowAction.DELETE: _REMOVAL,
    },
    FlowPhase.TERMINATING: {
        FlowAction.SYNC: Step(JobStep.REMOVE, stay),
        FlowAction.DELETE: Step(JobStep.REMOVE, stay),
    },
}


def settled(phase: FlowPhase, action: FlowAction, tally: Tally) -> FlowPhase:
    """The phase that ``phase`` leads to, however many steps of the table that takes."""
    for _ in FlowPhase:
        after = TRANSITIONS[phase][action].then(phase, tally)
        if after is phase:
            break
        phase = after
    return phase
