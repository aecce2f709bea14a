"""What events of tasks and groups, and timers, make of a job: one pass, decided."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from hekla.domain.attempt import Outcome, Slot, Span
from hekla.domain.phases import JobAction, JobEvent, JobPhase, PodGroupPhase
from hekla.domain.trigger import Trigger, TriggerState, Waiting, Watched
from services.controller.core.observed import TaskCounts
from services.controller.core.plan import plan
from tests.support.factories import (
    NOW,
    make_ended,
    make_job,
    make_observed,
    make_task,
    policies,
)

RUNNING, PENDING, RESTARTING = JobPhase.RUNNING, JobPhase.PENDING, JobPhase.RESTARTING
SECOND = timedelta(seconds=1)


def test_a_task_that_is_complete_completes_the_job() -> None:
    """The manifest of the tour: the policy is the task's."""
    job = make_job(
        make_task("nginx", policies=policies(("TaskCompleted", "CompleteJob"))),
        make_task("other"),
        phase=RUNNING,
    )
    counts = {"nginx": TaskCounts(succeeded=1), "other": TaskCounts(running=1)}

    decided = plan(make_observed(job, counts=counts), NOW)

    assert decided.phase is JobPhase.COMPLETING
    [fired] = decided.triggers
    assert (fired.scope, fired.event, fired.state) == (
        "nginx",
        JobEvent.TASK_COMPLETED,
        TriggerState.FIRED,
    )


def test_a_task_is_complete_once() -> None:
    job = make_job(
        make_task(policies=policies(("TaskCompleted", "AbortJob"))),
        make_task("o"),
        phase=RUNNING,
    )
    fired = Trigger(
        0, "t", JobEvent.TASK_COMPLETED, TriggerState.FIRED, JobAction.ABORT_JOB, task="t"
    )
    observed = make_observed(
        job,
        counts={"t": TaskCounts(succeeded=1), "o": TaskCounts(running=1)},
        triggers=[Watched(fired, None, None, attempt_doomed=False, replaced=False)],
    )

    assert plan(observed, NOW).phase is RUNNING


def test_an_empty_task_is_never_complete() -> None:
    job = make_job(
        make_task(replicas=0, policies=policies(("TaskCompleted", "CompleteJob"))),
        make_task("o"),
        phase=RUNNING,
    )

    assert plan(make_observed(job, counts={"o": TaskCounts(running=1)}), NOW).phase is RUNNING


def test_a_task_fails_by_its_containers_restarts() -> None:
    job = make_job(
        make_task(maxRetry=2, policies=policies(("TaskFailed", "TerminateJob"))), phase=RUNNING
    )
    counts = {"t": TaskCounts(running=1)}

    once = make_observed(job, counts=counts, restarts={"t": 1})
    twice = make_observed(job, counts=counts, restarts={"t": 2})

    assert plan(once, NOW).phase is RUNNING
    assert plan(twice, NOW).phase is JobPhase.TERMINATING


def test_a_policy_with_a_timeout_arms_a_timer_and_the_sync_goes_on() -> None:
    slot = Slot("t", 0, 0)
    job = make_job(phase=RUNNING, policies=policies(("PodEvicted", "RestartJob"), timeout="1m"))
    observed = make_observed(job, ended=[make_ended(Outcome.EVICTED)], missing=[slot])

    decided = plan(observed, NOW)

    [armed] = decided.triggers
    assert (armed.state, armed.due_at) == (TriggerState.ARMED, NOW + timedelta(minutes=1))
    assert decided.due_at == armed.due_at
    assert list(decided.slots) == [slot]


def timer(event: JobEvent, **fields: Any) -> Watched:
    armed = Trigger(
        version=0,
        scope=str(UUID(int=100)),
        event=event,
        state=TriggerState.ARMED,
        action=JobAction.RESTART_JOB,
        due_at=NOW,
        task="t",
        index=0,
    )
    return Watched(
        armed,
        attempt_phase=fields.get("phase", "Pending"),
        attempt_outcome=fields.get("outcome"),
        attempt_doomed=False,
        replaced=fields.get("replaced", False),
    )


@pytest.mark.parametrize(
    ("watched", "phase", "state"),
    [
        pytest.param(
            timer(JobEvent.POD_EVICTED, outcome=Outcome.EVICTED),
            RESTARTING,
            TriggerState.FIRED,
            id="still without a replacement",
        ),
        pytest.param(
            timer(JobEvent.POD_EVICTED, outcome=Outcome.EVICTED, replaced=True),
            RUNNING,
            TriggerState.CANCELLED,
            id="the replacement runs",
        ),
        pytest.param(
            timer(JobEvent.POD_PENDING), RESTARTING, TriggerState.FIRED, id="still pending"
        ),
        pytest.param(
            timer(JobEvent.POD_PENDING, phase="Running"),
            RUNNING,
            TriggerState.CANCELLED,
            id="it runs by now",
        ),
    ],
)
def test_a_timer_that_is_due_is_asked_again_whether_it_still_holds(
    watched: Watched, phase: JobPhase, state: TriggerState
) -> None:
    job = make_job(make_task(), phase=RUNNING)
    observed = make_observed(job, counts={"t": TaskCounts(running=1)}, triggers=[watched])

    decided = plan(observed, NOW)

    assert decided.phase is phase
    assert [trigger.state for trigger in decided.triggers] == [state]


def test_pod_pending_counts_from_when_the_pod_was_made() -> None:
    job = make_job(policies=policies(("PodPending", "RestartPod"), timeout="10s"))
    waiting = [Waiting(UUID(int=100), "t", 0, seconds=4.0)]

    soon = plan(make_observed(job, waiting=waiting, counts={"t": TaskCounts(pending=1)}), NOW)
    due = plan(
        make_observed(
            job,
            waiting=[Waiting(UUID(int=100), "t", 0, seconds=11.0)],
            counts={"t": TaskCounts(pending=1)},
        ),
        NOW,
    )

    assert soon.due_at == NOW + timedelta(seconds=6)
    assert (due.phase, due.kills[0].indices) == (RESTARTING, Span(0, 0))


def test_pod_pending_without_a_timeout_does_nothing() -> None:
    job = make_job(policies=policies(("PodPending", "AbortJob")))
    waiting = [Waiting(UUID(int=100), "t", 0, seconds=999.0)]

    assert plan(make_observed(job, waiting=waiting), NOW).phase is PENDING


def test_an_unknown_group_is_an_event_of_the_job_also_after_a_restart() -> None:
    job = make_job(
        phase=RUNNING, status={"version": 3}, policies=policies(("Unknown", "RestartJob"))
    )
    observed = make_observed(
        job, group=PodGroupPhase.UNKNOWN, counts={"t": TaskCounts(running=1)}
    )

    assert plan(observed, NOW).phase is RESTARTING
