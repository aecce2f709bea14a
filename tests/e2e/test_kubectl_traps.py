"""What clients do that servers of their own have tripped over, on a local cluster alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.documents import ROOT
from tests.support.kubectl import OURS, Kubectl, programs
from tests.support.local_cluster import LocalCluster, make_pod
from tests.support.waiting import wait_until

CRDS = ROOT / "deploy" / "crds"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A local cluster alone: no services, nothing defined."""
    running = LocalCluster(tmp_path_factory.mktemp("cluster") / "home", "--nodes=2").start()
    yield running
    running.end()


@pytest.fixture(
    scope="module", params=programs(), ids=lambda program: "ours" if program == OURS else "path"
)
def core(
    cluster: LocalCluster,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Kubectl:
    """A kubectl that knows nothing of the cluster yet."""
    program: Path = request.param
    return Kubectl(program, cluster.kubeconfig, tmp_path_factory.mktemp("kubectl"))


def test_core_kinds_are_listed_shown_and_picked(core: Kubectl) -> None:
    listed = {row["NAME"]: row for row in core.rows("api-resources")}

    assert listed["pods"]["SHORTNAMES"] == "po"
    assert listed["pods"]["APIVERSION"] == "v1"
    assert listed["priorityclasses"]["NAMESPACED"] == "false"
    assert listed["leases"]["KIND"] == "Lease"
    assert [row["NAME"] for row in core.rows("get", "nodes")] == ["node-0", "node-1"]
    assert core.ok("get", "no", "-o", "name").split() == ["node/node-0", "node/node-1"]
    cpu = core.ok("get", "node", "node-0", "-o", "jsonpath={.status.allocatable.cpu}")
    assert cpu == "16"
    assert core.names("nodes", "-l", "kubernetes.io/hostname=node-1") == ["node/node-1"]
    assert "NotFound" in core.fails("get", "node", "nowhere")
    assert "the server doesn't have a resource type" in core.fails("get", "nonsense")


def test_a_body_in_protobuf_is_refused_with_what_to_type_instead(cluster: LocalCluster) -> None:
    """Trap 1: kubectl since 1.32 sends it for ``create configmap`` and its like."""
    answer = cluster.call(
        "POST",
        "/api/v1/namespaces/default/configmaps",
        b"k8s\0...",
        content_type="application/vnd.kubernetes.protobuf",
    )

    assert answer.code == 415
    assert "create -f" in answer.body["message"]


def test_our_kubectl_shows_that_message(cluster: LocalCluster, tmp_path: Path) -> None:
    ours = Kubectl(OURS, cluster.kubeconfig, tmp_path)

    assert "create -f" in ours.fails("create", "configmap", "typed", "--from-literal=a=b")


@pytest.mark.parametrize("value", ["True", "true", "1", "yes"])
def test_a_watch_may_be_asked_for_in_every_way_there_is(
    cluster: LocalCluster, value: str
) -> None:
    """Trap 2: older Python clients write ``watch=True``."""
    with cluster.watching(f"/api/v1/nodes?watch={value}") as watch:
        assert watch.wait_for(2) == [("ADDED", "node-0"), ("ADDED", "node-1")]


def test_a_body_without_a_content_type_is_json(core: Kubectl, tmp_path: Path) -> None:
    """Trap 3: ``create --raw``, and the typed Python client."""
    path = tmp_path / "raw.json"
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "raw"}}
    path.write_text(json.dumps(made))

    core.ok("create", "--raw", "/api/v1/namespaces/default/configmaps", "-f", str(path))

    assert core.names("configmap", "raw") == ["configmap/raw"]
    core.ok("delete", "configmap", "raw")


def test_every_document_of_the_openapi_can_be_read(cluster: LocalCluster) -> None:
    """Trap 5: one that fails makes ``create`` fail for its whole group."""
    paths = cluster.get("/openapi/v3")["paths"]

    assert {"api/v1", "apis/apiextensions.k8s.io/v1"} <= set(paths)
    for found in paths.values():
        assert cluster.get(found["serverRelativeURL"])["openapi"].startswith("3.")


def test_a_kind_that_nobody_has_is_said_to_be_none(core: Kubectl) -> None:
    """kubectl looks for it in OpenAPI v2 too, as protobuf: an empty document ends that."""
    manifest = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Jobb\nmetadata: {name: a}\n"

    said = core.fails("create", "-f", "-", stdin=manifest)

    assert 'no matches for kind "Jobb" in version "batch.volcano.sh/v1alpha1"' in said


def test_definitions_are_applied_and_known_at_once_and_gone_when_deleted(core: Kubectl) -> None:
    """Traps 5 and 12: a property named ``$ref``; a kubectl that had learnt all kinds before."""
    assert "the server doesn't have a resource type" in core.fails("get", "vcjob")

    applied = core.ok("apply", "-f", str(CRDS)).splitlines()

    assert len(applied) == len(list(CRDS.glob("*.yaml")))
    assert all(line.endswith(" created") for line in applied)
    core.ok("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    assert core.names("vcjob") == []
    # As server, kubectl takes what it is told to: the definition is not what was applied.
    again = core.ok("apply", "-f", str(CRDS)).splitlines()
    assert all(line.endswith(" unchanged") for line in again)
    core.ok("delete", "-f", str(CRDS), "--timeout=20s")
    gone = core.fails("get", "vcjob")
    assert "could not find the requested resource" in gone or "resource type" in gone


def test_what_kubectl_run_sends_is_taken_without_its_status(core: Kubectl) -> None:
    """Trap 6: ``status: {}`` and ``creationTimestamp: null``."""
    sleeping = ("--image=none", "--restart=Never", "--command", "--", "sleep", "60")
    core.ok("run", "typed", *sleeping)
    core.ok("expose", "pod", "typed", "--port=80", "--name=typed")

    found = core.json("get", "pod", "typed")
    assert found["metadata"]["creationTimestamp"]
    assert found["status"]["phase"] == "Pending"
    core.ok("delete", "pod/typed", "service/typed", "--grace-period=1", "--timeout=20s")


def test_a_status_in_a_new_object_is_dropped(cluster: LocalCluster) -> None:
    body = make_pod("claims", "true") | {"status": {"phase": "Succeeded"}}
    body["metadata"]["creationTimestamp"] = None

    made = cluster.make("/api/v1/namespaces/default/pods", body)

    assert made["status"]["phase"] == "Pending"
    assert made["metadata"]["creationTimestamp"]
    cluster.call("DELETE", "/api/v1/namespaces/default/pods/claims")


def test_a_word_that_yaml_takes_for_a_boolean_is_told_with_its_path(core: Kubectl) -> None:
    """Trap 7: kubectl's YAML is 1.1, so ``y`` is true."""
    manifest = """
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: yes-no
          labels: {answer: y}
    """

    said = core.fails("create", "-f", "-", stdin=manifest)

    assert "labels" in said
    assert "NotFound" in core.fails("get", "configmap", "yes-no")


@pytest.mark.parametrize("path", ["/version", "/version/", "/version?timeout=5s"])
def test_the_version_is_told_however_it_is_asked_for(cluster: LocalCluster, path: str) -> None:
    """Trap 11: with a slash at its end by the Python client."""
    assert cluster.get(path)["gitVersion"].endswith("+hekla")


def test_a_pod_is_made_watched_read_described_and_deleted(core: Kubectl) -> None:
    pod = make_pod("lives", "sh", "-c", "echo hello; sleep 60", node="node-0")
    pod["spec"]["terminationGracePeriodSeconds"] = 1
    text = json.dumps({"apiVersion": "v1", "kind": "Pod", **pod})

    with core.started("get", "pods", "-w") as watch:
        assert core.ok("apply", "-f", "-", stdin=text) == "pod/lives created\n"
        core.ok("wait", "--for=condition=Ready", "pod/lives", "--timeout=20s")
        wait_until(lambda: core.ok("logs", "lives") == "hello\n", what="its output")
        assert "Node:" in core.ok("describe", "pod", "lives")
        strategic = '{"metadata":{"labels":{"a":"b"}}}'
        assert core.ok("patch", "pod", "lives", "-p", strategic) == "pod/lives patched\n"
        assert core.ok("apply", "-f", "-", stdin=text) == "pod/lives unchanged\n"
        watch.wait_for("Running")
        core.ok("delete", "pod", "lives", "--timeout=20s")
    assert core.names("pods", "-l", "a=b") == []
