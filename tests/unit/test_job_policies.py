"""What policies, commands and timers make of a job: one pass, decided."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from hekla.domain.attempt import Outcome, Span
from hekla.domain.phases import JobAction, JobPhase
from hekla.domain.trigger import Command
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
