from __future__ import annotations

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.local_cluster import Answer, LocalCluster, Object, make_pod
from tests.support.waiting import wait_until

PODS = "/api/v1/namespaces/default/pods"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    home: Path = tmp_path_factory.mktemp("cluster")
    running = LocalCluster(home, "--runtime=simulate", "--simulate-duration=1h").start()
    yield running
    assert running.end() == 0


def named(name: str, **more: Any) -> Object:
    return {"metadata": {"name": name}, **more}


def test_a_new_cluster_has_its_namespaces_nodes_and_classes(cluster: LocalCluster) -> None:
    def names(path: str) -> list[str]:
        return [item["metadata"]["name"] for item in cluster.get(path)["items"]]

    assert names("/api/v1/namespaces") == [
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
    ]
    assert names("/api/v1/nodes") == ["node-0", "node-1", "node-2"]
    assert names(CLASSES) == ["system-cluster-critical", "system-node-critical"]
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    wait_until(lambda: "node-1" in names(leases), what="the nodes' leases")
    node = cluster.get("/api/v1/nodes/node-0")
    assert node["status"]["allocatable"] == {
        "cpu": "16",
        "memory": "64Gi",
        "ephemeral-storage": "100Gi",
        "pods": "110",
        "nvidia.com/gpu": "8",
    }
    ready = [item for item in node["status"]["conditions"] if item["type"] == "Ready"]
    assert ready[0]["status"] == "True"


def test_what_is_created_can_be_read_changed_and_deleted(cluster: LocalCluster) -> None:
    made = cluster.make(CONFIGMAPS, named("life", data={"a": "1"}))
    path = f"{CONFIGMAPS}/life"

    assert made["apiVersion"] == "v1"
    assert made["kind"] == "ConfigMap"
    assert made["metadata"]["uid"]
    assert cluster.get(path) == made
    put = cluster.call("PUT", path, {**made, "data": {"a": "2"}})
    assert put.code == 200
    assert put.body["metadata"]["uid"] == made["metadata"]["uid"]
    assert int(put.body["metadata"]["resourceVersion"]) > int(
        made["metadata"]["resourceVersion"]
    )
    stale = cluster.call("PUT", path, {**made, "data": {"a": "3"}})
    assert (stale.code, stale.body["reason"]) == (409, "Conflict")
    patched = cluster.merge(path, {"data": {"b": "1", "a": None}})
    assert patched.body["data"] == {"b": "1"}
    deleted = cluster.call("DELETE", path)
    assert deleted.body["status"] == "Success"
    assert deleted.body["details"]["uid"] == made["metadata"]["uid"]
    assert cluster.call("GET", path).code == 404


def test_a_write_that_changes_nothing_makes_no_new_version(cluster: LocalCluster) -> None:
    made = cluster.make(CONFIGMAPS, named("same", data={"a": "1"}))

    again = cluster.merge(f"{CONFIGMAPS}/same", {"data": {"a": "1"}}).body

    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_a_name_is_generated_from_its_prefix(cluster: LocalCluster) -> None:
    body: Object = {"metadata": {"generateName": "gen-"}}

    names = {cluster.make(CONFIGMAPS, body)["metadata"]["name"] for _ in range(3)}

    assert len(names) == 3
    assert all(name.startswith("gen-") and len(name) == 9 for name in names)


def test_what_the_server_owns_cannot_be_set(cluster: LocalCluster) -> None:
    pod = make_pod("owned")
    pod["metadata"] |= {
        "uid": "mine",
        "creationTimestamp": None,
        "generation": 9,
        "deletionTimestamp": "2020-01-01T00:00:00Z",
        "managedFields": [{"manager": "me"}],
    }
    pod["status"] = {"phase": "Succeeded"}

    made = cluster.make(PODS, pod)

    assert made["metadata"]["uid"] != "mine"
    assert made["metadata"]["creationTimestamp"].endswith("Z")
    assert made["metadata"]["generation"] == 1
    assert made["status"]["phase"] == "Pending"
    assert not made["metadata"].keys() & {"deletionTimestamp", "managedFields"}


def test_a_dry_run_answers_as_if_and_keeps_nothing(cluster: LocalCluster) -> None:
    answer = cluster.call("POST", f"{CONFIGMAPS}?dryRun=All", named("dry"))

    assert answer.code == 201
    assert cluster.call("GET", f"{CONFIGMAPS}/dry").code == 404


@pytest.mark.parametrize("truth", ["true", "True", "1", "yes"])
def test_a_watch_is_asked_for_in_many_spellings(cluster: LocalCluster, truth: str) -> None:
    with cluster.watching(f"{PODS}?watch={truth}&fieldSelector=metadata.name=none") as watch:
        assert watch.code == 200
        assert not watch.ended.is_set()


def test_the_events_of_an_object_are_found_as_describe_asks_for_them(
    cluster: LocalCluster,
) -> None:
    pod = cluster.make(PODS, make_pod("described", "sleep", "1"))
    about = {"kind": "Pod", "namespace": "default", "name": "described"}
    about["uid"] = pod["metadata"]["uid"]
    events = "/api/v1/namespaces/default/events"
    for name, uid in (("of-it", about["uid"]), ("of-another", "u")):
        cluster.make(events, named(name, involvedObject=about | {"uid": uid}, reason="Seen"))

    asked = ",".join(f"involvedObject.{key}={value}" for key, value in about.items())
    found = cluster.get(f"{events}?fieldSelector={asked}&limit=500")["items"]

    assert [event["metadata"]["name"] for event in found] == ["of-it"]


def test_a_patch_may_not_blow_an_object_up(cluster: LocalCluster) -> None:
    cluster.make(CONFIGMAPS, named("small", data={"a": "b" * 1000}))
    copies = [
        {"op": "copy", "from": "/data", "path": f"/data/{number}"} for number in range(40)
    ]
    deeper = [
        {"op": "add", "path": "/data" + "/a" * depth, "value": {}} for depth in range(1, 600)
    ]
    for patch in (copies, deeper):
        content_type = "application/json-patch+json"
        answer = cluster.call("PATCH", f"{CONFIGMAPS}/small", patch, content_type=content_type)
        assert answer.code in {400, 422}


def test_strategic_patches_merge_lists_and_a_version_in_a_patch_is_a_condition(
    cluster: LocalCluster,
) -> None:
    made = cluster.make(PODS, make_pod("strategic", "sleep", "1"))
    path, content_type = f"{PODS}/strategic", "application/strategic-merge-patch+json"

    def patch(value: Any) -> Answer:
        return cluster.call("PATCH", path, value, content_type=content_type)

    changed = patch({"spec": {"containers": [{"name": "main", "image": "new"}]}})
    assert changed.body["spec"]["containers"][0]["command"] == ["sleep", "1"]
    assert changed.body["spec"]["containers"][0]["image"] == "new"
    same = patch({"spec": {"containers": [{"name": "main", "image": "new"}]}})
    version = same.body["metadata"]["resourceVersion"]
    assert version == changed.body["metadata"]["resourceVersion"]
    old = {"resourceVersion": made["metadata"]["resourceVersion"]}
    assert patch({"metadata": old | {"labels": {"a": "b"}}}).body["reason"] == "Conflict"
    assert patch({"spec": {"containers": [{"image": "x"}]}}).code == 422
    assert patch({"metadata": {"$retainKeys": "x"}}).code == 400
    assert patch([]).code == 400


def test_a_body_without_a_content_type_is_json(cluster: LocalCluster) -> None:
    headers = {"Content-Type": ""}

    answer = cluster.call("POST", CONFIGMAPS, named("untyped"), headers=headers)

    assert answer.code == 201


def test_all_that_is_wrong_with_a_pod_is_told_at_once(cluster: LocalCluster) -> None:
    pod = make_pod("wrong", restartPolicy="Sometimes")
    pod["spec"]["containers"] = [
        {"name": "a", "image": "x", "resources": {"requests": {"cpu": "much"}}},
        {"name": "a", "image": "", "env": [{"value": "x"}]},
    ]

    answer = cluster.call("POST", PODS, pod)

    assert answer.code == 422
    fields = {cause["field"]: cause["reason"] for cause in answer.body["details"]["causes"]}
    assert fields == {
        "spec.restartPolicy": "FieldValueNotSupported",
        "spec.containers[0].resources.requests[cpu]": "FieldValueInvalid",
        "spec.containers[1].name": "FieldValueDuplicate",
        "spec.containers[1].image": "FieldValueRequired",
        "spec.containers[1].env[0].name": "FieldValueRequired",
    }


def test_of_many_who_create_one_name_exactly_one_succeeds(cluster: LocalCluster) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda _: cluster.call("POST", CONFIGMAPS, named("race")), range(16))
        )

    assert sorted(answer.code for answer in answers) == [201] + [409] * 15
    refused = next(answer.body for answer in answers if answer.code == 409)
    assert refused["reason"] == "AlreadyExists"
    assert refused["message"] == 'configmaps "race" already exists'


def test_lists_select_by_labels_and_fields_and_come_in_pages(cluster: LocalCluster) -> None:
    path = "/api/v1/namespaces/paged/configmaps"
    cluster.make("/api/v1/namespaces", named("paged"))
    for index in range(5):
        body: Object = {"metadata": {"name": f"c{index}", "labels": {"odd": str(index % 2)}}}
        cluster.make(path, body)

    def names(listed: Object) -> list[str]:
        return [item["metadata"]["name"] for item in listed["items"]]

    assert names(cluster.get(path)) == ["c0", "c1", "c2", "c3", "c4"]
    assert names(cluster.get(f"{path}?labelSelector=odd%3D1")) == ["c1", "c3"]
    assert names(cluster.get(f"{path}?fieldSelector=metadata.name%3Dc2")) == ["c2"]
    first = cluster.get(f"{path}?limit=2")
    assert first["kind"] == "ConfigMapList"
    assert names(first) == ["c0", "c1"]
    assert first["metadata"]["remainingItemCount"] == 3
    second = cluster.get(f"{path}?limit=3&continue={first['metadata']['continue']}")
    assert names(second) == ["c2", "c3", "c4"]
    assert second["metadata"] == {"resourceVersion": first["metadata"]["resourceVersion"]}


def test_all_pages_are_the_list_as_it_was_when_the_first_was_read(
    cluster: LocalCluster,
) -> None:
    path = "/api/v1/namespaces/steady/configmaps"
    cluster.make("/api/v1/namespaces", named("steady"))
    for index in range(4):
        cluster.make(path, named(f"c{index}", data={"is": "old"}))
    first = cluster.get(f"{path}?limit=1")
    more = f"{path}?continue={first['metadata']['continue']}"

    cluster.make(path, named("c1a"))
    cluster.call("DELETE", f"{path}/c2")
    cluster.merge(f"{path}/c3", {"data": {"is": "new"}})

    rest = cluster.get(more)
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c1", "c2", "c3"]
    assert rest["items"][2]["data"] == {"is": "old"}
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert cluster.get(more) == rest
    other = cluster.call("GET", f"{more}&labelSelector=a")
    assert (other.code, other.body["reason"]) == (400, "BadRequest")
    assert cluster.call("GET", f"{path}?continue=bogus").code == 400
    unknown = base64.urlsafe_b64encode(b'["0123456789abcdef", 1]').decode()
    gone = cluster.call("GET", f"{path}?continue={unknown}")
    assert (gone.code, gone.body["reason"]) == (410, "Expired")


def test_a_json_patch_is_applied_whole_or_not_at_all(cluster: LocalCluster) -> None:
    path = f"{CONFIGMAPS}/patched"
    cluster.make(CONFIGMAPS, named("patched", data={"a": "1"}))

    def patch(*operations: Any) -> Answer:
        content_type = "application/json-patch+json"
        return cluster.call("PATCH", path, list(operations), content_type=content_type)

    test = {"op": "test", "path": "/data/a", "value": "1"}
    done = patch(test, {"op": "replace", "path": "/data/a", "value": "2"})
    assert (done.code, done.body["data"]) == (200, {"a": "2"})
    add = {"op": "add", "path": "/data/b", "value": "x"}
    for operations, code, says in (
        ([add, test], 422, "rejected"),
        ([add, {"op": "remove", "path": "/data/none"}], 422, "none"),
        ([{"op": "add", "path": "/data/a/b/c", "value": "x"}], 422, "rejected"),
        ([{"op": "leap", "path": "/data"}], 400, "leap"),
        ([{"op": "add", "path": "/data/b"}], 422, "value"),
        ([{"op": "add"}], 400, "path"),
        (["add"], 400, "operation 0"),
        ([{"op": "replace", "path": "", "value": 5}], 400, "object"),
        ([{"op": "add", "path": "/data/b", "value": 5}], 422, "data[b]"),
        ([{"op": "replace", "path": "/metadata/name", "value": "other"}], 400, "name"),
    ):
        answer = patch(*operations)
        assert (answer.code, answer.body["kind"]) == (code, "Status"), operations
        assert says in answer.body["message"]
    assert cluster.get(path)["data"] == {"a": "2"}


def test_a_delete_with_a_precondition_hits_only_what_was_meant(cluster: LocalCluster) -> None:
    made = cluster.make(CONFIGMAPS, named("meant"))
    path = f"{CONFIGMAPS}/meant"

    other = cluster.call("DELETE", path, {"preconditions": {"uid": "other"}})
    assert (other.code, other.body["reason"]) == (409, "Conflict")
    older = cluster.call("DELETE", path, {"preconditions": {"resourceVersion": "1"}})
    assert older.code == 409
    right = {"preconditions": {"uid": made["metadata"]["uid"]}}
    assert cluster.call("DELETE", path, right).code == 200


def test_finalizers_keep_an_object_until_the_last_one_is_taken_off(
    cluster: LocalCluster,
) -> None:
    path = f"{CONFIGMAPS}/kept"
    cluster.make(
        CONFIGMAPS, {"metadata": {"name": "kept", "finalizers": ["a.io/one", "b.io/two"]}}
    )

    marked = cluster.call("DELETE", path)
    assert marked.code == 200
    assert "deletionTimestamp" in marked.body["metadata"]
    added = cluster.merge(
        path, {"metadata": {"finalizers": ["a.io/one", "b.io/two", "c.io/x"]}}
    )
    assert added.code == 422
    assert cluster.merge(path, {"metadata": {"finalizers": ["b.io/two"]}}).code == 200
    assert cluster.get(path)["metadata"]["finalizers"] == ["b.io/two"]
    assert cluster.merge(path, {"metadata": {"finalizers": None}}).code == 200
    assert cluster.call("GET", path).code == 404


def test_all_objects_of_a_selection_are_deleted_together(cluster: LocalCluster) -> None:
    for name, app in (("d1", "x"), ("d2", "x"), ("d3", "y")):
        cluster.make(CONFIGMAPS, {"metadata": {"name": name, "labels": {"drop": app}}})

    answer = cluster.call("DELETE", f"{CONFIGMAPS}?labelSelector=drop%3Dx")

    assert [item["metadata"]["name"] for item in answer.body["items"]] == ["d1", "d2"]
    left = cluster.get(f"{CONFIGMAPS}?labelSelector=drop")["items"]
    assert [item["metadata"]["name"] for item in left] == ["d3"]


def test_status_and_spec_are_written_apart(cluster: LocalCluster) -> None:
    made = cluster.make(PODS, make_pod("apart"))
    path = f"{PODS}/apart"

    spec_too = {"status": {"message": "hi"}, "metadata": {"labels": {"x": "y"}}}
    written = cluster.merge(f"{path}/status", spec_too).body
    assert written["status"]["message"] == "hi"
    assert "labels" not in written["metadata"]
    assert written["metadata"]["generation"] == made["metadata"]["generation"]
    plain = cluster.merge(path, spec_too | {"status": {"message": "no"}}).body
    assert plain["metadata"]["labels"] == {"x": "y"}
    assert plain["status"]["message"] == "hi"
    assert cluster.merge(f"{path}/status", {"status": {"conditions": 5}}).code == 422


def test_the_spec_of_a_pod_stays_as_it_is(cluster: LocalCluster) -> None:
    cluster.make(PODS, make_pod("fixed"))

    moved = cluster.merge(f"{PODS}/fixed", {"spec": {"nodeName": "node-1"}})

    assert (moved.code, moved.body["reason"]) == (422, "Invalid")


def test_a_pod_is_bound_once(cluster: LocalCluster) -> None:
    made = cluster.make(PODS, make_pod("bound"))
    path = f"{PODS}/bound/binding"
    binding: Object = {
        "target": {"kind": "Node", "name": "node-1"},
        "metadata": {"uid": "other"},
    }

    assert cluster.call("POST", path, binding).code == 409
    binding["metadata"] = {"uid": made["metadata"]["uid"], "annotations": {"by": "me"}}
    assert cluster.call("POST", path, binding).code == 201
    pod = cluster.pod("bound")
    assert pod["spec"]["nodeName"] == "node-1"
    assert pod["metadata"]["annotations"] == {"by": "me"}
    assert "PodScheduled" in [item["type"] for item in pod["status"]["conditions"]]
    binding["target"]["name"] = "node-2"
    again = cluster.call("POST", path, binding)
    assert (again.code, again.body["reason"]) == (409, "Conflict")
    assert "node-1" in again.body["message"]
    assert cluster.call("POST", f"{PODS}/none/binding", binding).code == 404
    assert cluster.call("POST", path, {"target": {}}).code == 422


def test_a_pod_gets_the_priority_of_its_class(cluster: LocalCluster) -> None:
    cluster.make(CLASSES, named("high", value=1000, preemptionPolicy="Never"))

    pod = cluster.make(PODS, make_pod("high", priorityClassName="high"))
    assert (pod["spec"]["priority"], pod["spec"]["preemptionPolicy"]) == (1000, "Never")
    assert cluster.make(PODS, make_pod("plain"))["spec"]["priority"] == 0
    missing = cluster.call("POST", PODS, make_pod("missing", priorityClassName="none"))
    assert (missing.code, missing.body["reason"]) == (403, "Forbidden")
    wrong = cluster.call("POST", PODS, make_pod("wrong", priorityClassName="high", priority=5))
    assert wrong.code == 403
    cluster.make(CLASSES, named("usual", value=7, globalDefault=True))
    usual = cluster.make(PODS, make_pod("usual"))
    assert (usual["spec"]["priority"], usual["spec"]["priorityClassName"]) == (7, "usual")
    second = cluster.call("POST", CLASSES, named("second", value=8, globalDefault=True))
    assert second.code == 403
    assert cluster.merge(f"{CLASSES}/high", {"value": 5}).code == 422
    assert cluster.call("DELETE", f"{CLASSES}/usual").code == 200


def test_a_deleted_namespace_takes_all_that_is_in_it(cluster: LocalCluster) -> None:
    cluster.make("/api/v1/namespaces", named("doomed"))
    inside = "/api/v1/namespaces/doomed"
    cluster.make(f"{inside}/configmaps", named("a"))
    cluster.make(f"{inside}/configmaps", {"metadata": {"name": "b", "finalizers": ["a.io/x"]}})
    cluster.make(f"{inside}/pods", make_pod("p"))

    assert cluster.call("DELETE", inside).code == 200
    assert cluster.get(inside)["status"]["phase"] == "Terminating"
    late = cluster.call("POST", f"{inside}/configmaps", named("late"))
    assert late.code == 403
    assert late.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    wait_until(lambda: len(cluster.get(f"{inside}/configmaps")["items"]) == 1, what="one left")
    assert cluster.call("GET", f"{inside}/configmaps/b").code == 200
    cluster.merge(f"{inside}/configmaps/b", {"metadata": {"finalizers": None}})
    wait_until(lambda: cluster.call("GET", inside).code == 404, what="the namespace to go")
    assert cluster.call("DELETE", "/api/v1/namespaces/default").code == 403


def test_a_lease_is_replaced_only_with_its_version(cluster: LocalCluster) -> None:
    made = cluster.make(LEASES, named("lead", spec={"holderIdentity": "a"}))

    blind = cluster.call("PUT", f"{LEASES}/lead", named("lead", spec={"holderIdentity": "b"}))
    assert blind.code == 422
    assert cluster.call("PUT", f"{LEASES}/lead", made).code == 200


def test_secrets_take_plain_text_and_keep_base64(cluster: LocalCluster) -> None:
    path = "/api/v1/namespaces/default/secrets"

    made = cluster.make(path, named("s", stringData={"key": "hi"}))

    assert made["data"] == {"key": "aGk="}
    assert "stringData" not in made
    assert cluster.call("POST", path, named("t", data={"key": "???"})).code == 422


def test_discovery_lists_what_is_served(cluster: LocalCluster) -> None:
    groups = [group["name"] for group in cluster.get("/apis")["groups"]]
    core = {item["name"]: item for item in cluster.get("/api/v1")["resources"]}

    assert {"storage.k8s.io", "policy", "coordination.k8s.io"} <= set(groups)
    assert core["pods/eviction"]["group"] == "policy"
    assert core["pods"]["shortNames"] == ["po"]
    assert {"pods/status", "pods/binding", "pods/log"} <= core.keys()
    assert cluster.get("/version/")["major"] == "1"
    assert cluster.call("GET", "/readyz")[:2] == (200, "ok")


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://example.com"}, {"Host": "example.com"}, {"Host": "evil:80"}]
)
def test_a_web_page_cannot_use_the_api(cluster: LocalCluster, headers: dict[str, str]) -> None:
    assert cluster.call("POST", CONFIGMAPS, named("page"), headers=headers).code == 403
    assert cluster.call("GET", f"{CONFIGMAPS}/page").code == 404
