"""The official Python client works with the local cluster as it does with any other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, config, watch

from tests.support.local_cluster import LocalCluster, make_pod


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    home = tmp_path_factory.mktemp("client")
    cluster = LocalCluster(home, "--nodes=2", "--runtime=simulate", "--simulate-duration=1h")
    cluster.start()
    with config.new_client_from_config(str(cluster.kubeconfig)) as connection:  # type: ignore[no-untyped-call]
        yield client.CoreV1Api(connection)
    cluster.end()


def test_pods_are_made_listed_watched_patched_bound_and_evicted(
    core: Any,
) -> None:
    made = core.create_namespaced_pod("default", make_pod("p", "sleep", "1"))
    listed = core.list_namespaced_pod("default")
    assert [pod.metadata.name for pod in listed.items] == ["p"]

    # A dict goes as a strategic patch, a list as a JSON patch.
    container = {"name": "main", "image": "other"}
    changed = core.patch_namespaced_pod("p", "default", {"spec": {"containers": [container]}})
    assert changed.spec.containers[0].command == ["sleep", "1"]
    assert changed.spec.containers[0].image == "other"
    operation = {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}
    labelled = core.patch_namespaced_pod("p", "default", [operation])
    assert labelled.metadata.labels == {"a": "b"}

    target = client.V1ObjectReference(api_version="v1", kind="Node", name="node-1")
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name="p"), target=target)
    bound = core.create_namespaced_pod_binding("p", "default", binding)
    assert bound.target.name == "node-1"
    with pytest.raises(client.ApiException) as twice:
        core.create_namespaced_pod_binding("p", "default", binding)
    assert twice.value.status == 409

    seen: list[tuple[str, Any]] = []
    evicted = False
    events: Any = watch.Watch()  # type: ignore[no-untyped-call]
    for event in events.stream(
        core.list_namespaced_pod,
        "default",
        resource_version=made.metadata.resource_version,
        timeout_seconds=20,
    ):
        seen.append((event["type"], event["object"].status.phase))
        if event["object"].status.phase == "Running" and not evicted:
            evicted = True
            grace = client.V1DeleteOptions(grace_period_seconds=0)
            eviction = client.V1Eviction(
                metadata=client.V1ObjectMeta(name="p"), delete_options=grace
            )
            core.create_namespaced_pod_eviction("p", "default", eviction)
        if event["type"] == "DELETED":
            break
    assert {kind for kind, _ in seen} == {"MODIFIED", "DELETED"}
    assert core.list_namespaced_pod("default").items == []


def test_dry_runs_and_deletes_of_many(core: Any) -> None:
    for name in ("a", "b"):
        body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data={"k": "v"})
        assert core.create_namespaced_config_map("default", body).data == {"k": "v"}
    dry = core.patch_namespaced_config_map("a", "default", {"data": {"k": "w"}}, dry_run="All")
    assert dry.data == {"k": "w"}
    assert core.read_namespaced_config_map("a", "default").data == {"k": "v"}
    core.delete_collection_namespaced_config_map("default", dry_run="All")
    assert len(core.list_namespaced_config_map("default").items) == 2
    core.delete_collection_namespaced_config_map("default")
    assert core.list_namespaced_config_map("default").items == []
