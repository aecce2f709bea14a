"""Real kubectl on the local cluster, typed as users type it, and what it prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.kubectl import OURS, Kubectl, programs
from tests.support.local_cluster import LocalCluster

PROGRAMS = programs()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A local cluster alone: core kinds need no services."""
    running = LocalCluster(tmp_path_factory.mktemp("cluster") / "home", "--nodes=2").start()
    yield running
    running.end()


@pytest.fixture(
    scope="module", params=PROGRAMS, ids=lambda program: "ours" if program == OURS else "path"
)
def core(
    cluster: LocalCluster,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Kubectl:
    """A kubectl that knows nothing of the cluster yet."""
    program: Path = request.param
    return Kubectl(program, cluster.kubeconfig, tmp_path_factory.mktemp("kubectl"))


def test_it_learns_the_version_and_what_kinds_there_are(core: Kubectl) -> None:
    told = json.loads(core.ok("version", "-o", "json"))
    listed = {row["NAME"]: row for row in core.rows("api-resources")}

    assert told["serverVersion"]["gitVersion"].endswith("+hekla")
    assert listed["pods"]["SHORTNAMES"] == "po"
    assert listed["pods"]["APIVERSION"] == "v1"
    assert listed["priorityclasses"]["NAMESPACED"] == "false"
    assert listed["leases"]["KIND"] == "Lease"
    assert [row["NAME"] for row in core.rows("get", "nodes")] == ["node-0", "node-1"]


def test_objects_are_shown_as_they_are_and_picked_by_path_and_label(core: Kubectl) -> None:
    assert core.ok("get", "no", "-o", "name").split() == ["node/node-0", "node/node-1"]
    shown: Any = core.json("get", "nodes")
    cpu = core.ok("get", "node", "node-0", "-o", "jsonpath={.status.allocatable.cpu}")

    assert [item["metadata"]["name"] for item in shown["items"]] == ["node-0", "node-1"]
    assert cpu == "16"
    assert core.names("nodes", "-l", "kubernetes.io/hostname=node-1") == ["node/node-1"]
    assert "NotFound" in core.fails("get", "node", "nowhere")
    assert "the server doesn't have a resource type" in core.fails("get", "nonsense")
