"""One pass, decided: cases people reported, and the worked examples of the job API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from hekla.domain.attempt import Outcome, Slot
from hekla.domain.phases import JobPhase, PodGroupPhase
from services.controller.core.observed import GroupStep, TaskCounts
from services.controller.core.plan import plan
from tests.support.factories import (
    NOW,
    make_job,
    make_observed,
    make_task,
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
    volumes = [{"mountPath": "/scratch"}, {"mountPath": "/data", "volumeClaimName": "data"}]
    job = make_job(plugins={"env": [], "svc": []}, volumes=volumes)

    decided = plan(make_observed(job, missing=[Slot("t", 0, 0)], group=None), NOW)

    assert (decided.phase, decided.group, decided.slots) == (PENDING, GroupStep.KEEP, ())
    assert decided.reason == "NotYetSupported"
    assert decided.message.endswith("spec.plugins.svc, spec.volumes[1]")


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
