"""How fast the local cluster is: ``python -m tests.benchmarks.bench_local``.

Creates and binds by the Kubernetes client that the services use, lists, tables, and watchers,
against a local cluster whose containers only pretend; what it takes when nothing happens; then
containers that end at once, with sandboxes and without.
"""

from __future__ import annotations

import http.client
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from hekla.kube import definitions
from hekla.kube.client import KubeClient
from hekla.kube.requests import Binding
from hekla.kube.resources import PODS, QUEUES
from tests.benchmarks.bench_kube import pod
from tests.benchmarks.figures import Figure, publish
from tests.support.local_cluster import LocalCluster

WRITES: Final = 3_000
LISTED: Final = 5_000
WATCHERS: Final = 10
CHANGES: Final = 30
CONTAINERS: Final = 300
IDLE_SECONDS: Final = 5.0
ROOM: Final = ("--nodes=4", "--node-pods=2000", "--node-cpu=4000", "--node-memory=64Ti")
PRETENDING: Final = ("--runtime=simulate", "--simulate-duration=1h")
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"


@contextmanager
def running(*flags: str) -> Iterator[tuple[LocalCluster, KubeClient]]:
    """A local cluster with room for everything, and a client of it."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = LocalCluster(Path(folder), *ROOM, *flags).start()
        try:
            with KubeClient.start(str(cluster.kubeconfig), isolated=True) as client:
                yield cluster, client
        finally:
            cluster.end()


def plain(number: int) -> dict[str, Any]:
    """A pod of a job, as it is sent."""
    value = pod(number)
    del value["status"], value["metadata"]["uid"], value["metadata"]["resourceVersion"]
    value["spec"] |= {"restartPolicy": "Never"}
    return value


def writes() -> Iterator[Figure]:
    """Creates and binds a second, of pods and of what somebody defined."""
    with running(*PRETENDING) as (_, client):
        client.create_many(PODS, [plain(WRITES + number) for number in range(100)])
        pods = [plain(number) for number in range(WRITES)]
        began = time.perf_counter()
        client.create_many(PODS, pods)
        yield _rate("creates of pods", WRITES / (time.perf_counter() - began), 1_000)
        bindings = [
            Binding("default", value["metadata"]["name"], "", f"node-{number % 4}")
            for number, value in enumerate(pods)
        ]
        began = time.perf_counter()
        client.bind_many(bindings)
        yield _rate("binds", WRITES / (time.perf_counter() - began), 1_000)
        definitions.install(client)
        queues: list[dict[str, Any]] = [
            {
                "apiVersion": QUEUES.api_version,
                "kind": QUEUES.kind,
                "metadata": {"name": f"q-{number}"},
                "spec": {"weight": 1, "capability": {"cpu": "4", "memory": "8Gi"}},
            }
            for number in range(WRITES)
        ]
        began = time.perf_counter()
        client.create_many(QUEUES, queues)
        yield _rate("creates of queues", WRITES / (time.perf_counter() - began), 1_000)


def reads() -> Iterator[Figure]:
    """Lists and tables, and how long others wait for one; watchers; and idling."""
    with running(*PRETENDING) as (cluster, client):
        client.create_many(PODS, [plain(number) for number in range(LISTED)])
        yield _time("list of 5,000 pods", statistics.median(_reading(cluster, 5)), 300)
        table = _reading(cluster, 3, TABLE)
        yield _time("table of 5,000 pods", statistics.median(table), 1_000)
        yield _time("longest wait of others meanwhile", _waiting(cluster), 50)
        yield _time("a change at 10 watchers, p50", statistics.median(_fan_out(cluster)), 50)
    with running(*PRETENDING) as (cluster, _):
        before, began = _processor_seconds(cluster.pid), time.perf_counter()
        time.sleep(IDLE_SECONDS)
        share = (_processor_seconds(cluster.pid) - before) / (time.perf_counter() - began)
        yield Figure("idle", 100 * share, "% of a core", 2.0, 0.5)


def _rate(what: str, value: float, floor: float) -> Figure:
    return Figure(what, value, "/s", floor, 2 * floor, more_is_better=True)


def _time(what: str, seconds: float, floor: float) -> Figure:
    return Figure(what, 1_000 * seconds, "ms", floor, floor / 2)


def _reading(cluster: LocalCluster, times: int, accept: str = "*/*") -> list[float]:
    took = []
    for _ in range(times):
        connection = http.client.HTTPConnection("127.0.0.1", cluster.port)
        began = time.perf_counter()
        connection.request("GET", "/api/v1/pods", headers={"Accept": accept})
        connection.getresponse().read()
        took.append(time.perf_counter() - began)
        connection.close()
    return took


def _waiting(cluster: LocalCluster) -> float:
    """The longest time that a small request takes while a large table is made."""
    reader = threading.Thread(target=_reading, args=(cluster, 3, TABLE))
    reader.start()
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port)
    longest = 0.0
    while reader.is_alive():
        began = time.perf_counter()
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        longest = max(longest, time.perf_counter() - began)
    connection.close()
    return longest


def _fan_out(cluster: LocalCluster) -> list[float]:
    """The time from a change until the last of the watchers has heard of it."""
    path = "/api/v1/namespaces/default/configmaps"
    took = []
    with ExitStack() as open_watches:
        watches = [
            open_watches.enter_context(cluster.watching(f"{path}?watch=true"))
            for _ in range(WATCHERS)
        ]
        for number in range(CHANGES):
            began = time.perf_counter()
            cluster.make(path, {"metadata": {"name": f"c{number}"}})
            while any(len(each.events) <= number for each in watches):
                time.sleep(0.0005)
            took.append(time.perf_counter() - began)
    return took


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def containers(what: str, *flags: str) -> Iterator[Figure]:
    """Containers a second, from their pods' creation to the exit codes."""
    with running(*flags) as (cluster, client):
        pods = [plain(number) for number in range(CONTAINERS)]
        for number, value in enumerate(pods):
            value["spec"]["nodeName"] = f"node-{number % 4}"
            value["spec"]["containers"][0]["command"] = ["true"]
        began = time.perf_counter()
        client.create_many(PODS, pods)
        path = "/api/v1/pods?fieldSelector=status.phase%3DSucceeded&limit=1"
        over = 0
        while over < CONTAINERS:
            time.sleep(0.05)
            listed = cluster.get(path)
            over = len(listed["items"]) + listed["metadata"].get("remainingItemCount", 0)
        yield _rate(what, CONTAINERS / (time.perf_counter() - began), 50)


def main() -> int:
    """Print a table; 1 if a floor is missed."""
    figures = [
        *writes(),
        *reads(),
        *containers("containers in sandboxes"),
        *containers("containers as plain processes", "--sandboxes=false"),
    ]
    return 0 if publish("local", figures) else 1


if __name__ == "__main__":
    sys.exit(main())
