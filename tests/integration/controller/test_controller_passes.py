"""Passes over jobs: what is written, what is done to pods, and what is left alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hekla.domain import names
from hekla.domain.errors import NotFoundError
from hekla.domain.phases import JobAction, JobPhase
from hekla.kube.requests import Reply
from hekla.store import pod_groups
from services.controller.passes import Outcome
from tests.support.controller_scene import Driver
from tests.support.factories import make_task, policies
from tests.support.passes import (
    EVICTED_ENDS_IT,
    a_foreign_pod,
    delete,
    instant,
    said,
    scale,
    state,
    submit,
)
from tests.support.pod_api import Pod
from tests.support.store import value

FORBIDDEN = Reply(403, None, "Forbidden", "exceeded quota: pods, used 5, limited to 5")


# Making pods.


def test_no_pod_is_made_before_the_scheduler_lets_the_group_in(driver: Driver) -> None:
    uid = submit(driver)

    driver.look(uid)
    driver.look(uid)
    assert driver.names() == []
    driver.admit(uid)
    driver.look(uid)

    assert driver.names() == ["j-t-0"]


def test_a_pod_carries_what_ties_it_to_its_attempt(driver: Driver) -> None:
    uid = submit(driver)
    driver.start(uid)

    [pod] = driver.pods.pods.values()
    with driver.database.transaction() as session:
        attempt = value(session, "select uid from attempt")
        group = pod_groups.of_job(session, uid)
    assert group is not None
    assert pod["metadata"]["annotations"][names.ATTEMPT_UID] == str(attempt)
    assert pod["metadata"]["annotations"][names.GROUP_UID] == str(group.uid)
    assert pod["metadata"]["labels"][names.JOB_UID] == str(uid)
    assert pod["metadata"]["finalizers"] == [names.OUTCOME_FINALIZER]


def test_a_create_that_was_not_answered_and_happened_is_not_made_again(driver: Driver) -> None:
    uid = submit(driver)
    driver.look(uid)
    driver.admit(uid)
    driver.pods.delay_creates = True
    assert driver.look(uid) == [Outcome.WAITS]
    driver.pods.delay_creates = False
    driver.pods.land_late_creates()

    driver.look(uid)
    driver.observe()

    assert len(driver.pods.created) == 1
    assert driver.names("Pending") == ["j-t-0"]


def test_a_create_that_never_happened_is_made_again(driver: Driver) -> None:
    uid = submit(driver)
    driver.look(uid)
    driver.admit(uid)
    driver.pods.delay_creates = True
    driver.look(uid)
    driver.pods.delay_creates = False
    driver.pods.late.clear()

    driver.look(uid)

    assert driver.names() == ["j-t-0"]


def test_a_pod_that_comes_after_its_attempt_was_given_up_is_deleted(driver: Driver) -> None:
    uid = submit(driver)
    driver.look(uid)
    driver.admit(uid)
    driver.pods.delay_creates = True
    driver.look(uid)
    driver.ask(uid, JobAction.ABORT_JOB)
    driver.look(uid)
    driver.look(uid)
    assert driver.phase(uid) is JobPhase.ABORTED
    driver.pods.delay_creates = False

    driver.pods.land_late_creates()
    driver.observe()

    assert driver.names() == []


# What Kubernetes refuses.


def test_a_job_waits_for_a_pod_name_that_somebody_else_has(driver: Driver) -> None:
    uid = submit(driver, make_task("t", 2), policies=EVICTED_ENDS_IT)
    driver.pods._create(a_foreign_pod("j-t-1"))

    driver.start(uid)
    driver.look(uid)

    assert state(driver, uid) == (JobPhase.PENDING, "PodNameTaken")
    assert "default/j-t-1" in (driver.job(uid).job.status.state.message or "")
    assert said(driver, uid).count("PodNameTaken") == 1
    assert driver.job(uid).job.status.pending == 0, "a foreign pod is none of the job's"
    driver.pods.vanish("j-t-1")
    driver.start(uid)
    driver.look(uid)
    assert state(driver, uid) == (JobPhase.RUNNING, "")


def test_of_two_jobs_whose_pods_have_one_name_the_second_waits(driver: Driver) -> None:
    first = submit(driver, make_task("a-b"), name="x")
    second = submit(driver, make_task("b"), name="x-a")
    driver.start(first)

    driver.start(second)
    driver.look(second)
    assert state(driver, second) == (JobPhase.PENDING, "PodNameTaken")
    assert driver.job(second).job.status.running == 0
    driver.end(first)
    delete(driver, first)
    driver.look(first)
    driver.stop_pods(first)
    driver.start(second)

    assert driver.phase(second) is JobPhase.RUNNING
    assert driver.pods.place_of("x-a-b-0")[0] == "b"


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        pytest.param(403, "FailedCreate", id="a quota is used up"),
        pytest.param(422, "FailedCreate", id="the pod is not valid"),
        pytest.param(400, "FailedCreate", id="the pod makes no sense"),
        pytest.param(429, "FailedCreate", id="the API server is busy"),
        pytest.param(500, "FailedCreate", id="the API server is broken"),
        pytest.param(404, "NamespaceNotFound", id="the namespace is missing"),
    ],
)
def test_a_job_whose_pods_are_refused_waits_and_goes_on(
    driver: Driver, status: int, reason: str
) -> None:
    uid = submit(driver, policies=EVICTED_ENDS_IT)
    driver.pods.refuse = lambda _: Reply(status, None, "Refused", "because")
    driver.start(uid)

    assert driver.look(uid) == [Outcome.WAITS]
    assert state(driver, uid) == (JobPhase.PENDING, reason)
    assert said(driver, uid).count(reason) == 1
    driver.pods.refuse = lambda _: None
    driver.start(uid)
    driver.look(uid)
    assert state(driver, uid) == (JobPhase.RUNNING, "")


def test_what_is_refused_is_tried_again_ever_later_but_soon_enough(driver: Driver) -> None:
    uid = submit(driver)
    driver.pods.refuse = lambda _: FORBIDDEN
    driver.look(uid)
    driver.admit(uid)

    for pause in (0.5, 1, 2, 4, 8, 10, 10, 10):
        before = instant(driver)
        assert driver.look(uid) == [Outcome.WAITS]
        after = instant(driver)
        again = instant(driver, "not_before from work") - timedelta(seconds=pause)
        assert before <= again <= after


def test_what_fits_into_a_quota_runs_and_the_rest_waits(driver: Driver) -> None:
    uid = submit(driver, make_task("t", 8, minAvailable=3), policies=EVICTED_ENDS_IT)
    room = 5

    def refuse(pod: Pod) -> Reply | None:
        taken = pod["metadata"]["name"] in driver.pods.pods
        return FORBIDDEN if len(driver.pods.pods) >= room and not taken else None

    driver.pods.refuse = refuse
    driver.start(uid)
    driver.look(uid)
    assert state(driver, uid) == (JobPhase.RUNNING, "FailedCreate")
    assert len(driver.names("Running")) == 5
    room = 8
    driver.start(uid)
    driver.look(uid)

    assert len(driver.names("Running")) == 8
    assert state(driver, uid) == (JobPhase.RUNNING, "")


def test_a_wait_is_over_when_nothing_is_left_to_wait_for(driver: Driver) -> None:
    uid = submit(driver, make_task("t", 2, minAvailable=1), minAvailable=1)
    driver.pods._create(a_foreign_pod("j-t-1"))
    driver.start(uid)
    driver.look(uid)
    assert state(driver, uid) == (JobPhase.RUNNING, "PodNameTaken")

    scale(driver, uid, t=1)
    for _ in range(3):
        driver.look(uid)

    assert state(driver, uid) == (JobPhase.RUNNING, "")
    assert "j-t-1" in driver.pods.pods, "a foreign pod is not ours to delete"


# Changing size.


def test_a_smaller_job_asks_for_less_before_its_pods_go(driver: Driver) -> None:
    uid = submit(driver, make_task("t", 4), policies=policies(("PodEvicted", "RestartJob")))
    driver.start(uid)
    minimums = []

    def note(_: Any) -> None:
        with driver.database.transaction() as session:
            group = pod_groups.of_job(session, uid)
            assert group is not None
            minimums.append((group.group.spec.min_member, group.group.spec.min_task_member))

    driver.pods.deleting = note
    scale(driver, uid, t=2)
    driver.look(uid)

    assert minimums == [(2, {"t": 2})] * 2


def test_pods_of_which_there_are_too_many_are_not_evicted(driver: Driver) -> None:
    uid = submit(driver, make_task("t", 4), policies=policies(("PodEvicted", "RestartJob")))
    driver.start(uid)

    scale(driver, uid, t=2)
    driver.look(uid)
    driver.stop_pods(uid)

    status = driver.job(uid).job.status
    assert driver.names("Running") == ["j-t-0", "j-t-1"]
    assert (status.retry_count, status.version, status.running) == (0, 0, 2)
    assert said(driver, uid) == ["Running"]


def test_a_job_may_have_no_pods_for_a_while(driver: Driver) -> None:
    uid = submit(driver, make_task("t", 1, minAvailable=1))
    driver.start(uid)

    scale(driver, uid, t=0)
    driver.look(uid)
    driver.stop_pods(uid)
    assert driver.names() == []
    scale(driver, uid, t=1)
    driver.start(uid)

    assert driver.names("Running") == ["j-t-0"]


# Slices.


def test_an_abort_takes_effect_between_two_slices(driver: Driver) -> None:
    uid = submit(driver, make_task("t", 2_000))
    driver.look(uid)
    driver.admit(uid)
    asked = False

    def ask_in_the_middle(_: Pod) -> None:
        nonlocal asked
        if not asked:
            asked = True
            driver.ask(uid, JobAction.ABORT_JOB)

    driver.pods.refuse = ask_in_the_middle
    driver.look(uid)

    assert len(driver.pods.created) == 500
    assert driver.phase(uid) is JobPhase.ABORTING
    driver.stop_pods(uid)
    assert driver.phase(uid) is JobPhase.ABORTED
    assert driver.names() == []


def test_a_deletion_of_many_pods_asks_for_each_once(driver: Driver) -> None:
    uid = submit(driver, make_task("t", 700))
    driver.look(uid)
    driver.admit(uid)
    driver.look(uid)
    driver.observe()
    assert len(driver.names()) == 700
    delete(driver, uid)

    driver.look(uid)

    leaving = [pod for pod in driver.pods.pods.values() if deleted(pod)]
    assert len(leaving) == 700, "one pass goes on until all were asked to go"
    assert driver.pods.deletes == 700
    driver.observe()
    driver.look(uid)
    assert driver.pods.pods == {}
    with pytest.raises(NotFoundError):
        driver.job(uid)


def deleted(pod: Pod) -> bool:
    return "deletionTimestamp" in pod["metadata"]
