"""The job's state machine: what must hold of the whole table, and each entry of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from hekla.domain.phases import FINISHED, JobAction, JobPhase
from services.controller.core.tally import Tally, tally
from services.controller.core.transitions import TRANSITIONS, PodStep
from tests.support.factories import make_job, make_observed, make_task

NOTHING = tally(make_observed(make_job(make_task(replicas=0))))

numbers = st.integers(0, 4)
tallies = st.builds(
    Tally,
    replicas=numbers,
    min_available=numbers,
    min_success=st.none() | st.integers(1, 4),
    max_retry=numbers,
    retry_count=numbers,
    pending=numbers,
    running=numbers,
    succeeded=numbers,
    failed=numbers,
    unknown=numbers,
    terminating=numbers,
    live=numbers,
    tasks_succeeded=st.booleans(),
)
ALLOWED = {
    JobPhase.PENDING: {
        "Pending",
        "Running",
        "Restarting",
        "Aborting",
        "Terminating",
        "Completing",
    },
    JobPhase.RUNNING: {
        "Running",
        "Pending",
        "Restarting",
        "Aborting",
        "Terminating",
        "Completing",
        "Completed",
        "Failed",
    },
    JobPhase.RESTARTING: {
        "Restarting",
        "Pending",
        "Failed",
        "Aborting",
        "Terminating",
        "Completing",
    },
    JobPhase.ABORTING: {"Aborting", "Aborted", "Restarting", "Terminating"},
    JobPhase.ABORTED: {"Aborted", "Restarting", "Terminating"},
    JobPhase.COMPLETING: {"Completing", "Completed"},
    JobPhase.TERMINATING: {"Terminating", "Terminated"},
    JobPhase.COMPLETED: {"Completed"},
    JobPhase.TERMINATED: {"Terminated"},
    JobPhase.FAILED: {"Failed"},
}
"""Where each phase may lead, whatever is asked and whatever the pods do."""


def test_the_table_is_total() -> None:
    assert set(TRANSITIONS) == set(JobPhase)
    for steps in TRANSITIONS.values():
        assert set(steps) == set(JobAction)


@given(phase=st.sampled_from(JobPhase), action=st.sampled_from(JobAction), numbers=tallies)
def test_phases_move_only_where_they_may(
    phase: JobPhase, action: JobAction, numbers: Tally
) -> None:
    assert TRANSITIONS[phase][action].then(numbers) in ALLOWED[phase]


@given(
    phase=st.sampled_from(sorted(FINISHED)), action=st.sampled_from(JobAction), numbers=tallies
)
def test_a_finished_job_stays_finished_and_makes_no_pod(
    phase: JobPhase, action: JobAction, numbers: Tally
) -> None:
    step = TRANSITIONS[phase][action]

    assert step.then(numbers) is phase
    assert step.pods is PodStep.STOP


@pytest.mark.parametrize("phase", [JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING])
@pytest.mark.parametrize(
    ("action", "pods", "then"),
    [
        (JobAction.ABORT_JOB, PodStep.STOP, JobPhase.ABORTING),
        (JobAction.TERMINATE_JOB, PodStep.STOP, JobPhase.TERMINATING),
        (JobAction.COMPLETE_JOB, PodStep.STOP, JobPhase.COMPLETING),
        (JobAction.RESTART_JOB, PodStep.RESTART_ALL, JobPhase.RESTARTING),
        (JobAction.RESTART_TASK, PodStep.RESTART_SOME, JobPhase.RESTARTING),
        (JobAction.RESTART_POD, PodStep.RESTART_SOME, JobPhase.RESTARTING),
        (JobAction.RESTART_PARTITION, PodStep.RESTART_SOME, JobPhase.RESTARTING),
    ],
)
def test_what_is_asked_of_a_job_under_way_is_done(
    phase: JobPhase, action: JobAction, pods: PodStep, then: JobPhase
) -> None:
    """Also while it restarts: Volcano goes on restarting there."""
    step = TRANSITIONS[phase][action]

    assert (step.pods, step.then(NOTHING)) == (pods, then)


@pytest.mark.parametrize("phase", [JobPhase.ABORTING, JobPhase.ABORTED])
@pytest.mark.parametrize(
    ("action", "then"),
    [
        (JobAction.RESUME_JOB, JobPhase.RESTARTING),
        (JobAction.TERMINATE_JOB, JobPhase.TERMINATING),
        (JobAction.ABORT_JOB, JobPhase.ABORTED),
        (JobAction.RESTART_JOB, JobPhase.ABORTED),
    ],
)
def test_a_suspended_job_resumes_or_ends(
    phase: JobPhase, action: JobAction, then: JobPhase
) -> None:
    assert TRANSITIONS[phase][action].then(NOTHING) is then


@pytest.mark.parametrize(
    ("phase", "meanwhile", "then"),
    [
        (JobPhase.ABORTING, JobPhase.ABORTING, JobPhase.ABORTED),
        (JobPhase.COMPLETING, JobPhase.COMPLETING, JobPhase.COMPLETED),
        (JobPhase.TERMINATING, JobPhase.TERMINATING, JobPhase.TERMINATED),
    ],
)
def test_a_job_ends_when_its_last_pod_has(
    phase: JobPhase, meanwhile: JobPhase, then: JobPhase
) -> None:
    step = TRANSITIONS[phase][JobAction.SYNC_JOB]

    assert step.then(replace(NOTHING, live=1)) is meanwhile
    assert step.then(NOTHING) is then


@pytest.mark.parametrize("phase", [JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING])
def test_resuming_a_job_that_was_not_suspended_changes_nothing(phase: JobPhase) -> None:
    steps = TRANSITIONS[phase]

    assert steps[JobAction.RESUME_JOB] == steps[JobAction.SYNC_JOB]
