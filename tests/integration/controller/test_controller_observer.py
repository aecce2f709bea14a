"""The observer: what pods show becomes rows, whatever they show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from hekla.domain.phases import JobPhase
from hekla.kube.events import MODIFIED, RELISTED, WatchEvent
from hekla.store import attempt_pages, jobs
from hekla.store.schema import AttemptRow
from services.controller.pod_seen import project
from tests.support.controller_scene import Driver
from tests.support.factories import make_job, make_task, policies
from tests.support.pod_api import Pod


def running(driver: Driver, replicas: int = 2, **spec: Any) -> UUID:
    """A job whose pods run; its uid."""
    uid = uuid4()
    with driver.database.transaction() as session:
        jobs.insert_many(session, [(uid, make_job(make_task("t", replicas), **spec))])
    driver.start(uid)
    return uid


def rows(driver: Driver, uid: UUID) -> list[AttemptRow]:
    with driver.database.transaction() as session:
        return sorted(attempt_pages.page(session, uid, limit=100), key=lambda row: row.index)


def deface(driver: Driver, name: str, **status: Any) -> None:
    """The pod shows a status that no API server should show."""
    pod = driver.pods.pods[name]
    pod["status"] |= status
    driver.pods._tell(MODIFIED, pod)


WRONG: list[dict[str, Any]] = [
    {"phase": "Wrong\0"},
    {"reason": "a\0b"},
    {"reason": "x" * 100_000},
    {"containerStatuses": [{"name": "c\0", "state": {"terminated": {"exitCode": 1}}}]},
    {"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 2**70}}}]},
    {"containerStatuses": [{"name": "c", "restartCount": 2**40}]},
    {"containerStatuses": [{"name": "c", "restartCount": -(2**40)}]},
    {"startTime": "9999-12-31T23:59:59Z"},
    {"startTime": "0001-01-01T00:00:00Z"},
    {"startTime": "soon"},
]


@pytest.mark.parametrize("wrong", WRONG, ids=[str(wrong)[:60] for wrong in WRONG])
def test_a_pod_that_shows_nonsense_hides_no_other(
    driver: Driver, wrong: dict[str, Any]
) -> None:
    uid = running(driver)

    deface(driver, "j-t-0", **wrong)
    driver.pods.end("j-t-1", 0)
    driver.observe()
    driver.look(uid)

    assert rows(driver, uid)[1].outcome == "Succeeded"
    assert driver.job(uid).job.status.succeeded == 1


def test_an_end_that_no_clock_has_shown_yet_is_an_end(driver: Driver) -> None:
    uid = running(driver, 1, policies=policies(("PodFailed", "TerminateJob"), timeout="1s"))

    ended = {"exitCode": 1, "finishedAt": "9999-12-31T23:59:59Z"}
    deface(
        driver,
        "j-t-0",
        phase="Failed",
        containerStatuses=[{"name": "c", "state": {"terminated": ended}}],
    )
    driver.observe()
    driver.look(uid)

    assert driver.phase(uid) is JobPhase.FAILED


def test_a_pod_that_cannot_be_written_down_hides_no_other(driver: Driver) -> None:
    uid = running(driver, 5)
    for index in (1, 3):
        driver.pods.end(f"j-t-{index}", 0)
    driver.pods.vanish("j-t-0")
    [listed] = driver.pods.relist()
    pods = [
        replace(pod, phase="\0") if pod.name in ("j-t-2", "j-t-4") else pod
        for pod in listed.object
    ]

    driver.observer.take([WatchEvent(RELISTED, pods)])

    outcomes = [row.outcome for row in rows(driver, uid)]
    assert outcomes == ["Lost", "Succeeded", None, "Succeeded", None]
    assert driver.observer.problem() is None


def test_a_pod_that_is_none_of_ours_is_left_alone(driver: Driver) -> None:
    running(driver)
    stranger: Pod = {
        "metadata": {
            "name": "stranger",
            "namespace": "default",
            "uid": "u",
            "resourceVersion": "1",
            "labels": {"hekla.io/job-uid": str(uuid4())},
            "annotations": {"hekla.io/attempt-uid": str(uuid4())},
            "finalizers": ["hekla.io/outcome"],
        },
        "status": {"phase": "Succeeded"},
    }
    driver.pods.pods["stranger"] = stranger
    seen = project(stranger)

    driver.observer.take([WatchEvent(MODIFIED, seen)])
    driver.observer.release_once()

    assert stranger["metadata"]["finalizers"] == ["hekla.io/outcome"]
    assert "deletionTimestamp" not in stranger["metadata"]


def test_old_news_change_nothing(driver: Driver) -> None:
    uid = running(driver, 1)
    driver.pods._tell(MODIFIED, driver.pods.pods["j-t-0"])
    old = driver.pods.take_events()
    driver.end(uid)
    after = rows(driver, uid)

    driver.observer.take(old)

    assert [(row.phase, row.outcome) for row in after] == [("Succeeded", "Succeeded")]
    assert [(row.phase, row.outcome) for row in rows(driver, uid)] == [
        ("Succeeded", "Succeeded")
    ]


def test_a_finalizer_goes_when_the_outcome_is_written_and_not_before(driver: Driver) -> None:
    uid = running(driver, 1)
    driver.pods.end("j-t-0", 0)

    assert driver.pods.pods["j-t-0"]["metadata"]["finalizers"]
    driver.observer.take(driver.pods.take_events())
    assert rows(driver, uid)[0].outcome == "Succeeded"
    assert driver.pods.pods["j-t-0"]["metadata"]["finalizers"]
    assert driver.observer.release_once()
    assert driver.pods.pods["j-t-0"]["metadata"]["finalizers"] == []
    assert not driver.observer.release_once()
