"""CreateJob: once for each request id, admitted first, all or nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import cast

import grpc
import pytest

from hekla.domain.errors import InvalidError
from hekla.domain.phases import QueueState
from hekla.rpc.admission import Admission
from hekla.rpc.errors import translated
from hekla.store import queues
from hekla.store.database import Database
from hekla.store.once import Asking
from hekla.v1 import job_service_pb2 as messages
from hekla.v1.job_service_pb2_grpc import JobServiceStub
from services.controller.creating import Creating, Made, New
from tests.support.controller_scene import SOON, Driver, Scene, message, refused, scene
from tests.support.objects import make_job, make_task
from tests.support.store import value

Code = grpc.StatusCode


def stored(database: Database, table: str = "job") -> int:
    with database.transaction() as session:
        return int(value(session, f"select count(*) from {table}"))


def test_a_job_is_stored_as_it_was_admitted(served: Scene) -> None:
    made = served.create(make_job("j", make_task("", 3), ttl_seconds_after_finished=0))

    assert made.metadata.uid
    assert made.metadata.generation == 1
    assert made.spec.min_available == 3
    assert made.spec.queue == "default"
    assert made.spec.tasks[0].name == "default0"
    assert made.spec.HasField("ttl_seconds_after_finished"), "a zero is not an absence"
    assert made.status.state.phase == "Pending"
    assert served.get(made) == made


def test_what_is_admitted_and_does_nothing_yet_comes_with_a_warning(served: Scene) -> None:
    request = messages.CreateJobRequest(job=message(make_job(plugins={"svc": []})))

    answer = served.jobs.CreateJob(request, timeout=SOON)

    assert "spec.plugins.svc" in answer.warnings[0]


def test_a_new_job_has_its_group_at_once_and_wants_no_look(
    served: Scene, database: Database
) -> None:
    made = served.create()

    with database.transaction() as session:
        assert str(value(session, "select job_uid from pod_group")) == made.metadata.uid
        assert value(session, "select count(*) from work") == 0
    assert made == served.get(made)
    assert made.status.state.phase == "Pending"


def test_the_namespace_is_default_unless_it_says_another(served: Scene) -> None:
    job = message(make_job())
    job.metadata.namespace = ""

    made = served.jobs.CreateJob(messages.CreateJobRequest(job=job), timeout=SOON).job

    assert made.metadata.namespace == "default"


def test_a_name_is_made_for_a_job_that_gives_its_beginning(served: Scene) -> None:
    job = message(make_job())
    job.metadata.name, job.metadata.generate_name = "", "train-"
    request = messages.CreateJobRequest(job=job)

    names = {served.jobs.CreateJob(request, timeout=SOON).job.metadata.name for _ in range(3)}

    assert len(names) == 3
    assert all(name.startswith("train-") and len(name) == 11 for name in names)


# Request ids.


def test_the_same_request_makes_one_job(served: Scene, database: Database) -> None:
    job = make_job(plugins={"svc": []})
    request = messages.CreateJobRequest(job=message(job), request_id="once")

    first, second = (served.jobs.CreateJob(request, timeout=SOON) for _ in range(2))

    assert first == second
    assert first.warnings
    assert stored(database) == 1


def test_the_same_request_with_a_generated_name_makes_one_job(served: Scene) -> None:
    job = message(make_job())
    job.metadata.name, job.metadata.generate_name = "", "train-"
    request = messages.CreateJobRequest(job=job, request_id="once")

    names = {served.jobs.CreateJob(request, timeout=SOON).job.metadata.name for _ in range(3)}

    assert len(names) == 1


def test_the_same_request_from_many_at_once_makes_one_job(
    served: Scene, database: Database
) -> None:
    requests = [
        messages.CreateJobRequest(job=message(make_job(f"j{number}")), request_id=f"r{number}")
        for number in range(4)
    ]

    with ThreadPoolExecutor(8) as many:
        calls = [
            many.submit(served.jobs.CreateJob, request, timeout=SOON)
            for request in requests
            for _ in range(8)
        ]
        uids = [call.result().job.metadata.uid for call in calls]

    assert [len(set(uids[start : start + 8])) for start in range(0, 32, 8)] == [1, 1, 1, 1]
    assert stored(database) == 4


def test_the_same_request_is_answered_after_its_job_was_removed(
    served: Scene, driver: Driver, database: Database
) -> None:
    made = served.create(make_job("j"), request_id="once")
    served.delete(made)
    driver.look(made.metadata.uid)

    again = served.create(make_job("j"), request_id="once")

    assert again.metadata.uid == made.metadata.uid
    assert again.metadata.deletion_timestamp
    assert stored(database) == 0


def test_a_request_id_is_good_for_one_request(served: Scene, database: Database) -> None:
    served.create(make_job("j"), request_id="once")

    with refused(Code.INVALID_ARGUMENT, "'once'", "CreateJob"):
        served.create(make_job("other"), request_id="once")

    assert stored(database) == 1


def test_a_request_without_an_id_is_always_new(served: Scene) -> None:
    served.create(make_job("j"))

    with refused(Code.ALREADY_EXISTS, "default/j"):
        served.create(make_job("j"))


def test_a_request_that_was_refused_may_be_made_again(served: Scene) -> None:
    taken = served.create(make_job("j"))
    with refused(Code.ALREADY_EXISTS):
        served.create(make_job("j"), request_id="again")
    Driver(served.database).look(served.delete(taken).metadata.uid)

    made = served.create(make_job("j"), request_id="again")

    assert made.metadata.uid != taken.metadata.uid


def test_a_request_id_may_not_be_longer_than_a_key_can_be(served: Scene) -> None:
    with refused(Code.INVALID_ARGUMENT, "request_id", "128"):
        served.create(request_id="x" * 129)

    assert served.create(request_id="x" * 128).metadata.uid


# Names.


def test_a_name_is_taken_while_its_job_is_being_deleted(served: Scene) -> None:
    served.delete(served.create(make_job("j")))

    with refused(Code.ALREADY_EXISTS, "default/j", "being deleted"):
        served.create(make_job("j"))


def test_a_name_is_free_in_another_namespace(served: Scene) -> None:
    served.create(make_job("j"))
    job = message(make_job("j"))
    job.metadata.namespace = "other"

    made = served.jobs.CreateJob(messages.CreateJobRequest(job=job), timeout=SOON).job

    assert made.metadata.namespace == "other"


# Admission.


def test_a_job_is_refused_with_everything_that_is_wrong_with_it(
    served: Scene, database: Database
) -> None:
    bad = make_job("j", make_task("t", -1), make_task("t", 1, template=None), queue="nope")

    with pytest.raises(InvalidError) as refusal, translated():
        served.create(bad, request_id="bad")

    assert {one.path for one in refusal.value.violations} >= {
        "spec.tasks[0].replicas",
        "spec.tasks[1].name",
        "spec.tasks[1].template.spec.containers",
        "spec.queue",
    }
    assert stored(database) == stored(database, "request") == stored(database, "work") == 0


def test_a_job_without_a_job_is_refused(served: Scene) -> None:
    with refused(Code.INVALID_ARGUMENT, "job: is required"):
        served.jobs.CreateJob(messages.CreateJobRequest(), timeout=SOON)


def test_a_job_for_a_closed_queue_is_refused_for_now(served: Scene, database: Database) -> None:
    with database.transaction() as session:
        queues.change(session, "default", state=QueueState.CLOSED)

    with refused(Code.FAILED_PRECONDITION, "spec.queue", "Closed"):
        served.create(make_job("j"))

    assert stored(database) == 0


def test_nothing_is_stored_while_the_webhook_is_down(database: Database) -> None:
    request = messages.CreateJobRequest(job=message(make_job()), request_id="r")

    with (
        scene(database, webhook=False) as alone,
        grpc.insecure_channel(alone.address) as channel,
        refused(Code.UNAVAILABLE, "the webhook"),
    ):
        JobServiceStub(channel).CreateJob(request, timeout=SOON)

    assert stored(database) == stored(database, "request") == stored(database, "work") == 0


def test_a_job_is_as_it_was_sent_though_it_says_what_is_not_its_to_say(served: Scene) -> None:
    job = message(make_job("j"))
    job.metadata.uid = "00000000-0000-0000-0000-000000000007"
    job.metadata.resource_version, job.metadata.generation = "77", 7
    job.status.state.phase, job.status.retry_count = "Completed", 7

    made = served.jobs.CreateJob(messages.CreateJobRequest(job=job), timeout=SOON).job

    assert made.metadata.uid != job.metadata.uid
    assert (made.metadata.resource_version, made.metadata.generation) == ("2", 1)
    assert (made.status.state.phase, made.status.retry_count) == ("Pending", 0)


def test_a_call_tells_its_violations_to_any_client(served: Scene) -> None:
    with pytest.raises(grpc.RpcError) as refusal:
        served.create(make_job(queue="nope"))

    trailers = dict(cast("grpc.Call", refusal.value).trailing_metadata() or ())
    assert b"google.rpc.BadRequest" in trailers["grpc-status-details-bin"]
    assert b"spec.queue" in trailers["grpc-status-details-bin"]


def test_a_full_disk_refuses_for_now_and_loses_nothing(
    served: Scene, database: Database
) -> None:
    """Postgres says so by an error of its own, as a function of ours says it here."""
    kept = served.create(make_job("kept"))
    with database.transaction() as session:
        session.connection().exec_driver_sql(
            "create function full_disk() returns trigger language plpgsql as $$"
            " begin raise exception 'could not extend file: No space left on device'"
            " using errcode = 'disk_full'; end $$;"
            "create trigger full_disk before insert on job execute function full_disk()"
        )
    try:
        with refused(Code.UNAVAILABLE, "Postgres has no room", "No space left on device"):
            served.create(make_job("late"), request_id="late")
        assert served.get(kept) == kept
    finally:
        with database.transaction() as session:
            session.connection().exec_driver_sql(
                "drop trigger full_disk on job; drop function full_disk"
            )

    made = served.create(make_job("late"), request_id="late")

    assert served.create(make_job("late"), request_id="late") == made
    assert stored(database) == 2


# Together.


def test_of_jobs_that_come_together_each_has_its_own_answer(
    served: Scene, database: Database
) -> None:
    served.create(make_job("taken"))
    served.create(make_job("before"), request_id="before")
    admission = Admission(served.webhook)
    creating = Creating(database, admission)

    outcomes = creating.make(
        [
            New(make_job(name, queue=queue), Asking("CreateJob", id_, name.encode()))
            for name, queue, id_ in (
                ("good", "default", "r1"),
                ("taken", "default", "r2"),
                ("refused", "nowhere", "r3"),
                ("again", "default", "before"),
                ("twin", "default", "r4"),
                ("other", "default", "r4"),
                ("anew", "default", ""),
            )
        ]
    )
    admission.close()

    assert [type(one).__name__ for one in outcomes] == [
        "Made",
        "AlreadyExistsError",
        "InvalidError",
        "TwinError",
        "TwinError",
        "Made",
        "Made",
    ]
    assert '"nowhere"' in str(outcomes[2])
    assert stored(database) == 5
    good = outcomes[0]
    assert isinstance(good, Made)
    assert served.get(message(good.job)) == message(good.job)


def test_jobs_that_come_together_are_one_transaction(served: Scene, database: Database) -> None:
    admission = Admission(served.webhook)
    creating = Creating(database, admission)

    outcomes = creating.make(
        [
            New(make_job(f"j{number}"), Asking("CreateJob", f"r{number}", b""))
            for number in range(5, 0, -1)
        ]
    )
    admission.close()

    names = [one.job.metadata.name for one in outcomes if isinstance(one, Made)]
    assert names == ["j5", "j4", "j3", "j2", "j1"]
    with database.transaction() as session:
        assert value(session, "select count(distinct xmin::text) from pod_group") == 1
        assert value(session, "select count(*) from work") == 0
