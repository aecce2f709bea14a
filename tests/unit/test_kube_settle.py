from __future__ import annotations

from typing import Any

import orjson
import pytest

from hekla.kube import writes
from hekla.kube.requests import Binding, Deletion, Patch
from hekla.kube.resources import CONFIGMAPS, JOBS, PODS, QUEUES
from hekla.kube.wire import Outcome, Verb, Write
from hekla.kube.writes import UNANSWERED, settle

CREATE = writes.creation(
    PODS,
    {
        "metadata": {
            "namespace": "ns",
            "name": "p",
            "annotations": {"hekla.io/attempt-uid": "ours"},
        }
    },
)
UNMARKED = writes.creation(CONFIGMAPS, {"metadata": {"namespace": "ns", "name": "p"}})
DELETE = writes.deletion(Deletion(PODS, "ns", "p", uid="u1"))
DELETE_ANY = writes.deletion(Deletion(PODS, "ns", "p"))
BIND = writes.binding(Binding("ns", "p", "u1", "n1"))
GONE = Outcome(404)
UNREADABLE = Outcome(503)


def pod(
    uid: str = "u1",
    *,
    node: str | None = None,
    attempt: str | None = None,
    deleting: bool = False,
) -> Outcome:
    metadata: dict[str, Any] = {"uid": uid}
    if attempt is not None:
        metadata["annotations"] = {"hekla.io/attempt-uid": attempt}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return Outcome(200, orjson.dumps({"metadata": metadata, "spec": {"nodeName": node}}))


@pytest.mark.parametrize(
    ("write", "found", "status", "reason"),
    [
        pytest.param(CREATE, pod(attempt="ours"), 201, "", id="a pod with our mark is ours"),
        pytest.param(
            CREATE, pod(attempt="other"), 409, "AlreadyExists", id="another attempt's pod"
        ),
        pytest.param(CREATE, pod(), 409, "AlreadyExists", id="a pod without a mark"),
        pytest.param(CREATE, GONE, 0, "Timeout", id="no pod yet: it may still come"),
        pytest.param(CREATE, UNREADABLE, 0, "Timeout", id="a create that cannot be looked for"),
        pytest.param(
            UNMARKED, pod(), 409, "AlreadyExists", id="without a mark nobody knows whose it is"
        ),
        pytest.param(DELETE, GONE, 200, "", id="deleted and gone"),
        pytest.param(DELETE, pod(deleting=True), 200, "", id="deleted and going"),
        pytest.param(DELETE, pod("u2"), 200, "", id="ours is gone, another has the name"),
        pytest.param(DELETE, pod(), 0, "Timeout", id="not deleted so far"),
        pytest.param(DELETE_ANY, pod("u2"), 0, "Timeout", id="any pod of the name was meant"),
        pytest.param(BIND, pod(node="n1"), 201, "", id="bound where we said"),
        pytest.param(BIND, pod(node="n2"), 409, "Conflict", id="bound elsewhere"),
        pytest.param(BIND, pod("u2", node="n1"), 409, "Conflict", id="another pod, same node"),
        pytest.param(BIND, pod(), 0, "Timeout", id="not bound so far"),
        pytest.param(BIND, GONE, 404, "NotFound", id="no pod to bind any more"),
    ],
)
def test_a_write_without_an_answer_is_settled_by_what_is_there(
    write: Write, found: Outcome, status: int, reason: str
) -> None:
    outcome = settle(write, found)

    assert (outcome.status, outcome.reason) == (status, reason)


@pytest.mark.parametrize("write", [CREATE, DELETE, BIND])
def test_what_cannot_be_seen_keeps_the_answer_it_had(write: Write) -> None:
    failed = Outcome(500, b"{}")

    assert settle(write, UNREADABLE, failed) is failed
    assert settle(write, UNREADABLE) is UNANSWERED


def test_a_deletion_states_its_preconditions() -> None:
    write = writes.deletion(
        Deletion(PODS, "ns", "p", uid="u1", grace_seconds=0, propagation="Foreground")
    )

    assert write.path == "/api/v1/namespaces/ns/pods/p"
    assert orjson.loads(write.body) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Foreground",
        "preconditions": {"uid": "u1"},
    }


def test_a_binding_names_the_pod_by_uid_and_is_fenced() -> None:
    assert BIND.path == "/api/v1/namespaces/ns/pods/p/binding"
    assert BIND.fenced
    body = orjson.loads(BIND.body)
    assert body["metadata"] == {"namespace": "ns", "name": "p", "uid": "u1"}
    assert body["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}


def test_paths_follow_group_scope_and_subresource() -> None:
    patch = writes.merge(Patch(JOBS, "ns", "a/b", {"status": {}}, subresource="status"))

    assert patch.path == "/apis/batch.volcano.sh/v1alpha1/namespaces/ns/jobs/a%2Fb/status"
    assert QUEUES.path("ignored", "q") == "/apis/scheduling.volcano.sh/v1beta1/queues/q"
    assert PODS.collection() == "/api/v1/pods"
    assert PODS.path(None, "p") == "/api/v1/namespaces/default/pods/p"
    assert JOBS.api_version == "batch.volcano.sh/v1alpha1"
    assert PODS.api_version == "v1"


def test_a_name_that_the_server_chooses_cannot_be_looked_for() -> None:
    write = writes.creation(PODS, {"metadata": {"generateName": "p-", "namespace": "ns"}})

    assert (write.verb, write.object_path) == (Verb.CREATE, "")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"reason":"Conflict","message":"m"}', ("Conflict", "m")),
        (b"<html>gateway</html>", ("", "<html>gateway</html>")),
        (b'"text"', ("", '"text"')),
        (b"", ("", "")),
        (b'{"reason":null}', ("", "")),
    ],
)
def test_a_refusal_may_say_anything(body: bytes, said: tuple[str, str]) -> None:
    assert writes.said(Outcome(409, body)) == said
