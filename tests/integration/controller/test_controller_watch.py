"""WatchJobs: everything after a cursor, in order, until either side ends it."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import grpc
import pytest

from hekla.domain.phases import JobAction
from hekla.store.database import Database
from hekla.v1 import job_service_pb2 as messages
from hekla.v1.job_service_pb2_grpc import JobServiceStub
from tests.support.controller_scene import SOON, Driver, Scene, message, refused, scene, until
from tests.support.objects import make_job
from tests.support.waiting import wait_until

Code = grpc.StatusCode
Seen = messages.WatchJobsResponse


def watch(served: Scene, cursor: str = "", **asked: str) -> Any:
    request = messages.WatchJobsRequest(cursor=cursor, **asked)
    return served.jobs.WatchJobs(request, timeout=SOON)


def shown(one: Seen) -> tuple[str, str]:
    return one.type, one.job.metadata.name


def bookmarked(one: Seen) -> bool:
    return one.type == "BOOKMARK"


def gone(name: str) -> Any:
    return lambda one: shown(one) == ("DELETED", name)


def listed_cursor(served: Scene) -> str:
    return served.jobs.ListJobs(messages.ListJobsRequest(), timeout=SOON).cursor


def versions(seen: Sequence[Seen]) -> dict[str, list[int]]:
    """The versions of each job, in the order they came."""
    found = defaultdict(list)
    for one in seen:
        if one.type != "BOOKMARK":
            found[one.job.metadata.uid].append(int(one.job.metadata.resource_version))
    return found


def through_its_life(served: Scene, driver: Driver, name: str) -> None:
    """A job that runs, is restarted, ends and is removed."""
    made = served.create(make_job(name))
    uid = made.metadata.uid
    driver.start(uid)
    driver.ask(uid, JobAction.RESTART_JOB)
    driver.look(uid)
    driver.stop_pods(uid)
    driver.start(uid)
    driver.end(uid)
    served.delete(made)
    driver.look(uid)
    driver.stop_pods(uid)


def test_a_watch_without_a_cursor_begins_with_all_there_is(served: Scene) -> None:
    for name in ("a", "b"):
        served.create(make_job(name))

    seen = until(watch(served), bookmarked)

    assert sorted(shown(one) for one in seen[:-1]) == [("ADDED", "a"), ("ADDED", "b")]
    assert not seen[-1].HasField("job")
    assert seen[-1].cursor


def test_a_watch_of_nothing_says_so_at_once(served: Scene) -> None:
    [only] = until(watch(served), bookmarked)

    assert only.cursor


def test_a_watch_goes_on_with_what_happens(served: Scene) -> None:
    stream = watch(served)
    until(stream, bookmarked)

    made = served.create(make_job("j"))
    served.delete(made)

    seen = until(stream, lambda one: bool(one.job.metadata.deletion_timestamp))
    assert {shown(one)[1] for one in seen if not bookmarked(one)} == {"j"}
    assert versions(seen)[made.metadata.uid] in ([2, 3], [3])


def test_a_watch_from_a_list_misses_nothing_that_came_after_it(served: Scene) -> None:
    served.create(make_job("before"))
    cursor = listed_cursor(served)
    served.create(make_job("after"))

    seen = until(watch(served, cursor), bookmarked)

    assert [shown(one) for one in seen[:-1]] == [("ADDED", "after")]


def test_from_every_cursor_a_watch_misses_nothing_and_never_goes_back(
    served: Scene, driver: Driver
) -> None:
    start = listed_cursor(served)
    whole = watch(served, start)
    with ThreadPoolExecutor(1) as other:
        reading = other.submit(until, whole, gone("last"))
        through_its_life(served, driver, "first")
        through_its_life(served, driver, "last")
        seen = reading.result()

    for position, one in enumerate(seen):
        rest = (
            until(watch(served, one.cursor), gone("last")) if position < len(seen) - 1 else []
        )
        known = {uid: found[-1] for uid, found in versions(seen[: position + 1]).items()}
        for uid, found in versions(rest).items():
            assert found == sorted(set(found))
            assert found[0] >= known.get(uid, 0)
        ended = {shown(other)[1] for other in seen[: position + 1] if other.type == "DELETED"}
        assert ended | {shown(other)[1] for other in rest if other.type == "DELETED"} == {
            "first",
            "last",
        }


def test_versions_only_grow_and_the_end_arrives_while_many_write(
    served: Scene, database: Database
) -> None:
    start = listed_cursor(served)

    def live(number: int) -> None:
        made = served.create(make_job(f"j{number}"))
        for count in range(4):
            changed = message(make_job(f"j{number}"))
            changed.metadata.labels["count"] = str(count)
            served.jobs.UpdateJob(messages.UpdateJobRequest(job=changed), timeout=SOON)
        served.delete(made)

    def read(stream: Any) -> list[Seen]:
        leaving: set[str] = set()
        seen = []
        for one in stream:
            seen.append(one)
            if one.job.metadata.deletion_timestamp:
                leaving.add(one.job.metadata.name)
            if len(leaving) == 8:
                break
        return seen

    with ThreadPoolExecutor(6) as many:
        reading = [many.submit(read, watch(served, start)) for _ in range(2)]
        list(many.map(live, range(8)))
        whole = [one.result() for one in reading]

    for seen in whole:
        for found in versions(seen).values():
            assert found == sorted(set(found))
            assert found[-1] == 7


def test_a_watch_shows_only_what_it_asks_for(served: Scene) -> None:
    for namespace in ("default", "other"):
        for name in ("a", "b"):
            job = message(make_job(name))
            job.metadata.namespace = namespace
            served.jobs.CreateJob(messages.CreateJobRequest(job=job), timeout=SOON)

    def names(**asked: str) -> list[tuple[str, str]]:
        seen = until(watch(served, **asked), bookmarked)[:-1]
        return sorted((one.job.metadata.namespace, one.job.metadata.name) for one in seen)

    assert names(namespace="other") == [("other", "a"), ("other", "b")]
    assert names(name="a") == [("default", "a"), ("other", "a")]
    assert names(namespace="default", name="b") == [("default", "b")]
    assert names(name="c") == []


def test_a_filtered_watch_moves_its_cursor_over_what_it_leaves_out(served: Scene) -> None:
    cursor = listed_cursor(served)
    for number in range(3):
        served.create(make_job(f"other-{number}"))

    [only] = until(watch(served, cursor, name="j"), bookmarked)

    assert only.cursor != cursor
    [nothing] = until(watch(served, only.cursor), bookmarked)
    assert nothing.type == "BOOKMARK"


def test_a_removed_job_is_told_with_its_last_state(served: Scene, driver: Driver) -> None:
    cursor = listed_cursor(served)
    through_its_life(served, driver, "j")

    [*_, last, _] = until(watch(served, cursor), bookmarked)

    assert shown(last) == ("DELETED", "j")
    assert last.job.status.state.phase == "Completed"
    assert last.job.status.succeeded == 1
    assert last.job.metadata.deletion_timestamp
    assert last.job.spec.tasks[0].template_json


@pytest.mark.parametrize(
    "cursor",
    [
        "nonsense",
        "\0",
        "a" * 100_000,
        ":::",
        f"{UUID(int=7).hex}:1:2:",
        "{here}:0:0:",
        "{here}:1:999999999999:",
        "{here}:-5:3:",
        "{here}:5:3:",
        "{here}:9223372036854775807:9223372036854775807:",
        "{here}:99999999999999999999999:99999999999999999999999999:",
        "{here}:1:9:2,2",
        "{here}:1:9:8,2",
        "{here}:1:9:x",
        "{here}:1:9:2;drop table job",
        "{here}:1:9:2\0",
        "{here}:1:9",
        "{here}:1e3:9:",
    ],
)
def test_a_cursor_that_is_none_of_ours_is_out_of_range(served: Scene, cursor: str) -> None:
    here = listed_cursor(served).partition(":")[0]

    with refused(Code.OUT_OF_RANGE):
        list(watch(served, cursor.replace("{here}", here)))


# Ends.


def admitted(served: Scene) -> Any:
    """A stream that has begun; None if there is no room for it."""
    stream = watch(served)
    try:
        until(stream, bookmarked)
    except grpc.RpcError:
        return None
    return stream


@pytest.fixture
def narrow(database: Database) -> Iterator[Scene]:
    """A controller that has room for two streams."""
    with scene(database, stream_permits=2) as served:
        yield served


def test_a_watch_ends_with_the_server_and_says_so(narrow: Scene) -> None:
    with grpc.insecure_channel(narrow.address) as channel:
        stream = JobServiceStub(channel).WatchJobs(messages.WatchJobsRequest(), timeout=SOON)
        until(stream, bookmarked)

        stopping = threading.Thread(target=narrow.stop)
        stopping.start()

        with refused(Code.UNAVAILABLE):
            until(stream, lambda _: False)
        stopping.join(timeout=10)
        assert not stopping.is_alive()


def test_a_client_that_goes_makes_room_for_another(narrow: Scene) -> None:
    first, second = watch(narrow), watch(narrow)
    for stream in (first, second):
        until(stream, bookmarked)
    with refused(Code.RESOURCE_EXHAUSTED, "2 streams"):
        list(watch(narrow))

    first.cancel()

    third = wait_until(lambda: admitted(narrow), what="the permit to come back")
    third.cancel()
    second.cancel()


def relabel(served: Scene, name: str, team: str) -> None:
    key = {"namespace": "default", "name": name}
    job = served.jobs.GetJob(messages.GetJobRequest(**key), timeout=SOON).job
    job.metadata.labels["team"] = team
    served.jobs.UpdateJob(messages.UpdateJobRequest(job=job), timeout=SOON)


def test_a_watch_of_labels_tells_when_a_job_begins_and_ceases_to_match(served: Scene) -> None:
    for name, team in (("a", "red"), ("b", "blue")):
        job = make_job(name)
        labelled = job.metadata.model_copy(update={"labels": {"team": team}})
        served.create(job.model_copy(update={"metadata": labelled}))
    stream = watch(served, label_selector="team=red", queue="default")
    assert [shown(one) for one in until(stream, bookmarked)][:-1] == [("ADDED", "a")]
    cursor = listed_cursor(served)

    def told(type_: str, name: str) -> list[tuple[str, str]]:
        seen = until(stream, lambda one: shown(one) == (type_, name))
        return [shown(one) for one in seen if not bookmarked(one)]

    relabel(served, "b", "red")
    assert told("ADDED", "b") == [("ADDED", "b")]
    relabel(served, "a", "blue")
    assert told("DELETED", "a") == [("DELETED", "a")]
    relabel(served, "a", "red")
    assert told("ADDED", "a") == [("ADDED", "a")]
    stream.cancel()
    again = watch(served, cursor, label_selector="team=blue")
    assert ("DELETED", "b") in {shown(one) for one in until(again, bookmarked)}
    again.cancel()
    assert [shown(one) for one in until(watch(served, queue="other"), bookmarked)] == [
        ("BOOKMARK", "")
    ]
    with refused(Code.INVALID_ARGUMENT, "selector"):
        next(watch(served, label_selector="=="))
