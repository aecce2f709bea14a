"""GetLogs: what pods of a real cluster printed, of one pod or of many."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from hekla.kube.client import KubeClient
from hekla.local.runtimes import strays
from hekla.store.database import Database
from hekla.store.schema import AttemptRow
from hekla.v1 import job_service_pb2 as messages
from services.controller import logs
from tests.support.controller_scene import SOON, Scene, refused, scene
from tests.support.local_cluster import LocalCluster, make_pod
from tests.support.store import add_job, confirm, plan
from tests.support.waiting import wait_until

Code = grpc.StatusCode
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    running = LocalCluster(tmp_path_factory.mktemp("cluster"), "--nodes=1").start()
    yield running
    running.end()
    strays.kill_strays(running.home)


@pytest.fixture(scope="module")
def kube(cluster: LocalCluster) -> Iterator[KubeClient]:
    with KubeClient.start(str(cluster.kubeconfig), isolated=False) as client:
        yield client


@pytest.fixture
def reading(database: Database, kube: KubeClient) -> Iterator[Scene]:
    """A controller that reads the cluster's logs."""
    with scene(database, kube=kube) as served:
        yield served


def a_job(
    database: Database, cluster: LocalCluster, name: str, script: str = "echo I am $$0"
) -> list[AttemptRow]:
    """A job of tasks a (2 pods) and b (1 pod), all of which print something."""
    job = add_job(database, name)
    rows = confirm(database, *plan(database, job, ("a", 0), ("a", 1), ("b", 0)))
    for row in rows:
        pod = make_pod(row.pod_name, "sh", "-c", script, row.pod_name, node="node-0")
        cluster.make(PODS, pod)
    return rows


def read(served: Scene, **asked: Any) -> dict[str, str]:
    """What each pod printed."""
    found: dict[str, bytes] = defaultdict(bytes)
    for one in served.jobs.GetLogs(messages.GetLogsRequest(**asked), timeout=SOON):
        found[one.pod] += one.data
    return {pod: data.decode() for pod, data in found.items()}


def test_logs_are_of_all_pods_of_a_job_or_of_some(
    reading: Scene, database: Database, cluster: LocalCluster
) -> None:
    for row in a_job(database, cluster, "some"):
        cluster.wait_for_phase(row.pod_name, "Succeeded")
    whole = {f"some-{pod}": f"I am some-{pod}\n" for pod in ("a-0", "a-1", "b-0")}

    assert read(reading, job="some") == whole
    assert list(read(reading, job="some")) == list(whole), "task by task, in order"
    assert read(reading, job="some", task="b") == {"some-b-0": "I am some-b-0\n"}
    assert read(reading, job="some", index=1) == {"some-a-1": "I am some-a-1\n"}
    assert read(reading, job="some", task="a", index=0) == {"some-a-0": "I am some-a-0\n"}
    assert read(reading, pod="some-a-1") == {"some-a-1": "I am some-a-1\n"}
    assert read(reading, pod="some-a-1", container="main", follow=True)


def test_the_last_lines_are_enough_for_some(
    reading: Scene, database: Database, cluster: LocalCluster
) -> None:
    rows = a_job(database, cluster, "tail", "echo one; echo two; echo three")
    cluster.wait_for_phase(rows[0].pod_name, "Succeeded")

    assert read(reading, pod="tail-a-0", tail_lines=2) == {"tail-a-0": "two\nthree\n"}
    assert read(reading, pod="tail-a-0", tail_lines=0) == {}
    with refused(Code.INVALID_ARGUMENT, "tail_lines: must be >= 0, is -1"):
        read(reading, pod="tail-a-0", tail_lines=-1)


def test_several_pods_are_followed_at_once_until_all_have_ended(
    reading: Scene, database: Database, cluster: LocalCluster
) -> None:
    go_on = cluster.home / "go-on"
    script = f"echo first; until [ -e {go_on} ]; do sleep 0.05; done; echo last"
    a_job(database, cluster, "follow", script)
    for pod in ("a-0", "a-1", "b-0"):
        cluster.wait_for_phase(f"follow-{pod}", "Running")

    stream = reading.jobs.GetLogs(
        messages.GetLogsRequest(job="follow", follow=True), timeout=SOON
    )
    seen = {next(stream).pod for _ in range(3)}
    go_on.touch()
    rest: dict[str, bytes] = defaultdict(bytes)
    for one in stream:
        rest[one.pod] += one.data

    assert seen == {"follow-a-0", "follow-a-1", "follow-b-0"}
    assert dict(rest) == dict.fromkeys(seen, b"last\n")


def test_who_stops_reading_leaves_nothing_behind(
    reading: Scene, database: Database, cluster: LocalCluster
) -> None:
    a_job(database, cluster, "leave", "echo first; sleep 1000")
    for pod in ("a-0", "a-1", "b-0"):
        cluster.wait_for_phase(f"leave-{pod}", "Running")

    def following() -> int:
        return sum("log-leave" in thread.name for thread in threading.enumerate())

    stream = reading.jobs.GetLogs(
        messages.GetLogsRequest(job="leave", follow=True), timeout=SOON
    )
    next(stream)
    wait_until(lambda: following() == 3, what="a thread for each pod")
    stream.cancel()

    wait_until(lambda: following() == 0, what="the threads to end")


def test_a_followed_log_ends_with_the_server(
    database: Database, cluster: LocalCluster, kube: KubeClient
) -> None:
    a_job(database, cluster, "stop", "echo first; sleep 1000")
    cluster.wait_for_phase("stop-a-0", "Running")

    with scene(database, kube=kube) as served:
        one = served.jobs.GetLogs(
            messages.GetLogsRequest(pod="stop-a-0", follow=True), timeout=SOON
        )
        next(one)
        stopping = threading.Thread(target=served.stop)
        stopping.start()
        with refused(Code.UNAVAILABLE):
            list(one)
        stopping.join(10)
        assert not stopping.is_alive()


def test_there_is_no_log_of_what_is_not_there(
    reading: Scene, database: Database, cluster: LocalCluster
) -> None:
    waiting = add_job(database, "waiting")
    plan(database, waiting, ("a", 0))
    cluster.make(PODS, make_pod("unplaced", "true"))

    with refused(Code.NOT_FOUND, "default/nobody"):
        read(reading, job="nobody")
    with refused(Code.NOT_FOUND, "default/waiting", "no pod now"):
        read(reading, job="waiting")
    with refused(Code.NOT_FOUND, "no pod of task a at index 1"):
        read(reading, job="waiting", task="a", index=1)
    with refused(Code.NOT_FOUND, "nobody"):
        read(reading, pod="nobody")
    with pytest.raises(grpc.RpcError) as refusal:
        read(reading, pod="unplaced")
    assert refusal.value.code() in (Code.FAILED_PRECONDITION, Code.INVALID_ARGUMENT)


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        ({}, "job: is required unless pod is given"),
        ({"pod": "../nodes"}, "pod: must consist of"),
        ({"pod": ".."}, "pod: must consist of"),
        ({"pod": "a\0"}, "pod"),
        ({"pod": "p", "namespace": ".."}, "namespace: must consist of"),
        ({"pod": "p", "container": "a b"}, "container: must consist of"),
        ({"job": "a\0"}, "job"),
        ({"pod": "x" * 300}, "pod: must be no more than"),
    ],
)
def test_a_question_about_logs_that_makes_no_sense_is_refused(
    served: Scene, asked: dict[str, Any], word: str
) -> None:
    with refused(Code.INVALID_ARGUMENT, word):
        read(served, **asked)


def test_more_pods_than_can_be_followed_are_refused(
    reading: Scene, database: Database, cluster: LocalCluster
) -> None:
    stored = add_job(database, "many")
    confirm(
        database,
        *plan(database, stored, *[("a", index) for index in range(logs.MOST_FOLLOWED + 1)]),
    )

    with refused(Code.RESOURCE_EXHAUSTED, "51 pods", "name a task or an index"):
        read(reading, job="many", follow=True)
