"""What the controller does to a job: one entry for each phase and action.

``TRANSITIONS`` is the specification: change behaviour there. ``docs/states.md`` is drawn from
it, and the tests walk every entry of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Final, NamedTuple

from hekla.domain.phases import JobAction, JobPhase
from services.controller.core.tally import Tally


class PodStep(Enum):
    """What is done to the job's pods."""

    SYNC = auto()
    """Make those that are missing, remove those in excess."""
    STOP = auto()
    """Remove those that have not ended; nothing new is made."""
    RESTART_ALL = auto()
    """Remove all; every index begins a new run."""
    RESTART_SOME = auto()
    """Remove those that were named; their indices begin a new run."""


NextPhase = Callable[[Tally], JobPhase]


class Step(NamedTuple):
    """One entry of the table."""

    pods: PodStep
    then: NextPhase
    resumes: bool = False
    """The job begins again where it stopped: what succeeded stays so."""


def to(phase: JobPhase) -> NextPhase:
    """Go there whatever the pods do."""
    return lambda _: phase


def running_once_started(tally: Tally) -> JobPhase:
    """Run when ``minAvailable`` pods have started."""
    return JobPhase.RUNNING if tally.started >= tally.min_available else JobPhase.PENDING


def ended_or_back_to_pending(tally: Tally) -> JobPhase:
    """Complete or fail by what succeeded; wait again when too few are left."""
    if tally.replicas == 0:
        return JobPhase.RUNNING
    if tally.min_success is not None and tally.succeeded >= tally.min_success:
        return JobPhase.COMPLETED
    if tally.succeeded + tally.failed == tally.replicas:
        return JobPhase.COMPLETED if tally.enough_succeeded else JobPhase.FAILED
    if tally.waiting > tally.replicas - tally.min_available:
        return JobPhase.PENDING
    return JobPhase.RUNNING


def pending_unless_out_of_retries(tally: Tally) -> JobPhase:
    """Start over when enough old pods are gone; fail when the retries are used up."""
    if tally.retry_count >= tally.max_retry:
        return JobPhase.FAILED
    if tally.replicas - tally.terminating >= tally.min_available:
        return JobPhase.PENDING
    return JobPhase.RESTARTING


def once_none_is_live(then: JobPhase, meanwhile: JobPhase) -> NextPhase:
    """Go to ``then`` when every pod has ended, and stay in ``meanwhile`` until it has."""
    return lambda tally: meanwhile if tally.live else then


_ABORTED = once_none_is_live(JobPhase.ABORTED, JobPhase.ABORTING)
_COMPLETED = once_none_is_live(JobPhase.COMPLETED, JobPhase.COMPLETING)
_TERMINATED = once_none_is_live(JobPhase.TERMINATED, JobPhase.TERMINATING)


def _always(step: Step) -> Mapping[JobAction, Step]:
    """A phase in which every action comes to the same."""
    return dict.fromkeys(JobAction, step)


TRANSITIONS: Final[Mapping[JobPhase, Mapping[JobAction, Step]]] = {
    JobPhase.PENDING: {
        JobAction.SYNC_JOB: Step(PodStep.SYNC, running_once_started),
        JobAction.RESUME_JOB: Step(PodStep.SYNC, running_once_started),
        JobAction.RESTART_JOB: Step(PodStep.RESTART_ALL, to(JobPhase.RESTARTING)),
        JobAction.RESTART_TASK: Step(PodStep.RESTART_SOME, to(JobPhase.RESTARTING)),
        JobAction.RESTART_POD: Step(PodStep.RESTART_SOME, to(JobPhase.RESTARTING)),
        JobAction.RESTART_PARTITION: Step(PodStep.RESTART_SOME, to(JobPhase.RESTARTING)),
        JobAction.ABORT_JOB: Step(PodStep.STOP, to(JobPhase.ABORTING)),
        JobAction.TERMINATE_JOB: Step(PodStep.STOP, to(JobPhase.TERMINATING)),
        JobAction.COMPLETE_JOB: Step(PodStep.STOP, to(JobPhase.COMPLETING)),
    },
    JobPhase.RUNNING: {
        JobAction.SYNC_JOB: Step(PodStep.SYNC, ended_or_back_to_pending),
        JobAction.RESUME_JOB: Step(PodStep.SYNC, ended_or_back_to_pending),
        JobAction.RESTART_JOB: Step(PodStep.RESTART_ALL, to(JobPhase.RESTARTING)),
        JobAction.RESTART_TASK: Step(PodStep.RESTART_SOME, to(JobPhase.RESTARTING)),
        JobAction.RESTART_POD: Step(PodStep.RESTART_SOME, to(JobPhase.RESTARTING)),
        JobAction.RESTART_PARTITION: Step(PodStep.RESTART_SOME, to(JobPhase.RESTARTING)),
        JobAction.ABORT_JOB: Step(PodStep.STOP, to(JobPhase.ABORTING)),
        JobAction.TERMINATE_JOB: Step(PodStep.STOP, to(JobPhase.TERMINATING)),
        JobAction.COMPLETE_JOB: Step(PodStep.STOP, to(JobPhase.COMPLETING)),
    },
    JobPhase.RESTARTING: {
        JobAction.SYNC_JOB: Step(PodStep.SYNC, pending_unless_out_of_retries),
        JobAction.RESUME_JOB: Step(PodStep.SYNC, pending_unless_out_of_retries),
        JobAction.RESTART_JOB: Step(PodStep.RESTART_ALL, to(JobPhase.RESTARTING)),
        JobAction.RESTART_TASK: Step(PodStep.RESTART_SOME, to(JobPhase.RESTARTING)),
        JobAction.RESTART_POD: Step(PodStep.RESTART_SOME, to(JobPhase.RESTARTING)),
        JobAction.RESTART_PARTITION: Step(PodStep.RESTART_SOME, to(JobPhase.RESTARTING)),
        # A restart under way does not hide what the user wants more.
        JobAction.ABORT_JOB: Step(PodStep.STOP, to(JobPhase.ABORTING)),
        JobAction.TERMINATE_JOB: Step(PodStep.STOP, to(JobPhase.TERMINATING)),
        JobAction.COMPLETE_JOB: Step(PodStep.STOP, to(JobPhase.COMPLETING)),
    },
    JobPhase.ABORTING: {
        JobAction.SYNC_JOB: Step(PodStep.STOP, _ABORTED),
        JobAction.RESUME_JOB: Step(PodStep.STOP, to(JobPhase.RESTARTING), resumes=True),
        JobAction.RESTART_JOB: Step(PodStep.STOP, _ABORTED),
        JobAction.RESTART_TASK: Step(PodStep.STOP, _ABORTED),
        JobAction.RESTART_POD: Step(PodStep.STOP, _ABORTED),
        JobAction.RESTART_PARTITION: Step(PodStep.STOP, _ABORTED),
        JobAction.ABORT_JOB: Step(PodStep.STOP, _ABORTED),
        JobAction.TERMINATE_JOB: Step(PodStep.STOP, to(JobPhase.TERMINATING)),
        JobAction.COMPLETE_JOB: Step(PodStep.STOP, _ABORTED),
    },
    JobPhase.ABORTED: {
        JobAction.SYNC_JOB: Step(PodStep.STOP, to(JobPhase.ABORTED)),
        JobAction.RESUME_JOB: Step(PodStep.STOP, to(JobPhase.RESTARTING), resumes=True),
        JobAction.RESTART_JOB: Step(PodStep.STOP, to(JobPhase.ABORTED)),
        JobAction.RESTART_TASK: Step(PodStep.STOP, to(JobPhase.ABORTED)),
        JobAction.RESTART_POD: Step(PodStep.STOP, to(JobPhase.ABORTED)),
        JobAction.RESTART_PARTITION: Step(PodStep.STOP, to(JobPhase.ABORTED)),
        JobAction.ABORT_JOB: Step(PodStep.STOP, to(JobPhase.ABORTED)),
        JobAction.TERMINATE_JOB: Step(PodStep.STOP, to(JobPhase.TERMINATING)),
        JobAction.COMPLETE_JOB: Step(PodStep.STOP, to(JobPhase.ABORTED)),
    },
    JobPhase.COMPLETING: _always(Step(PodStep.STOP, _COMPLETED)),
    JobPhase.TERMINATING: _always(Step(PodStep.STOP, _TERMINATED)),
    JobPhase.COMPLETED: _always(Step(PodStep.STOP, to(JobPhase.COMPLETED))),
    JobPhase.TERMINATED: _always(Step(PodStep.STOP, to(JobPhase.TERMINATED))),
    JobPhase.FAILED: _always(Step(PodStep.STOP, to(JobPhase.FAILED))),
}
