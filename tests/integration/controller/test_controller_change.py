"""UpdateJob, DeleteJob and CommandJob: what they take, refuse and do once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import grpc
import pytest

from hekla.domain.phases import JobAction, JobPhase
from hekla.kube.requests import Reply
from hekla.store import jobs, pod_groups
from hekla.store.database import Database
from hekla.v1 import job_pb2, job_service_pb2 as messages
from tests.support.controller_scene import SOON, Driver, Scene, message, refused
from tests.support.objects import make_job, make_task
from tests.support.store import due, value

Code = grpc.StatusCode
NOBODY = str(UUID(int=7))


def update(
    served: Scene, job: job_pb2.Job, *, generation: int | None = None, request_id: str = ""
) -> job_pb2.Job:
    request = messages.UpdateJobRequest(job=job, request_id=request_id)
    if generation is not None:
        request.expected_generation = generation
    return served.jobs.UpdateJob(request, timeout=SOON).job


def scaled(replicas: int, name: str = "j", **spec: Any) -> job_pb2.Job:
    """The manifest again, with another number of pods."""
    return message(make_job(name, make_task("t", replicas), **spec))


# UpdateJob.


def test_a_job_grows_and_shrinks_when_its_manifest_is_applied_again(
    served: Scene, driver: Driver
) -> None:
    made = served.create(make_job("j", make_task("t", 2)))
    uid = made.metadata.uid
    driver.start(uid)

    grown = update(served, scaled(4))
    driver.start(uid)
    assert driver.names("Running") == ["j-t-0", "j-t-1", "j-t-2", "j-t-3"]
    assert grown.spec.min_available == 4
    shrunk = update(served, scaled(1))
    driver.look(uid)
    driver.stop_pods(uid)

    assert (grown.metadata.generation, shrunk.metadata.generation) == (2, 3)
    assert driver.names() == ["j-t-0"]
    assert served.get(made).status.state.phase == "Running"


def test_an_update_of_another_generation_is_a_conflict(served: Scene) -> None:
    made = served.create(make_job("j", make_task("t", 1)))
    update(served, scaled(2), generation=made.metadata.generation)

    with refused(Code.ABORTED, "generation 2", "not 1"):
        update(served, scaled(3), generation=made.metadata.generation)

    assert served.get(made).spec.tasks[0].replicas == 2


def test_what_the_status_does_meanwhile_is_no_conflict(
    served: Scene, database: Database, driver: Driver
) -> None:
    made = served.create(make_job("j", make_task("t", 1)))
    uid = made.metadata.uid
    driver.start(uid)
    done = threading.Event()

    def run_and_wait() -> None:
        while not done.is_set():
            driver.ask(uid, JobAction.RESTART_JOB)
            driver.look(uid)
            driver.stop_pods(uid)

    moving = threading.Thread(target=run_and_wait)
    moving.start()
    try:
        for replicas in range(2, 12):
            update(served, scaled(replicas))
    finally:
        done.set()
        moving.join()

    assert served.get(made).metadata.generation == 11


def test_what_must_not_change_is_refused(served: Scene) -> None:
    made = served.create(make_job("j", make_task("t", 1)))

    with refused(Code.INVALID_ARGUMENT, "spec.queue: must not change"):
        update(served, scaled(1, queue="other"))
    with refused(Code.INVALID_ARGUMENT, "spec.tasks: must stay 1"):
        update(served, message(make_job("j", make_task("t", 1), make_task("u", 1))))

    assert served.get(made) == made


def test_labels_and_annotations_change_without_a_new_generation(served: Scene) -> None:
    made = served.create(make_job("j", make_task("t", 1)))
    job = scaled(1)
    job.metadata.labels["tier"] = "web"
    job.metadata.annotations["note"] = "ours"

    changed = update(served, job)

    assert changed.metadata.generation == 1
    assert dict(changed.metadata.labels) == {"tier": "web"}
    assert dict(changed.metadata.annotations) == {"note": "ours"}
    assert int(changed.metadata.resource_version) > int(made.metadata.resource_version)
    assert dict(update(served, scaled(1)).metadata.labels) == {}


def test_an_update_that_changes_nothing_is_none(served: Scene) -> None:
    made = served.create(make_job("j", make_task("t", 1)))

    assert update(served, scaled(1)) == made


def test_the_same_update_is_done_once(served: Scene) -> None:
    served.create(make_job("j", make_task("t", 1)))

    first = update(served, scaled(2), generation=1, request_id="once")
    again = update(served, scaled(2), generation=1, request_id="once")

    assert again == first
    with refused(Code.INVALID_ARGUMENT, "'once'"):
        update(served, scaled(3), generation=1, request_id="once")


def test_an_update_is_of_a_job_that_is_there_and_stays(served: Scene) -> None:
    with refused(Code.NOT_FOUND, "default/j"):
        update(served, scaled(1))
    with refused(Code.INVALID_ARGUMENT, "metadata.name"):
        update(served, job_pb2.Job())
    with refused(Code.INVALID_ARGUMENT, "job: is required"):
        served.jobs.UpdateJob(messages.UpdateJobRequest(), timeout=SOON)
    made = served.create(make_job("j", make_task("t", 1)))
    other = scaled(2)
    other.metadata.uid = NOBODY
    with refused(Code.ABORTED, made.metadata.uid):
        update(served, other)
    served.delete(made)
    with refused(Code.FAILED_PRECONDITION, "being deleted"):
        update(served, scaled(2))


# DeleteJob.


def test_a_job_is_deleted_when_its_pods_are_gone(served: Scene, driver: Driver) -> None:
    made = served.create(make_job("j"))
    driver.start(made.metadata.uid)

    leaving = served.delete(made)
    driver.look(made.metadata.uid)

    assert leaving.metadata.deletion_timestamp
    assert driver.names() == ["j-t-0"], "it is stopped with grace"
    assert served.get(made).status.state.phase == "Running"
    driver.stop_pods(made.metadata.uid)
    assert driver.names() == []
    with refused(Code.NOT_FOUND):
        served.delete(made)


def test_deleting_again_changes_nothing(served: Scene) -> None:
    made = served.create()

    first, again = served.delete(made), served.delete(made)

    assert first == again


def test_the_same_deletion_is_answered_when_the_job_is_gone(
    served: Scene, driver: Driver
) -> None:
    made = served.create(make_job("j"))
    served.delete(made, request_id="once")
    driver.look(made.metadata.uid)
    served.create(make_job("j"))

    again = served.delete(made, request_id="once")

    assert again.metadata.uid == made.metadata.uid
    assert not served.jobs.GetJob(
        messages.GetJobRequest(name="j"), timeout=SOON
    ).job.metadata.deletion_timestamp, "the new one stays"


def test_a_job_of_another_uid_is_not_deleted(served: Scene) -> None:
    made = served.create()

    with refused(Code.NOT_FOUND, NOBODY):
        served.delete(made, uid=NOBODY)
    with refused(Code.INVALID_ARGUMENT, "uid"):
        served.delete(made, uid="7")

    assert not served.get(made).metadata.deletion_timestamp
    assert served.delete(made, uid=made.metadata.uid).metadata.deletion_timestamp


def test_a_deletion_ends_a_long_wait(served: Scene, driver: Driver) -> None:
    made = served.create()
    driver.pods.refuse = lambda _: Reply(403, None, "Forbidden", "exceeded quota")
    driver.start(made.metadata.uid)
    assert due(served.database) == set(), "it is tried again later"

    served.delete(made)

    assert due(served.database) == {made.metadata.uid}


# CommandJob.


@pytest.mark.parametrize("action", ["", "SyncJob", "abortjob", "Fly", "AbortJob\0"])
def test_an_action_that_is_none_is_refused(served: Scene, action: str) -> None:
    made = served.create()

    with refused(Code.INVALID_ARGUMENT, "action: must be one of AbortJob"):
        served.command(made, action)


def test_commands_are_carried_out_in_the_order_given(served: Scene, driver: Driver) -> None:
    made = served.create()
    uid = made.metadata.uid
    driver.start(uid)

    served.command(made, "AbortJob")
    served.command(made, "ResumeJob")
    served.command(made, "AbortJob")
    for _ in range(3):
        driver.look(uid)
    driver.stop_pods(uid)

    assert driver.phase(uid) is JobPhase.ABORTED
    with served.database.transaction() as session:
        assert value(session, "select count(*) from command") == 0


def test_twice_the_same_command_is_as_once(served: Scene, driver: Driver) -> None:
    made = served.create()
    uid = made.metadata.uid
    driver.start(uid)

    for _ in range(2):
        served.command(made, "AbortJob")
        driver.look(uid)
    driver.stop_pods(uid)
    assert served.get(made).status.state.phase == "Aborted"
    for _ in range(2):
        served.command(made, "ResumeJob")
        driver.look(uid)
    driver.start(uid)
    after = served.get(made).status
    assert (after.state.phase, after.version, after.retry_count) == ("Running", 1, 0)


def test_each_restart_begins_a_new_run(served: Scene, driver: Driver) -> None:
    made = served.create()
    uid = made.metadata.uid
    driver.start(uid)

    for run in (1, 2):
        served.command(made, "RestartJob")
        driver.look(uid)
        driver.stop_pods(uid)
        driver.start(uid)
        [name] = driver.names("Running")
        assert driver.pods.place_of(name) == ("t", 0, run)

    after = served.get(made).status
    assert (after.version, after.retry_count) == (2, 0), "commands use up no retries"


def test_a_command_with_a_request_id_is_given_once(served: Scene, driver: Driver) -> None:
    made = served.create()
    uid = made.metadata.uid
    driver.start(uid)

    with ThreadPoolExecutor(4) as many:
        calls = [
            many.submit(served.command, made, "RestartJob", request_id="once") for _ in range(4)
        ]
        assert {call.result().metadata.uid for call in calls} == {uid}
    driver.look(uid)
    driver.look(uid)

    assert served.get(made).status.version == 1
    with refused(Code.INVALID_ARGUMENT, "'once'"):
        served.command(made, "AbortJob", request_id="once")


def test_a_finished_job_obeys_no_command(served: Scene, driver: Driver) -> None:
    made = served.create()
    driver.start(made.metadata.uid)
    driver.end(made.metadata.uid)

    for action in ("ResumeJob", "RestartJob", "AbortJob"):
        with refused(Code.FAILED_PRECONDITION, "Completed", "submit it again"):
            served.command(made, action)
    served.delete(made)
    with refused(Code.FAILED_PRECONDITION, "being deleted"):
        served.command(made, "AbortJob")


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        ({}, "task: must be a task of the job"),
        ({"task": "u"}, "task: must be a task of the job, is 'u'"),
        ({"task": "t\0"}, "task"),
        ({"task": "t"}, "index: must be from 0 to 2, is None"),
        ({"task": "t", "index": 3}, "index: must be from 0 to 2, is 3"),
        ({"task": "t", "index": -1}, "index: must be from 0 to 2, is -1"),
        ({"task": "t", "index": 2**31 - 1}, "index"),
        ({"task": "t", "index": 0, "reason": "\0"}, "reason"),
        ({"task": "t", "index": 0, "message": "a\0"}, "message"),
        ({"task": "t", "index": 0, "message": "m" * 1025}, "message: must be no more than"),
    ],
)
def test_a_restart_of_a_pod_names_one(served: Scene, asked: dict[str, Any], word: str) -> None:
    made = served.create(make_job("j", make_task("t", 3)))

    with refused(Code.INVALID_ARGUMENT, word):
        served.command(made, "RestartPod", **asked)


def test_the_pod_that_is_named_is_restarted_and_no_other(served: Scene, driver: Driver) -> None:
    made = served.create(make_job("j", make_task("t", 3)))
    uid = made.metadata.uid
    driver.start(uid)

    served.command(made, "RestartPod", task="t", index=1)
    driver.look(uid)
    driver.stop_pods(uid)
    driver.start(uid)

    runs = [driver.pods.place_of(name)[2] for name in driver.names("Running")]
    assert runs == [0, 1, 0]


def test_a_command_is_for_a_job_that_is_there(served: Scene) -> None:
    made = served.create(make_job("j"))

    with refused(Code.NOT_FOUND, NOBODY):
        served.command(made, "AbortJob", uid=NOBODY)
    made.metadata.name = "other"
    with refused(Code.NOT_FOUND, "default/other"):
        served.command(made, "AbortJob")


def test_a_job_that_was_removed_leaves_nothing_but_its_history(
    served: Scene, driver: Driver
) -> None:
    made = served.create(make_job("j", make_task("t", 2)))
    uid = made.metadata.uid
    driver.start(uid)
    served.command(made, "RestartJob")
    served.delete(made)
    driver.look(uid)
    driver.stop_pods(uid)

    with served.database.transaction() as session:
        for table in ("job", "attempt", "trigger", "command", "job_event", "pod_group", "work"):
            assert value(session, f"select count(*) from {table}") == 0, table
        assert pod_groups.of_job(session, UUID(uid)) is None
        assert jobs.documents(session, None) == {}
    assert driver.names() == []
