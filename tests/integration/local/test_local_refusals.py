"""What the local cluster refuses, with a status that says why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.local_cluster import LocalCluster, Object, make_pod

PODS = "/api/v1/namespaces/default/pods"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    home: Path = tmp_path_factory.mktemp("cluster")
    running = LocalCluster(home, "--runtime=simulate", "--simulate-duration=1h").start()
    yield running
    assert running.end() == 0


def named(name: str, **more: Any) -> Object:
    return {"metadata": {"name": name}, **more}


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "reason", "says"),
    [
        pytest.param("POST", PODS, b"{", 400, "BadRequest", "not valid JSON", id="half a JSON"),
        pytest.param("POST", PODS, [1], 400, "BadRequest", "object", id="not an object"),
        pytest.param(
            "POST",
            PODS,
            {"kind": "Job"},
            400,
            "BadRequest",
            "does not match",
            id="another kind",
        ),
        pytest.param(
            "POST",
            PODS,
            {"metadata": {"name": "a", "namespace": "b"}},
            400,
            "BadRequest",
            "namespace",
            id="another namespace in the body",
        ),
        pytest.param("POST", CONFIGMAPS, {}, 422, "Invalid", "name", id="no name"),
        pytest.param(
            "POST", CONFIGMAPS, named("A_b"), 422, "Invalid", "metadata.name", id="a bad name"
        ),
        pytest.param(
            "POST",
            CONFIGMAPS,
            {"metadata": {"name": "x", "labels": {"a": True}}},
            422,
            "Invalid",
            "metadata.labels",
            id="a label that is no text",
        ),
        pytest.param(
            "POST",
            CONFIGMAPS,
            {"metadata": {"name": "x", "finalizers": [[]]}},
            422,
            "Invalid",
            "metadata.finalizers[0]",
            id="a finalizer that is no text",
        ),
        pytest.param(
            "POST",
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            named("x") | {"preemptionPolicy": []},
            422,
            "Invalid",
            "preemptionPolicy",
            id="a preemption policy that is no text",
        ),
        pytest.param(
            "POST",
            CONFIGMAPS,
            {
                "metadata": {
                    "name": "x",
                    "ownerReferences": [
                        {
                            "apiVersion": "v1",
                            "kind": "Pod",
                            "name": name,
                            "uid": name,
                            "controller": True,
                        }
                        for name in ("a", "b")
                    ],
                }
            },
            422,
            "Invalid",
            "Only one reference can have Controller set to true",
            id="two controllers",
        ),
        pytest.param(
            "POST",
            CONFIGMAPS,
            {"metadata": {"name": "x", "resourceVersion": "5"}},
            400,
            "BadRequest",
            "resourceVersion",
            id="a resource version on create",
        ),
        pytest.param(
            "POST",
            "/api/v1/namespaces/nowhere/configmaps",
            named("x"),
            404,
            "NotFound",
            'namespaces "nowhere" not found',
            id="a namespace that is missing",
        ),
        pytest.param("GET", f"{PODS}/no", None, 404, "NotFound", 'pods "no"', id="no such pod"),
        pytest.param(
            "GET", "/api/v1/bogus", None, 404, "NotFound", "could not find", id="no kind"
        ),
        pytest.param(
            *("GET", f"{PODS}/x/exec", None, 405, "MethodNotAllowed"),
            "pods/exec, which the local cluster does not have",
            id="exec",
        ),
        pytest.param(
            "PUT", PODS, named("x"), 405, "MethodNotAllowed", "pods", id="PUT on a list"
        ),
        pytest.param(
            "DELETE", "/api/v1/pods", None, 405, "MethodNotAllowed", "pods", id="DELETE of all"
        ),
        pytest.param(
            "GET",
            "/api/v1/pods?labelSelector=(",
            None,
            400,
            "BadRequest",
            "(",
            id="label selector",
        ),
        pytest.param(
            "GET",
            "/api/v1/pods?fieldSelector=spec.bogus=1",
            None,
            400,
            "BadRequest",
            "field label not supported: spec.bogus",
            id="field selector",
        ),
        pytest.param(
            "GET",
            "/api/v1/pods?resourceVersion=abc",
            None,
            400,
            "BadRequest",
            "abc",
            id="a resource version that is no number",
        ),
        pytest.param(
            "GET",
            "/api/v1/pods?resourceVersion=999999999",
            None,
            504,
            "Timeout",
            "Too large resource version",
            id="a resource version of the future",
        ),
        pytest.param(
            "POST",
            LEASES,
            b'{"metadata":{"name":"' + b"x" * 4_000_000 + b'"}}',
            413,
            "RequestEntityTooLarge",
            "limit",
            id="too large",
        ),
        pytest.param(
            *("POST", CONFIGMAPS, b'{"metadata":{"name":"half"', 400, "BadRequest"),
            "not valid JSON",
            id="half a JSON",
        ),
        pytest.param(
            *("POST", CONFIGMAPS, b'{"metadata":{"name":"x\\u0000"}}', 422, "Invalid"),
            "metadata.name",
            id="a name with NUL",
        ),
        pytest.param(
            *("POST", CONFIGMAPS, b'{"data":{"a":1e999}}', 400, "BadRequest"),
            "infinity",
            id="a number beyond all numbers",
        ),
        pytest.param(
            *("POST", CONFIGMAPS, b"[" * 200 + b"]" * 200, 400, "BadRequest"),
            "levels deep",
            id="deep lists",
        ),
        pytest.param(
            *("POST", CONFIGMAPS, b"[" * 100_000, 400, "BadRequest"),
            "depth limit",
            id="very deep lists",
        ),
        pytest.param(
            "DELETE",
            f"{CONFIGMAPS}/x",
            {"propagationPolicy": "Later"},
            400,
            "BadRequest",
            "Later",
            id="a propagation policy that is none",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_status(
    cluster: LocalCluster,
    method: str,
    path: str,
    *,
    body: Any,
    code: int,
    reason: str,
    says: str,
) -> None:
    answer = cluster.call(method, path, body)

    assert answer.code == code
    assert answer.body["kind"] == "Status"
    assert answer.body["status"] == "Failure"
    assert answer.body["code"] == code
    assert answer.body["reason"] == reason
    assert says in answer.body["message"]


@pytest.mark.parametrize(
    ("method", "path", "content_type", "says"),
    [
        ("POST", CONFIGMAPS, "application/vnd.kubernetes.protobuf", "create -f"),
        ("PATCH", f"{CONFIGMAPS}/x", "application/apply-patch+yaml", "without --server-side"),
    ],
)
def test_a_form_that_is_not_served_is_named_with_the_one_that_is(
    cluster: LocalCluster, method: str, path: str, content_type: str, says: str
) -> None:
    answer = cluster.call(method, path, b"{}", content_type=content_type)

    assert (answer.code, answer.body["reason"]) == (415, "UnsupportedMediaType")
    assert content_type in answer.body["message"]
    assert says in answer.body["message"]


def test_what_clients_send_along_and_the_server_decides_is_dropped(
    cluster: LocalCluster,
) -> None:
    pod = make_pod("sent-along")
    pod["metadata"] |= {"creationTimestamp": None, "uid": "mine", "generation": 7}
    pod["status"] = {}
    made = cluster.make(PODS, pod)

    assert made["status"]["phase"] == "Pending"
    assert made["metadata"]["creationTimestamp"]
    assert (made["metadata"]["uid"] != "mine", made["metadata"]["generation"]) == (True, 1)
