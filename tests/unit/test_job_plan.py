"""One pass, decided: cases people reported, and the worked examples of the job API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from hekla.domain.attempt import Outcome, Slot, Span
from hekla.domain.phases import JobAction, JobEvent, JobPhase, PodGroupPhase
from hekla.domain.trigger import Command, Trigger, TriggerState, Waiting, Watched
from services.controller.core.observed import GroupStep, Observed, TaskCounts
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


def tasks_of(*minimums: tuple[int, int | None]) -> list[dict[str, Any]]:
    """Tasks a, b, … from (replicas, minAvailable)."""
    return [
        make_task(name, replicas, minAvailable=minimum)
        for name, (replicas, minimum) in zip("abc", minimums, strict=False)
    ]


# Completion.


@pytest.mark.parametrize(
    ("tasks", "spec", "counts", "phase"),
    [
        pytest.param(
            tasks_of((1, 1), (1, 1)),
            {"minAvailable": 1},
            {"a": TaskCounts(succeeded=1), "b": TaskCounts(failed=1)},
            JobPhase.COMPLETED,
            id="one success is enough for minAvailable 1",
        ),
        pytest.param(
            tasks_of((1, 1), (1, 1)),
            {"minAvailable": 2},
            {"a": TaskCounts(succeeded=1), "b": TaskCounts(failed=1)},
            JobPhase.FAILED,
            id="one success of two is not",
        ),
        pytest.param(
            tasks_of((1, 1), (1, 1)),
            {"minAvailable": 2, "minSuccess": 1},
            {"a": TaskCounts(succeeded=1), "b": TaskCounts(running=1)},
            JobPhase.COMPLETED,
            id="minSuccess completes while others run",
        ),
        pytest.param(
            tasks_of((1, 1), (1, 1)),
            {"minAvailable": 2, "minSuccess": 2},
            {"a": TaskCounts(succeeded=1), "b": TaskCounts(failed=1)},
            JobPhase.FAILED,
            id="minSuccess that was missed fails",
        ),
        pytest.param(
            tasks_of((4, 2)),
            {"minAvailable": 2},
            {"a": TaskCounts(succeeded=2, failed=2)},
            JobPhase.COMPLETED,
            id="two of four with a minimum of two",
        ),
        pytest.param(
            tasks_of((4, 2)),
            {"minAvailable": 2},
            {"a": TaskCounts(succeeded=1, failed=3)},
            JobPhase.FAILED,
            id="one of four with a minimum of two",
        ),
        pytest.param(
            tasks_of((3, 3), (2, 1)),
            {"minAvailable": 4},
            {"a": TaskCounts(succeeded=3), "b": TaskCounts(succeeded=1, failed=1)},
            JobPhase.COMPLETED,
            id="each task has its minimum",
        ),
        pytest.param(
            tasks_of((3, 3), (2, 1)),
            {"minAvailable": 4},
            {"a": TaskCounts(succeeded=2, failed=1), "b": TaskCounts(succeeded=2)},
            JobPhase.FAILED,
            id="a task below its minimum fails the job",
        ),
        pytest.param(
            tasks_of((3, 3), (2, 1)),
            {"minAvailable": 3},
            {"a": TaskCounts(succeeded=2, failed=1), "b": TaskCounts(succeeded=2)},
            JobPhase.COMPLETED,
            id="unless the job asks for less than its tasks together",
        ),
        pytest.param(
            tasks_of((100, 1)),
            {"minAvailable": 1},
            {"a": TaskCounts(succeeded=3, running=5, pending=92)},
            RUNNING,
            id="many pending pods do not undo Running",
        ),
        pytest.param(
            tasks_of((5, 3)),
            {"minAvailable": 3},
            {"a": TaskCounts(running=2, pending=3)},
            PENDING,
            id="too few started: Pending again",
        ),
    ],
)
def test_how_a_running_job_goes_on(
    tasks: list[dict[str, Any]],
    spec: Mapping[str, Any],
    counts: Mapping[str, TaskCounts],
    phase: JobPhase,
) -> None:
    job = make_job(*tasks, phase=RUNNING, **spec)

    assert plan(make_observed(job, counts=counts), NOW).phase is phase


def test_a_pending_job_runs_once_enough_pods_have_started() -> None:
    job = make_job(make_task(replicas=3, minAvailable=2), minAvailable=2)
    one = make_observed(job, counts={"t": TaskCounts(running=1, pending=2)})
    two = make_observed(job, counts={"t": TaskCounts(running=1, succeeded=1, pending=1)})

    assert (plan(one, NOW).phase, plan(two, NOW).phase) == (PENDING, RUNNING)


# The pod group gates pods.


@pytest.mark.parametrize(
    ("group", "made"),
    [
        pytest.param(None, 0, id="not without a group"),
        pytest.param(PodGroupPhase.PENDING, 0, id="not before it is admitted"),
        pytest.param(PodGroupPhase.INQUEUE, 2, id="once it is Inqueue"),
        pytest.param(PodGroupPhase.UNKNOWN, 2, id="also while some cannot be placed"),
    ],
)
def test_pods_are_made_only_after_the_group_is_admitted(
    group: PodGroupPhase | None, made: int
) -> None:
    slots = [Slot("t", 0, 0), Slot("t", 1, 0)]
    job = make_job(make_task(replicas=2))

    decided = plan(make_observed(job, group=group, missing=slots), NOW)

    assert len(decided.slots) == made
    assert decided.group is GroupStep.ENSURE


# Policies.


def reacting(
    *ended: tuple[Outcome, Mapping[str, int]],
    job_policies: Any = (),
    task_policies: Any = (),
    phase: JobPhase = RUNNING,
    retry_count: int = 0,
    max_retry: int = 3,
) -> Observed:
    job = make_job(
        make_task(replicas=3, policies=list(task_policies)),
        phase=phase,
        status={"retryCount": retry_count},
        policies=list(job_policies),
        maxRetry=max_retry,
    )
    outcomes = [
        make_ended(outcome, index=index, number=100 + index, exit_codes=codes)
        for index, (outcome, codes) in enumerate(ended)
    ]
    counts = {"t": TaskCounts(running=3 - len(ended), failed=len(ended))}
    return make_observed(job, ended=outcomes, counts=counts)


FAILED = (Outcome.FAILED, {"c": 1})
EVICTED: tuple[Outcome, Mapping[str, int]] = (Outcome.EVICTED, {})


def test_a_failure_that_nobody_watched_still_restarts_the_job() -> None:
    """The pod failed while the controller was down; every pod has ended."""
    job = make_job(phase=RUNNING, policies=policies(("PodFailed", "RestartJob")))
    observed = make_observed(job, ended=[make_ended()], counts={"t": TaskCounts(failed=1)})

    decided = plan(observed, NOW)

    assert (decided.phase, decided.retry_count, decided.version) == (RESTARTING, 1, 1)
    assert [(kill.supersede, kill.ended) for kill in decided.kills] == [(True, True)]
    assert decided.group is GroupStep.RENEW


def test_an_eviction_is_no_failure() -> None:
    both = policies(("PodFailed", "TerminateJob"), ("PodEvicted", "RestartJob"))

    evicted = plan(reacting(EVICTED, job_policies=both), NOW)
    failed = plan(reacting(FAILED, job_policies=both), NOW)

    assert (evicted.phase, evicted.retry_count, evicted.counters.evictions) == (
        RESTARTING,
        0,
        1,
    )
    assert failed.phase is JobPhase.TERMINATING


def test_three_evictions_of_one_moment_are_one_restart() -> None:
    restart = policies(("PodEvicted", "RestartJob"))

    decided = plan(reacting(EVICTED, EVICTED, EVICTED, job_policies=restart), NOW)

    assert decided.counters.evictions == 1
    assert decided.version == 1
    assert len(decided.handled) == 3


def test_evictions_beyond_the_free_ones_are_failures() -> None:
    observed = reacting(EVICTED, job_policies=policies(("PodEvicted", "RestartJob")))
    meta = observed.job.metadata.model_copy(
        update={"annotations": {"hekla.io/max-evictions": "0"}}
    )
    bounded = Observed(
        uid=observed.uid,
        job=observed.job.model_copy(update={"metadata": meta}),
        created_at=NOW,
        group=observed.group,
        counts=observed.counts,
        ended=observed.ended,
    )

    assert plan(bounded, NOW).retry_count == 1


def test_a_rejected_pod_is_neither_failed_nor_evicted() -> None:
    every = policies(("PodFailed", "AbortJob"), ("PodEvicted", "AbortJob"))

    decided = plan(reacting((Outcome.REJECTED, {}), job_policies=every), NOW)

    assert decided.phase is RUNNING
    assert decided.handled == [UUID(int=100)]


@pytest.mark.parametrize(
    ("task_policies", "job_policies", "codes", "phase"),
    [
        pytest.param(
            policies(("PodEvicted", "RestartTask")),
            policies(("PodFailed", "AbortJob")),
            {"c": 1},
            JobPhase.ABORTING,
            id="a task's list that does not match falls through to the job's",
        ),
        pytest.param(
            policies(("PodFailed", "CompleteJob")),
            policies(("PodFailed", "AbortJob")),
            {"c": 1},
            JobPhase.COMPLETING,
            id="a task's policy goes before the job's",
        ),
        pytest.param(
            [{"exitCode": 3, "action": "CompleteJob"}, {"exitCode": 137, "action": "AbortJob"}],
            policies(("PodFailed", "TerminateJob")),
            {"c": 137},
            JobPhase.ABORTING,
            id="an exit code",
        ),
        pytest.param(
            [{"exitCode": 3, "action": "CompleteJob"}],
            policies(("PodFailed", "TerminateJob")),
            {"c": 1},
            JobPhase.TERMINATING,
            id="another exit code falls through",
        ),
        pytest.param(
            [{"exitCode": 42, "action": "AbortJob"}],
            [],
            {"x": 0, "y": 42},
            JobPhase.ABORTING,
            id="the exit code of any container",
        ),
        pytest.param(
            [],
            [*policies(("PodFailed", "TerminateJob")), {"exitCode": 42, "action": "AbortJob"}],
            {"c": 42},
            JobPhase.TERMINATING,
            id="the first that matches wins",
        ),
        pytest.param(
            [],
            [{"exitCode": 42, "action": "AbortJob"}, *policies(("PodFailed", "TerminateJob"))],
            {"c": 42},
            JobPhase.ABORTING,
            id="also the other way round",
        ),
        pytest.param(
            [],
            [{"events": ["PodEvicted", "PodFailed"], "action": "AbortJob"}],
            {"c": 1},
            JobPhase.ABORTING,
            id="a list of events",
        ),
        pytest.param(
            [], policies(("*", "AbortJob")), {"c": 1}, JobPhase.ABORTING, id="any event"
        ),
        pytest.param(
            [], policies(("PodFailed", "Nonsense")), {"c": 1}, RUNNING, id="unknown: a sync"
        ),
    ],
)
def test_which_policy_decides(
    task_policies: Any, job_policies: Any, codes: Mapping[str, int], phase: JobPhase
) -> None:
    observed = reacting(
        (Outcome.FAILED, codes), task_policies=task_policies, job_policies=job_policies
    )

    assert plan(observed, NOW).phase is phase


def test_of_one_second_the_strongest_action_is_done() -> None:
    job = make_job(
        make_task("a", policies=policies(("PodFailed", "RestartJob"))),
        make_task("b", policies=policies(("PodFailed", "CompleteJob"))),
        phase=RUNNING,
    )
    first = make_ended(task="a", number=1)
    together = make_ended(task="b", number=2, at=NOW + SECOND / 2)
    later = make_ended(task="b", number=3, at=NOW + 2 * SECOND)

    assert plan(make_observed(job, ended=[first, together]), NOW).phase is JobPhase.COMPLETING
    assert plan(make_observed(job, ended=[first, later]), NOW).phase is RESTARTING


def test_events_of_an_older_run_do_not_count() -> None:
    job = make_job(
        phase=RUNNING, status={"version": 1}, policies=policies(("PodFailed", "AbortJob"))
    )
    old = make_ended(job_version=0)

    decided = plan(make_observed(job, ended=[old], counts={"t": TaskCounts(running=1)}), NOW)

    assert (decided.phase, decided.handled) == (RUNNING, [old.uid])


# Retries.


def test_the_last_attempt_stays_to_be_looked_at() -> None:
    restart = policies(("PodFailed", "RestartJob"))

    again = plan(reacting(FAILED, job_policies=restart, retry_count=1), NOW)
    last = plan(reacting(FAILED, job_policies=restart, retry_count=2), NOW)

    assert [(kill.ended, kill.supersede) for kill in again.kills] == [(True, True)]
    assert [(kill.ended, kill.supersede) for kill in last.kills] == [(False, False)]
    assert (last.phase, last.retry_count, last.version) == (RESTARTING, 3, 0)


def test_max_retry_one_is_one_attempt() -> None:
    observed = reacting(FAILED, job_policies=policies(("PodFailed", "RestartJob")), max_retry=1)

    decided = plan(observed, NOW)

    assert (decided.retry_count, decided.kills[0].ended) == (1, False)


def test_a_job_out_of_retries_fails_and_says_so() -> None:
    job = make_job(phase=RESTARTING, status={"retryCount": 3})

    decided = plan(make_observed(job, counts={"t": TaskCounts(failed=1)}), NOW)

    assert decided.phase is JobPhase.FAILED
    assert [note.reason for note in decided.notes] == ["Failed"]


def test_a_restart_that_a_user_asks_for_costs_no_retry() -> None:
    job = make_job(phase=RUNNING, status={"retryCount": 2})
    command = Command(7, JobAction.RESTART_JOB)

    decided = plan(
        make_observed(job, commands=[command], counts={"t": TaskCounts(running=1)}), NOW
    )

    assert (decided.phase, decided.retry_count, decided.version) == (RESTARTING, 2, 1)
    assert decided.kills[0].supersede
    assert decided.commands == [7]


def test_a_restart_because_a_task_is_complete_costs_a_retry_or_it_would_never_end() -> None:
    job = make_job(
        make_task(policies=policies(("TaskCompleted", "RestartJob"))),
        make_task("o"),
        phase=RUNNING,
    )
    counts = {"t": TaskCounts(succeeded=1), "o": TaskCounts(running=1)}

    assert plan(make_observed(job, counts=counts), NOW).retry_count == 1


def test_a_resume_is_no_failure_and_keeps_what_succeeded() -> None:
    job = make_job(phase=JobPhase.ABORTED, status={"retryCount": 2, "version": 4})
    command = Command(1, JobAction.RESUME_JOB)

    decided = plan(
        make_observed(job, commands=[command], counts={"t": TaskCounts(succeeded=1)}), NOW
    )

    assert (decided.phase, decided.retry_count, decided.version) == (RESTARTING, 2, 5)
    assert (decided.counters.resumes, decided.kills, decided.carry) == (1, [], True)


def test_commands_go_before_events() -> None:
    observed = reacting(FAILED, job_policies=policies(("PodFailed", "RestartJob")))
    asked = Observed(
        uid=observed.uid,
        job=observed.job,
        created_at=NOW,
        group=observed.group,
        counts=observed.counts,
        ended=observed.ended,
        commands=[Command(1, JobAction.ABORT_JOB)],
    )

    decided = plan(asked, NOW)

    assert (decided.phase, decided.retry_count, decided.handled) == (JobPhase.ABORTING, 0, ())


# Partial restarts.


def test_restart_pod_names_one_index_and_keeps_the_rest() -> None:
    observed = reacting(FAILED, task_policies=policies(("PodFailed", "RestartPod")))

    decided = plan(observed, NOW)

    [kill] = decided.kills
    assert (kill.task, kill.indices, kill.supersede) == ("t", Span(0, 0), True)
    assert (decided.version, decided.group) == (0, GroupStep.ENSURE)


def test_restart_partition_takes_the_whole_partition() -> None:
    job = make_job(
        make_task(
            replicas=8,
            partitionPolicy={"totalPartitions": 2, "partitionSize": 4},
            policies=policies(("PodFailed", "RestartPartition")),
        ),
        phase=RUNNING,
    )

    decided = plan(make_observed(job, ended=[make_ended(index=5)]), NOW)

    assert [kill.indices for kill in decided.kills] == [Span(4, 7)]


def test_a_partial_restart_that_names_nothing_is_said_and_does_nothing() -> None:
    job = make_job(phase=RUNNING)
    command = Command(1, JobAction.RESTART_TASK, task="no-such")

    decided = plan(make_observed(job, commands=[command]), NOW)

    assert (decided.phase, decided.kills, decided.retry_count) == (RUNNING, (), 0)
    assert decided.commands == [1]
    assert "nothing is restarted" in decided.notes[0].message


# Events of tasks, of the group, and timers.


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


# Scaling, stopping, removal.


def test_pods_beyond_the_replicas_go_without_an_event() -> None:
    job = make_job(make_task(replicas=3), phase=RUNNING)

    decided = plan(make_observed(job, counts={"t": TaskCounts(running=5)}), NOW)

    [kill] = decided.kills
    assert kill.beyond == {"t": 3}


def test_a_refused_pod_that_lies_there_makes_room_for_the_next() -> None:
    job = make_job(phase=RUNNING)

    decided = plan(make_observed(job, counts={"t": TaskCounts(stale=1)}), NOW)

    assert [kill.outcomes for kill in decided.kills] == [
        (Outcome.EVICTED, Outcome.REJECTED, Outcome.LOST)
    ]


def test_pods_of_a_task_that_is_gone_go_too() -> None:
    job = make_job(phase=RUNNING)
    counts = {"t": TaskCounts(running=1), "old": TaskCounts(running=1)}

    assert plan(make_observed(job, counts=counts), NOW).kills[0].beyond == {"t": 1}


def test_a_finished_job_stops_what_still_runs_and_gives_its_group_back_last() -> None:
    job = make_job(make_task(replicas=2), phase=JobPhase.COMPLETED)
    stopping = make_observed(job, counts={"t": TaskCounts(succeeded=1, running=1)})
    stopped = make_observed(job, counts={"t": TaskCounts(succeeded=2)})

    assert (len(plan(stopping, NOW).kills), plan(stopping, NOW).group) == (1, GroupStep.KEEP)
    assert (len(plan(stopped, NOW).kills), plan(stopped, NOW).group) == (0, GroupStep.REMOVE)


def test_a_deleted_job_goes_when_its_pods_are_gone() -> None:
    job = make_job(phase=RUNNING)
    leaving = make_observed(job, deleting=True, counts={"t": TaskCounts(running=1)})
    gone = make_observed(job, deleting=True, present=0)

    first, last = plan(leaving, NOW), plan(gone, NOW)

    assert (first.retire, first.kills[0].ended) == (False, True)
    assert (last.retire, last.kills) == (True, ())


def test_a_job_that_waits_says_why() -> None:
    waiting = plan(make_observed(group=PodGroupPhase.PENDING), NOW)
    wait = {"reason": "FailedCreate", "message": "exceeded quota"}
    refused = plan(make_observed(wait=wait, counts={"t": TaskCounts(planned=1)}), NOW)
    made = plan(make_observed(wait=wait, counts={"t": TaskCounts(running=1)}), NOW)

    assert waiting.reason == "NotInqueue"
    assert (refused.reason, refused.message) == ("FailedCreate", "exceeded quota")
    assert made.reason == ""


def test_a_job_that_needs_what_is_not_built_waits_and_names_it() -> None:
    job = make_job(plugins={"env": [], "svc": []}, volumes=[{"mountPath": "/data"}])

    decided = plan(make_observed(job, missing=[Slot("t", 0, 0)], group=None), NOW)

    assert (decided.phase, decided.group, decided.slots) == (PENDING, GroupStep.KEEP, ())
    assert decided.reason == "NotYetSupported"
    assert decided.message.endswith("spec.plugins.svc, spec.volumes")


@pytest.mark.parametrize(
    ("ttl", "after", "expires"),
    [
        pytest.param(None, 999, False, id="never, unless the job says so"),
        pytest.param(0, 0, True, id="at once"),
        pytest.param(30, 29, False, id="not before its time"),
        pytest.param(30, 30, True, id="30 s after the end"),
        pytest.param(30, -600, False, id="an end in the future is waited for"),
    ],
)
def test_a_finished_job_goes_after_its_time(ttl: int | None, after: int, expires: bool) -> None:  # noqa: FBT001
    job = make_job(phase=JobPhase.COMPLETED, ttlSecondsAfterFinished=ttl)
    observed = make_observed(job, finished_at=NOW, counts={"t": TaskCounts(succeeded=1)})

    decided = plan(observed, NOW + after * SECOND)

    assert decided.expire is expires
    assert decided.due_at == (None if ttl is None else NOW + ttl * SECOND)


def test_a_job_at_rest_stays_as_it_is() -> None:
    job = make_job(phase=RUNNING)

    decided = plan(make_observed(job, counts={"t": TaskCounts(running=1)}), NOW)

    assert not decided.again
    assert [decided.kills, decided.slots, decided.notes, decided.handled] == [[], (), [], []]
