"""How fast the local cluster is: ``python -m tests.benchmarks.bench_local``.

Creates and binds by the Kubernetes client that the services use, against a local cluster whose
containers only pretend; then containers that end at once, with sandboxes and without.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hekla.kube.client import KubeClient
from hekla.kube.requests import Binding
from hekla.kube.resources import PODS
from tests.benchmarks.bench_kube import pod
from tests.support.local_cluster import LocalCluster

WRITES = 3_000
CONTAINERS = 300
ROOM = ("--nodes=4", "--node-pods=2000", "--node-cpu=4000", "--node-memory=64Ti")


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


def writes() -> Iterator[tuple[str, float]]:
    """Creates and binds a second."""
    with running("--runtime=simulate", "--simulate-duration=1h") as (_, client):
        client.create_many(PODS, [plain(WRITES + number) for number in range(100)])
        pods = [plain(number) for number in range(WRITES)]
        began = time.perf_counter()
        made = client.create_many(PODS, pods)
        yield "creates/s", WRITES / (time.perf_counter() - began)
        del made
        names = [value["metadata"]["name"] for value in pods]
        bindings = [
            Binding("default", name, "", f"node-{number % 4}")
            for number, name in enumerate(names)
        ]
        began = time.perf_counter()
        client.bind_many(bindings)
        yield "binds/s", WRITES / (time.perf_counter() - began)


def containers(*flags: str) -> Iterator[tuple[str, float]]:
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
        yield "containers/s", CONTAINERS / (time.perf_counter() - began)


def main() -> None:
    """Print one line for each figure."""
    for name, figures in (
        ("simulated", writes()),
        ("in sandboxes", containers()),
        ("as plain processes", containers("--sandboxes=false")),
    ):
        for what, figure in figures:
            sys.stdout.write(f"local cluster, {name}: {what}: {figure:,.0f}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
