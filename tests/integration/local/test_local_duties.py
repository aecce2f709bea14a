"""What a cluster does by itself: garbage, claims, disruption budgets, service accounts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.support.local_cluster import Answer, LocalCluster, Object, make_pod
from tests.support.waiting import wait_until

SPACE = "/api/v1/namespaces/default"
PODS = f"{SPACE}/pods"
CONFIGMAPS = f"{SPACE}/configmaps"
CLAIMS = f"{SPACE}/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    home = tmp_path_factory.mktemp("cluster")
    running = LocalCluster(home, "--runtime=simulate", "--simulate-duration=1h").start()
    yield running
    assert running.end() == 0


def owned(name: str, *owners: Object, block: bool = False, **more: Any) -> Object:
    references = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": block,
        }
        for owner in owners
    ]
    return {"metadata": {"name": name, "ownerReferences": references, **more}}


def make(cluster: LocalCluster, body: Object) -> Object:
    return cluster.make(CONFIGMAPS, body)


def named(name: str) -> Object:
    return {"metadata": {"name": name}}


def gone(cluster: LocalCluster, *names: str) -> bool:
    return all(cluster.call("GET", f"{CONFIGMAPS}/{name}").code == 404 for name in names)


def wait_for(cluster: LocalCluster, *names: str) -> None:
    wait_until(lambda: gone(cluster, *names), what=f"{names} to be collected")


def delete(cluster: LocalCluster, name: str, propagation: str) -> Answer:
    return cluster.call("DELETE", f"{CONFIGMAPS}/{name}", {"propagationPolicy": propagation})


def test_what_nobody_owns_any_more_goes_and_what_has_another_owner_stays(
    cluster: LocalCluster,
) -> None:
    top, other = make(cluster, named("bg-top")), make(cluster, named("bg-other"))
    middle = make(cluster, owned("bg-middle", top))
    make(cluster, owned("bg-leaf", middle))
    make(cluster, owned("bg-shared", top, other))

    assert delete(cluster, "bg-top", "Background").body["status"] == "Success"

    wait_for(cluster, "bg-middle", "bg-leaf")

    def owners() -> Sequence[str]:
        shared = cluster.get(f"{CONFIGMAPS}/bg-shared")
        return [each["name"] for each in shared["metadata"]["ownerReferences"]]

    wait_until(lambda: owners() == ["bg-other"], what="the dead reference to go")


def test_a_delete_in_the_foreground_waits_for_what_blocks_it(cluster: LocalCluster) -> None:
    top = make(cluster, named("fg-top"))
    make(cluster, owned("fg-free", top, finalizers=["a.io/slow"]))
    make(cluster, owned("fg-held", top, block=True, finalizers=["a.io/slow"]))

    marked = delete(cluster, "fg-top", "Foreground").body

    assert marked["metadata"]["finalizers"] == ["foregroundDeletion"]
    wait_until(
        lambda: "deletionTimestamp" in cluster.get(f"{CONFIGMAPS}/fg-free")["metadata"],
        what="the owned to be deleted",
    )
    assert not gone(cluster, "fg-top")
    cluster.merge(f"{CONFIGMAPS}/fg-held", {"metadata": {"finalizers": None}})
    wait_for(cluster, "fg-held", "fg-top")
    assert not gone(cluster, "fg-free"), "nobody waits for it"
    cluster.merge(f"{CONFIGMAPS}/fg-free", {"metadata": {"finalizers": None}})


def test_orphans_stay_and_lose_their_reference(cluster: LocalCluster) -> None:
    top = make(cluster, named("or-top"))
    make(cluster, owned("or-child", top))

    delete(cluster, "or-top", "Orphan")

    wait_for(cluster, "or-top")
    assert "ownerReferences" not in cluster.get(f"{CONFIGMAPS}/or-child")["metadata"]


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        pytest.param({"name": "nobody"}, False, id="no such owner"),
        pytest.param({"uid": "another"}, False, id="an owner of that name with another uid"),
        pytest.param({"kind": "Job", "apiVersion": "x.io/v1"}, True, id="of an unknown kind"),
    ],
)
def test_an_owner_counts_if_it_is_there_with_its_uid(
    cluster: LocalCluster, change: Object, *, stays: bool
) -> None:
    top = make(cluster, {"metadata": {"generateName": "id-top-"}})
    body = owned("id-child", top)
    body["metadata"]["ownerReferences"][0] |= change
    make(cluster, body)

    if stays:
        make(cluster, owned("id-later", top))
        delete(cluster, top["metadata"]["name"], "Background")
        wait_for(cluster, "id-later")
        assert not gone(cluster, "id-child")
    else:
        wait_for(cluster, "id-child")


def test_garbage_is_collected_though_the_cluster_was_away(cluster: LocalCluster) -> None:
    top = make(cluster, named("away-top"))
    children = [f"away-{index}" for index in range(300)]
    for name in children:
        make(cluster, owned(name, top))
    delete(cluster, "away-top", "Background")

    cluster.kill()
    cluster.start()

    wait_for(cluster, "away-0", "away-150", "away-299")


def claim(name: str, **spec: Any) -> Object:
    asked = {"requests": {"storage": "1Gi"}}
    return {
        **named(name),
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": asked, **spec},
    }


def test_a_claim_is_bound_to_a_folder_and_kept_while_a_pod_uses_it(
    cluster: LocalCluster,
) -> None:
    made = cluster.make(CLAIMS, claim("data"))
    assert made["spec"]["storageClassName"] == "standard"
    assert made["status"]["phase"] == "Pending"
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    cluster.make(PODS, make_pod("user", node="node-0", volumes=[volume]))

    wait_until(lambda: phase(cluster, "data") == "Bound", what="the claim to be bound")

    name = cluster.get(f"{CLAIMS}/data")["spec"]["volumeName"]
    bound = cluster.get(f"{VOLUMES}/{name}")
    assert bound["status"]["phase"] == "Bound"
    assert bound["spec"]["claimRef"]["uid"] == made["metadata"]["uid"]
    cluster.wait_for_phase("user", "Running")
    cluster.call("DELETE", f"{CLAIMS}/data")
    assert cluster.get(f"{CLAIMS}/data")["metadata"]["finalizers"]
    cluster.call("DELETE", f"{PODS}/user?gracePeriodSeconds=0")
    wait_until(lambda: cluster.call("GET", f"{CLAIMS}/data").code == 404, what="it to go")
    wait_until(
        lambda: cluster.call("GET", f"{VOLUMES}/{name}").code == 404, what="volume to go"
    )


def phase(cluster: LocalCluster, name: str) -> str:
    return str(cluster.get(f"{CLAIMS}/{name}")["status"]["phase"])


def test_a_claim_takes_the_volume_that_fits_and_else_waits(cluster: LocalCluster) -> None:
    volume = {
        **named("mine"),
        "spec": {
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
            "hostPath": {"path": "/srv"},
            "storageClassName": "manual",
        },
    }
    cluster.make(CLAIMS, claim("early", storageClassName="manual"))
    much = {"requests": {"storage": "9Gi"}}
    cluster.make(CLAIMS, claim("large", storageClassName="manual", resources=much))
    cluster.make(VOLUMES, volume)

    wait_until(lambda: phase(cluster, "early") == "Bound", what="the claim to be bound")

    assert phase(cluster, "large") == "Pending"
    cluster.call("DELETE", f"{CLAIMS}/early")
    wait_until(
        lambda: cluster.get(f"{VOLUMES}/mine")["status"]["phase"] == "Released",
        what="the volume to be released",
    )


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (CLAIMS, named("x"), "spec"),
        (CLAIMS, claim("x", accessModes=[]), "spec.accessModes"),
        (CLAIMS, claim("x", accessModes=["Sometimes"]), "spec.accessModes"),
        (CLAIMS, claim("x", resources={}), "spec.resources.requests.storage"),
        (
            CLAIMS,
            claim("x", resources={"requests": {"storage": "much"}}),
            "spec.resources.requests[storage]",
        ),
        (CLAIMS, claim("x", storageClassName=5), "spec.storageClassName"),
        (
            VOLUMES,
            {**named("x"), "spec": {"accessModes": ["ReadWriteOnce"]}},
            "spec.capacity.storage",
        ),
        (BUDGETS, named("x"), "spec"),
        (BUDGETS, {**named("x"), "spec": {"minAvailable": "half"}}, "spec.minAvailable"),
        (BUDGETS, {**named("x"), "spec": {"minAvailable": 1, "maxUnavailable": 1}}, "spec"),
        (BUDGETS, {**named("x"), "spec": {"selector": {"matchLabels": 5}}}, "spec.selector"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_field(
    cluster: LocalCluster, path: str, body: Object, field: str
) -> None:
    answer = cluster.call("POST", path, body)

    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert field in [cause["field"] for cause in answer.body["details"]["causes"]]


def evict(cluster: LocalCluster, name: str, body: Object | None = None) -> Answer:
    full = {"apiVersion": "policy/v1", "kind": "Eviction", **named(name), **(body or {})}
    return cluster.call("POST", f"{PODS}/{name}/eviction", full)


def test_an_eviction_is_a_delete_that_a_budget_may_refuse(cluster: LocalCluster) -> None:
    for index in range(3):
        pod = make_pod(f"ev-{index}", node="node-1", terminationGracePeriodSeconds=60)
        pod["metadata"]["labels"] = {"app": "ev"}
        cluster.make(PODS, pod)
        cluster.wait_for_phase(f"ev-{index}", "Running")
    wanted = {"minAvailable": "60%", "selector": {"matchLabels": {"app": "ev"}}}
    cluster.make(BUDGETS, {**named("ev"), "spec": wanted})

    dry = evict(cluster, "ev-0", {"deleteOptions": {"dryRun": ["All"]}})
    assert (dry.code, dry.body["status"]) == (201, "Success")
    assert "deletionTimestamp" not in cluster.pod("ev-0")["metadata"]
    wrong = evict(cluster, "ev-0", {"deleteOptions": {"preconditions": {"uid": "other"}}})
    assert wrong.code == 409
    since = cluster.get(PODS)["metadata"]["resourceVersion"]
    with cluster.watching(f"{PODS}?watch=1&resourceVersion={since}") as watch:
        assert evict(cluster, "ev-0").code == 201
        watch.wait_for(1)
    conditions = watch.events[0]["object"]["status"]["conditions"]
    assert conditions[-1]["reason"] == "EvictionByEvictionAPI"
    refused = evict(cluster, "ev-1")
    assert (refused.code, refused.body["reason"]) == (429, "TooManyRequests")
    [cause] = refused.body["details"]["causes"]
    assert cause["reason"] == "DisruptionBudget"
    assert "ev needs 2 healthy pods and has 2 currently" in cause["message"]
    assert evict(cluster, "none").code == 404
    assert evict(cluster, "ev-1", named("ev-2")).code == 400
    assert evict(cluster, "ev-1", {"kind": "Binding"}).code == 400
    assert evict(cluster, "ev-1", {"deleteOptions": 5}).code == 400
    cluster.make(BUDGETS, {**named("ev-too"), "spec": wanted})
    assert evict(cluster, "ev-1").code == 500


def test_a_pod_has_the_account_of_its_namespace_and_none_that_is_missing(
    cluster: LocalCluster,
) -> None:
    cluster.make("/api/v1/namespaces", named("served"))
    space = "/api/v1/namespaces/served"

    pod = cluster.make(f"{space}/pods", make_pod("plain"))
    assert pod["spec"]["serviceAccountName"] == "default"
    refused = cluster.call("POST", f"{space}/pods", make_pod("x", serviceAccountName="spark"))
    assert (refused.code, refused.body["reason"]) == (403, "Forbidden")
    assert 'serviceaccount "spark" not found' in refused.body["message"]
    cluster.make(f"{space}/serviceaccounts", named("spark"))
    cluster.make(f"{space}/pods", make_pod("x", serviceAccountName="spark"))
    uid = cluster.get(f"{space}/serviceaccounts/default")["metadata"]["uid"]
    cluster.call("DELETE", f"{space}/serviceaccounts/default")
    wait_until(
        lambda: (
            cluster.call("GET", f"{space}/serviceaccounts/default")
            .body.get("metadata", {})
            .get("uid", uid)
            != uid
        ),
        what="another default account",
    )
    cluster.call("DELETE", space)
    wait_until(lambda: cluster.call("GET", space).code == 404, what="the namespace to go")
