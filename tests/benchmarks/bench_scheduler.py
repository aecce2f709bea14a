"""How soon a scheduler process binds: started on a large cluster, and after its leader's death.

``python -m tests.benchmarks.bench_scheduler [--scale 0.1]``. A local cluster that pretends,
a real Postgres, schedulers as processes; JSON and HTTP are in it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import orjson

from hekla.domain import names, timestamps
from hekla.local.storage.journal import Journal, Row
from hekla.store.migrate import migrate
from tests.benchmarks.figures import Figure, publish
from tests.support.local_cluster import LocalCluster, Object
from tests.support.postgres import server
from tests.support.scheduling_stack import Stack, stack
from tests.support.waiting import wait_until

NODES = 5_000
PODS = 140_000
GANG = 10
KILLS = 5
LONG = 600.0


def main() -> int:
    """Measure both; 1 where a floor is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="part of the full size")
    scale = parser.parse_args().scale
    with server() as postgres, tempfile.TemporaryDirectory(prefix="hekla-bench-") as folder:
        urls = [postgres.make_database(name) for name in ("cold", "failover")]
        for url in urls:
            migrate(url)
        figures = [
            cold_start(Path(folder) / "cold", urls[0], scale),
            failover(Path(folder) / "failover", urls[1]),
        ]
    return 0 if publish("scheduler", figures, scale=scale) else 1


def cold_start(folder: Path, url: str, scale: float) -> Figure:
    """From the start of a process to its first bind, on a cluster full of running pods."""
    nodes, pods = round(NODES * scale), round(PODS * scale)
    flags = (f"--nodes={nodes}", "--node-cpu=64", "--node-memory=256Gi", "--node-pods=110")
    folder.mkdir(parents=True)
    cluster = LocalCluster(folder / "cluster", "--runtime=simulate", *flags)
    cluster.start()
    cluster.end()
    fill(folder / "cluster" / "cluster.db", nodes, pods)
    with stack(folder, url, *flags) as made:
        made.gang("first", GANG)
        began = time.monotonic()
        scheduler = made.scheduler(HEKLA_SCHEDULER_STALL_TIMEOUT="60s")
        wait_recorded(made, "first")
        seconds = time.monotonic() - began
        known = scheduler.status()
        assert (known.nodes, known.pods) == (nodes, pods + GANG), "it bound before it knew all"
    work = f"cold start to first bind, {nodes:,} nodes, {pods:,} pods"
    return Figure(work, seconds, "s", 60, 10)


def fill(path: Path, nodes: int, pods: int) -> None:
    """Put running pods on the nodes of a cluster that is down."""
    journal = Journal(path)
    version = journal.version()
    now = timestamps.to_text(datetime.now(UTC))
    rows = []
    for number in range(pods):
        version += 1
        item = running_pod(number, node=f"node-{number % nodes}", version=version, now=now)
        rows.append(Row("pods", "default", item["metadata"]["name"], orjson.dumps(item)))
    journal.write(rows, version)
    journal.close()


def running_pod(number: int, *, node: str, version: int, now: str) -> Object:
    """A pod as its kubelet has left it."""
    state = {"running": {"startedAt": now}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"old-{number}",
            "namespace": "default",
            "uid": str(uuid4()),
            "resourceVersion": str(version),
            "creationTimestamp": now,
            "labels": {"app": "old", "volcano.sh/task-index": str(number)},
            "annotations": {names.SIMULATE_DURATION: "100h"},
        },
        "spec": {
            "schedulerName": names.SCHEDULER_NAME,
            "restartPolicy": "Never",
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": "none",
                    "env": [{"name": "VC_TASK_INDEX", "value": str(number)}],
                    "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
                }
            ],
        },
        "status": {
            "phase": "Running",
            "startTime": now,
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [
                {"name": "main", "ready": True, "restartCount": 0, "state": state}
            ],
        },
    }


def failover(folder: Path, url: str) -> Figure:
    """From the leader's death to the standby's first bind; the longest of several."""
    folder.mkdir(parents=True)
    took = []
    with stack(folder, url, "--nodes=10", "--node-pods=110") as made:
        leader = made.scheduler().wait_to_lead()
        for number in range(KILLS):
            heir = made.scheduler().wait_ready()
            made.gang(f"before-{number}", GANG, cpu="100m")
            wait_recorded(made, f"before-{number}")
            leader.kill()
            began = time.monotonic()
            made.gang(f"after-{number}", GANG, cpu="100m")
            wait_recorded(made, f"after-{number}")
            took.append(time.monotonic() - began)
            leader = heir
    shown = ", ".join(f"{seconds:.1f}" for seconds in took)
    return Figure(
        "leader killed to standby's first bind", max(took), "s", 8, 4, note=f"of {shown}"
    )


def wait_recorded(made: Stack, group: str) -> None:
    """Wait until Kubernetes knows a node for a pod of the group."""
    path = f"/api/v1/namespaces/default/pods/{group}-0"
    wait_until(
        lambda: made.cluster.get(path)["spec"].get("nodeName"),
        timeout=LONG,
        what=f"{group} to be bound",
    )


if __name__ == "__main__":
    sys.exit(main())
