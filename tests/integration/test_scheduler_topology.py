"""Node counts of hypernodes, as the leader keeps them in a cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hekla.kube import definitions
from hekla.kube.client import KubeClient
from hekla.kube.fence import Fence
from hekla.lifecycle import repeating
from services.scheduler.events import Event
from services.scheduler.sources import watching
from services.scheduler.topology import Topology
from tests.support.local_cluster import LocalCluster, Object
from tests.support.waiting import wait_until

HYPER_NODES = "/apis/topology.volcano.sh/v1alpha1/hypernodes"


def ignore(event: Event) -> None:
    """The scheduler itself is not here."""
    del event


class Leader:
    """Whether the scheduler leads."""

    def __init__(self) -> None:
        self.leads = True


@pytest.fixture
def leader() -> Leader:
    return Leader()


@pytest.fixture
def cluster(tmp_path: Path, leader: Leader) -> Iterator[LocalCluster]:
    running = LocalCluster(tmp_path / "cluster", "--runtime=simulate", "--nodes=3").start()
    fence = Fence()
    fence.extend(time.monotonic() + 600)
    with ExitStack() as stack:
        client = stack.enter_context(
            KubeClient.start(str(running.kubeconfig), isolated=False, fence=fence)
        )
        definitions.install(client)
        topology = Topology(client, lambda: leader.leads)
        stack.callback(topology.close)
        stack.enter_context(watching(client, topology.before(ignore)))
        pause = timedelta(milliseconds=50)
        stack.enter_context(repeating("topology", topology.look, idle=pause))
        yield running
    running.end()


def make(cluster: LocalCluster, name: str, *members: dict[str, Any]) -> Object:
    spec = {"tier": 1, "members": list(members)}
    return cluster.make(HYPER_NODES, {"metadata": {"name": name}, "spec": spec})


def count(cluster: LocalCluster, name: str) -> int | None:
    status = cluster.get(f"{HYPER_NODES}/{name}").get("status") or {}
    found: int | None = status.get("nodeCount")
    return found


def until_counts(cluster: LocalCluster, **expected: int) -> None:
    def counts() -> bool:
        return {name: count(cluster, name) for name in expected} == expected

    wait_until(counts, what=f"the counts to be {expected}")


def test_the_leader_keeps_the_counts_whatever_changes(
    cluster: LocalCluster, leader: Leader
) -> None:
    labelled = {"labelMatch": {"matchLabels": {"rack": "a"}}}
    make(cluster, "rack-a", {"type": "Node", "selector": labelled})
    named = {"regexMatch": {"pattern": "^node-[01]$"}}
    make(cluster, "first", {"type": "Node", "selector": named})
    below = {"regexMatch": {"pattern": "rack|first"}}
    make(cluster, "top", {"type": "HyperNode", "selector": below})
    until_counts(cluster, **{"rack-a": 0, "first": 2, "top": 2})

    cluster.merge("/api/v1/nodes/node-2", {"metadata": {"labels": {"rack": "a"}}})
    until_counts(cluster, **{"rack-a": 1, "first": 2, "top": 3})
    cluster.merge(f"{HYPER_NODES}/first", {"status": {"nodeCount": 9}, "spec": {"tier": 2}})
    cluster.call("DELETE", f"{HYPER_NODES}/rack-a")
    until_counts(cluster, first=2, top=2)

    leader.leads = False
    make(cluster, "late", {"type": "Node", "selector": named})
    assert count(cluster, "late") is None
    leader.leads = True
    until_counts(cluster, late=2)
