"""CreateJobs: many jobs of one template, admitted once, stored in chunks, once."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
import pytest

from hekla import failpoint
from hekla.rpc.channel import connect
from hekla.store.database import Database
from hekla.v1 import job_service_pb2 as messages
from tests.support.controller_scene import CHUNK, SOON, Scene, message, refused, scene
from tests.support.objects import make_job, make_task
from tests.support.store import value

Code = grpc.StatusCode

MANY = [str(number) for number in range(2 * CHUNK + 5)]


def create(
    served: Scene, suffixes: Sequence[str], *, request_id: str = "", name: str = "many"
) -> messages.CreateJobsResponse:
    template = message(make_job(name, make_task("t", 2)))
    request = messages.CreateJobsRequest(
        template=template, suffixes=suffixes, request_id=request_id
    )
    return served.jobs.CreateJobs(request, timeout=SOON)


def count(database: Database) -> int:
    with database.transaction() as session:
        return int(value(session, "select count(*) from job"))


def test_there_is_a_job_for_each_suffix_as_if_it_had_been_created_alone(
    served: Scene, database: Database
) -> None:
    alone = served.create(make_job("many-x", make_task("t", 2)))

    answer = create(served, MANY)

    assert len(set(answer.uids)) == len(MANY)
    [last] = served.jobs.ListJobs(messages.ListJobsRequest(page_size=500), timeout=SOON).jobs[
        -1:
    ]
    made = served.jobs.GetJob(messages.GetJobRequest(uid=answer.uids[-1]), timeout=SOON).job
    assert made.metadata.name == f"many-{MANY[-1]}"
    assert (made.spec, made.status.state.phase) == (alone.spec, "Pending")
    assert last.metadata.uid in answer.uids
    with database.transaction() as session:
        assert value(session, "select count(*) from work") == len(MANY)


def test_the_same_call_again_makes_nothing_and_is_answered_alike(
    served: Scene, database: Database
) -> None:
    first = create(served, MANY, request_id="r")

    assert create(served, MANY, request_id="r") == first
    assert count(database) == len(MANY)
    with refused(Code.INVALID_ARGUMENT, "was used for another"):
        create(served, MANY[:-1], request_id="r")
    with refused(Code.INVALID_ARGUMENT, "was used for another"):
        create(served, MANY, request_id="r", name="other")
    assert count(database) == len(MANY)


def test_a_call_that_broke_off_in_its_middle_is_finished_by_its_repetition(
    served: Scene, database: Database
) -> None:
    with failpoint.armed("controller.chunk-stored=raise@1"), refused(Code.INTERNAL):
        create(served, MANY, request_id="r")
    assert count(database) == CHUNK

    answer = create(served, MANY, request_id="r")

    assert count(database) == len(MANY)
    assert len(set(answer.uids)) == len(MANY)
    assert create(served, MANY, request_id="r") == answer


def test_names_that_are_taken_are_told_of_and_nothing_is_made(
    served: Scene, database: Database
) -> None:
    served.create(make_job("many-3"))
    with refused(Code.ALREADY_EXISTS, "job default/many-3 exists already"):
        create(served, MANY, request_id="r")
    for number in range(12):
        served.create(make_job(f"many-{4 + number}"))

    with refused(Code.ALREADY_EXISTS, "13 jobs exist already: ", "many-10, ", "and 3 more"):
        create(served, MANY, request_id="r")

    assert count(database) == 13


def test_what_cannot_be_finished_says_how_much_there_is(
    served: Scene, database: Database
) -> None:
    with failpoint.armed("controller.chunk-stored=raise@1"), refused(Code.INTERNAL):
        create(served, MANY, request_id="r")
    served.create(make_job(f"many-{MANY[-1]}"))

    with refused(Code.ALREADY_EXISTS, MANY[-1], f"{CHUNK} of {len(MANY)} jobs were made"):
        create(served, MANY, request_id="r")

    assert count(database) == CHUNK + 1


@pytest.mark.parametrize(
    ("suffixes", "name", "words"),
    [
        ([], "many", ["suffixes: is required"]),
        (["a", "b", "a"], "many", ["suffixes[2]: is suffixes[0] too: 'a'"]),
        (["a", "B_"], "many", ["suffixes[1]", "lower case"]),
        (["a"], "", ["template.metadata.name: is required"]),
        (["a" * 60], "many", ["characters", "63"]),
    ],
)
def test_what_makes_no_sense_is_refused_whole(
    served: Scene, database: Database, suffixes: list[str], name: str, words: list[str]
) -> None:
    with refused(Code.INVALID_ARGUMENT, *words):
        create(served, suffixes, name=name)
    assert count(database) == 0


def test_more_pods_than_a_job_may_have_are_refused_whatever_the_door(
    served: Scene, database: Database
) -> None:
    huge = message(make_job("huge", make_task("t", 100_001)))
    words = ("spec.tasks: must not ask for more than 100000 pods, asks for 100001",)
    with refused(Code.INVALID_ARGUMENT, *words):
        served.jobs.CreateJob(messages.CreateJobRequest(job=huge), timeout=SOON)
    with refused(Code.INVALID_ARGUMENT, *words):
        request = messages.CreateJobsRequest(template=huge, suffixes=["a"])
        served.jobs.CreateJobs(request, timeout=SOON)
    assert count(database) == 0

    made = served.create(make_job("small", make_task("t", 2)))
    made.spec.tasks[0].replicas = 100_001
    with refused(Code.INVALID_ARGUMENT, *words):
        served.jobs.UpdateJob(messages.UpdateJobRequest(job=made), timeout=SOON)


def test_a_job_of_three_mebibytes_is_stored_and_read_back(served: Scene) -> None:
    task = make_task("t", 1)
    assert task.template is not None
    task.template["spec"]["containers"][0]["args"] = ["x" * (3 * 2**20)]

    made = served.create(make_job("large", task))

    assert served.get(made) == made
    assert made.ByteSize() > 3 * 2**20


def test_permits_that_are_used_up_are_told_of_at_once_and_others_are_answered(
    database: Database,
) -> None:
    with (
        scene(database, webhook=False, stream_permits=8) as served,
        connect(served.address) as channel,
    ):
        watch = channel.unary_stream(
            "/hekla.v1.JobService/WatchJobs",
            request_serializer=messages.WatchJobsRequest.SerializeToString,
            response_deserializer=messages.WatchJobsResponse.FromString,
        )
        # Nobody reads any of them but for the first message.
        streams = [watch(messages.WatchJobsRequest(), timeout=SOON) for _ in range(12)]
        codes = []
        for stream in streams:
            try:
                next(stream)
                codes.append(Code.OK)
            except grpc.RpcError as error:
                codes.append(error.code())

        assert codes.count(Code.OK) == 8
        assert codes.count(Code.RESOURCE_EXHAUSTED) == 4
        assert not served.jobs.ListJobs(messages.ListJobsRequest(), timeout=SOON).jobs
        for stream in streams:
            stream.cancel()
