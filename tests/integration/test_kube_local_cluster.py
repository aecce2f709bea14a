"""The client against the local cluster: what is scripted elsewhere, with nothing scripted."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hekla.domain.errors import DomainError
from hekla.kube.client import KubeClient
from hekla.kube.events import WatchEvent
from hekla.kube.requests import Binding, Deletion, Patch
from hekla.kube.resources import CONFIGMAPS, NODES, PODS, PRIORITYCLASSES
from hekla.kube.subscription import Subscription
from tests.support.local_cluster import LocalCluster
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    running = LocalCluster(
        tmp_path_factory.mktemp("cluster"),
        "--runtime=simulate",
        "--simulate-duration=1h",
        "--watch-history=200",
    ).start()
    yield running
    running.end()


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Iterator[KubeClient]:
    with KubeClient.start(str(cluster.kubeconfig), isolated=False) as running:
        yield running


def pod(name: str, attempt: str = "a", **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": labels,
            "annotations": {"hekla.io/attempt-uid": attempt},
            "finalizers": ["hekla.io/outcome"],
        },
        "spec": {"containers": [{"name": "main", "image": "none", "command": ["true"]}]},
    }


def config(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


def uid_of(found: dict[str, Any] | None) -> str:
    assert found is not None
    return str(found["metadata"]["uid"])


class Names:
    """The config maps a watch has told of."""

    def __init__(self, watch: Subscription) -> None:
        self._watch = watch
        self.present: set[str] = set()
        self.relists = 0

    def until(self, *names: str) -> None:
        """Follow the watch until exactly these are there."""
        while self.present != set(names):
            batch = self._watch.take(10)
            assert batch, f"nothing more came after {sorted(self.present)}"
            for event in batch:
                self._see(event)

    def _see(self, event: WatchEvent) -> None:
        if event.type == "RELISTED":
            self.relists += 1
            self.present = {item["metadata"]["name"] for item in event.object}
        elif event.type == "DELETED":
            self.present.discard(event.object["metadata"]["name"])
        else:
            self.present.add(event.object["metadata"]["name"])


def test_a_pod_is_made_bound_ended_and_deleted(client: KubeClient) -> None:
    [made] = client.create_many(PODS, [pod("life")])
    uid = uid_of(made.found())
    [again] = client.create_many(PODS, [pod("life", attempt="b")])
    assert (again.status, again.reason, uid_of(again.object)) == (409, "AlreadyExists", uid)

    [stranger] = client.bind_many([Binding("default", "life", "another", "node-0")])
    [bound] = client.bind_many([Binding("default", "life", uid, "node-0")])
    [twice] = client.bind_many([Binding("default", "life", uid, "node-0")])
    [elsewhere] = client.bind_many([Binding("default", "life", uid, "node-1")])
    assert [stranger.status, bound.status, twice.status] == [409, 201, 201]
    assert elsewhere.status == 409
    assert elsewhere.object is not None
    assert elsewhere.object["spec"]["nodeName"] == "node-0"

    ended = {"status": {"phase": "Succeeded"}}
    [patched] = client.patch_many([Patch(PODS, "default", "life", ended, "status")])
    assert patched.found()["status"]["phase"] == "Succeeded"

    [wrong] = client.delete_many([Deletion(PODS, "default", "life", uid="another")])
    [going] = client.delete_many([Deletion(PODS, "default", "life", uid=uid, grace_seconds=0)])
    assert [wrong.status, going.status] == [409, 200]
    unlock: dict[str, Any] = {"metadata": {"uid": uid, "finalizers": []}}
    [unlocked] = client.patch_many([Patch(PODS, "default", "life", unlock)])
    assert unlocked.ok
    wait_until(
        lambda: client.get(PODS, "default", "life").status == 404, what="the end of the pod"
    )


def test_a_bad_object_is_refused_beside_good_ones(client: KubeClient) -> None:
    nameless = {"metadata": {"namespace": "default"}, "data": {}}
    homeless = {"metadata": {"name": "c", "namespace": "missing"}, "data": {}}

    replies = client.create_many(CONFIGMAPS, [config("good"), nameless, homeless])

    assert [reply.status for reply in replies] == [201, 422, 404]
    assert all(reply.message for reply in replies[1:])
    client.delete_many([Deletion(CONFIGMAPS, "default", "good")])


def test_lists_are_selected_and_whole(client: KubeClient) -> None:
    client.create_many(PODS, [pod(f"many-{n}", color="red") for n in range(700)])
    client.create_many(PODS, [pod("other", color="blue")])

    red, version = client.list(PODS, label_selector={"color": "red"})
    blue, _ = client.list(PODS, "default", label_selector="color notin (red)")
    nodes, _ = client.list(NODES, field_selector={"metadata.name": "node-1"})
    classes, _ = client.list(PRIORITYCLASSES)

    assert len({uid_of(item) for item in red}) == 700
    assert [item["metadata"]["name"] for item in blue] == ["other"]
    assert [item["metadata"]["name"] for item in nodes] == ["node-1"]
    assert classes
    assert int(version) > 0
    with pytest.raises(DomainError, match="selector"):
        client.list(PODS, label_selector="((")


def test_a_watch_tells_of_every_change(client: KubeClient) -> None:
    watch = client.watch(CONFIGMAPS, namespace="default", label_selector="w")
    names = Names(watch)
    names.until()

    def labelled(name: str) -> dict[str, Any]:
        made = config(name)
        made["metadata"]["labels"] = {"w": ""}
        return made

    client.create_many(CONFIGMAPS, [labelled("w1"), labelled("w2"), config("w3")])
    names.until("w1", "w2")
    unlabel = {"metadata": {"labels": {"w": None}}}
    client.patch_many([Patch(CONFIGMAPS, "default", "w1", unlabel)])
    names.until("w2")
    client.delete_many([Deletion(CONFIGMAPS, "default", name) for name in ("w1", "w2", "w3")])
    names.until()

    assert names.relists == 1
    watch.close()


def test_a_cluster_killed_and_started_again_is_followed(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path, "--runtime=simulate", "--watch-history=50").start()
    with KubeClient.start(str(cluster.kubeconfig), isolated=False) as client:
        names = Names(client.watch(CONFIGMAPS))
        client.create_many(CONFIGMAPS, [config("before")])
        names.until("before")

        cluster.end(signal.SIGKILL)
        cluster.start()
        try:
            replies = client.create_many(CONFIGMAPS, [config("after")])
            assert [reply.status for reply in replies] == [201]
            names.until("before", "after")

            # More changes than the history holds, while nobody reads.
            changes = [config(f"c{number}") for number in range(150)]
            client.create_many(CONFIGMAPS, changes)
            names.until("before", "after", *(f"c{number}" for number in range(150)))
        finally:
            cluster.end()


def test_a_missing_pod_has_no_log(client: KubeClient) -> None:
    with pytest.raises(DomainError, match="missing"):
        next(client.logs("default", "missing"))
