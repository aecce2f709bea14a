"""Admission webhooks of the local cluster: asked over HTTPS as an API server asks them."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.certificates import Authority
from tests.support.local_cluster import Answer, LocalCluster
from tests.support.waiting import wait_until
from tests.support.webhook_server import (
    Object,
    WebhookServer,
    patching,
    registration,
    rule,
    serving,
)

MAPS = "/api/v1/namespaces/default/configmaps"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
_numbers = count()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    home = tmp_path_factory.mktemp("webhooks")
    cluster = LocalCluster(home, "--nodes=1", "--runtime=simulate", "--simulate-duration=1h")
    cluster.start()
    yield cluster
    cluster.end()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookServer]:
    with serving(tmp_path_factory.mktemp("server"), "IP:127.0.0.1,DNS:guard.default.svc") as it:
        yield it


@contextmanager
def registered(cluster: LocalCluster, *configurations: Object) -> Iterator[None]:
    """Those configurations, for as long as the block lasts."""
    paths = []
    try:
        for value in configurations:
            paths.append(f"{CONFIGURATIONS}/{value['kind'].lower()}s")
            cluster.make(paths[-1], value)
            paths[-1] += f"/{value['metadata']['name']}"
        yield
    finally:
        for path in paths:
            assert cluster.call("DELETE", path).code == 200


def config_map(**labels: str) -> Object:
    """A config map of a fresh name."""
    return {"metadata": {"name": f"map-{next(_numbers)}", "labels": labels}, "data": {"a": "b"}}


def create(cluster: LocalCluster, value: Object | None = None, query: str = "") -> Answer:
    return cluster.call("POST", f"{MAPS}{query}", value or config_map())


def test_the_question_is_that_of_an_api_server(
    cluster: LocalCluster, server: WebhookServer
) -> None:
    everything = {"rules": [rule("*/*", "*")], "clientConfig": server.config("/all", {})}
    made = config_map(team="a")
    name = made["metadata"]["name"]
    with registered(cluster, registration("all", everything | {"timeoutSeconds": 7})):
        assert create(cluster, made, "?fieldManager=me&fieldValidation=Strict").code == 201
        assert cluster.merge(f"{MAPS}/{name}?dryRun=All", {"data": {"c": "d"}}).code == 200
        options = {"propagationPolicy": "Foreground", "gracePeriodSeconds": 0}
        assert cluster.call("DELETE", f"{MAPS}/{name}", options).code == 200
        cluster.make("/api/v1/namespaces", {"metadata": {"name": "asked"}})
    created, patched, deleted, namespace = server.seen("/all")
    uids = {each.pop("uid") for each in (created, patched, deleted, namespace)}
    assert len(uids) == 4
    assert server.asked[0].query == "timeout=7s"
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    resource = {"group": "", "version": "v1", "resource": "configmaps"}
    stored = created.pop("object")
    assert created == {
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": name,
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": {
            "username": "system:unsecured",
            "groups": ["system:masters", "system:authenticated"],
        },
        "oldObject": None,
        "dryRun": False,
        "options": {
            "kind": "CreateOptions",
            "apiVersion": "meta.k8s.io/v1",
            "fieldManager": "me",
            "fieldValidation": "Strict",
        },
    }
    assert stored["metadata"]["labels"] == {"team": "a"}
    assert (patched["operation"], patched["dryRun"]) == ("UPDATE", True)
    assert patched["object"]["data"] == {"a": "b", "c": "d"}
    assert patched["oldObject"]["data"] == {"a": "b"}
    assert patched["options"]["kind"] == "UpdateOptions"
    assert patched["options"]["dryRun"] == ["All"]
    assert (deleted["operation"], deleted["object"]) == ("DELETE", None)
    assert deleted["oldObject"]["metadata"]["name"] == name
    assert deleted["options"] == {
        **options,
        "kind": "DeleteOptions",
        "apiVersion": "meta.k8s.io/v1",
    }
    assert (namespace["name"], namespace["namespace"]) == ("asked", "asked")


def test_webhooks_change_objects_one_after_the_other_and_then_judge_the_result(
    cluster: LocalCluster, server: WebhookServer
) -> None:
    def append(letter: str) -> Any:
        def verdict(request: Object) -> Object:
            seen = request["object"]["data"]["a"]
            operation = {"op": "add", "path": "/data/a", "value": seen + letter}
            return patching(operation, warnings=[f'added "{letter}"'])

        return verdict

    def once(request: Object) -> Object:
        if "b" in request["object"]["data"]:
            return {}
        return patching({"op": "add", "path": "/data/b", "value": "from z"})

    first = registration(
        "a-first",
        {"clientConfig": server.config("/x", append("x")), "reinvocationPolicy": "IfNeeded"},
        {"clientConfig": server.config("/y", append("y"))},
        mutates=True,
    )
    last = registration("z-last", {"clientConfig": server.config("/z", once)}, mutates=True)
    judge = registration("judge", {"clientConfig": server.config("/judge", {})})
    with registered(cluster, last, judge, first):
        made = create(cluster)
    # x is asked again, for y and z changed the object after it; y is not.
    assert made.body["data"] == {"a": "bxyx", "b": "from z"}
    [judged] = server.seen("/judge")
    assert judged["object"]["data"] == made.body["data"]
    assert judged["object"]["metadata"]["uid"] == made.body["metadata"]["uid"]
    assert made.warnings == ['299 - "added \\"x\\""', '299 - "added \\"y\\""']


@pytest.mark.parametrize(
    ("response", "told"),
    [
        (
            {"allowed": False, "status": {"code": 403, "reason": "No", "message": "not so"}},
            (403, "No", "denied the request: not so"),
        ),
        (
            {"allowed": False, "status": {"code": 200, "message": "odd"}},
            (400, "", "denied the request: odd"),
        ),
        (
            {"allowed": False, "status": {"reason": "Because"}},
            (400, "Because", "denied the request: Because"),
        ),
        ({"allowed": False}, (400, "", "denied the request without explanation")),
    ],
)
def test_a_refusal_has_the_code_and_the_reason_of_the_webhook(
    cluster: LocalCluster,
    server: WebhookServer,
    response: Object,
    told: tuple[int, str, str],
) -> None:
    code, reason, message = told
    config = {"clientConfig": server.config("/no", {**response, "warnings": ["careful"]})}
    with registered(cluster, registration("no", config)):
        refused = create(cluster)
        dry = create(cluster, query="?dryRun=All")
    assert (refused.code, refused.body["reason"]) == (code, reason)
    assert refused.body["message"] == f'admission webhook "w0.no.test" {message}'
    assert refused.warnings == ['299 - "careful"']
    assert dry.body["message"] == refused.body["message"]


OPERATION = {"op": "add", "path": "/data/x", "value": "y"}
WRONG: dict[str, tuple[Any, str]] = {
    "another uid": ({"uid": "other"}, 'expected response.uid="'),
    "not JSON": (b"<html>", "the answer is not JSON"),
    "half of it": (b'{"kind": "Admission', "the answer is not JSON"),
    "no response": (
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
        "webhook response was absent",
    ),
    "an old version": (
        b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}',
        "expected webhook response of admission.k8s.io/v1",
    ),
    "a list": (b"[]", "the answer is not an object"),
    "a patch of no type": ({"patch": "W10="}, "response.patch but not response.patchType"),
    "a type of no patch": ({"patchType": "JSONPatch"}, "patchType but not response.patch"),
    "another type": (
        {"patch": "W10=", "patchType": "MergePatch"},
        "invalid response.patchType",
    ),
    "an error": (503, "the server answered 503"),
    "a redirect": (302, "the server answered 302"),
    "a text for a truth": ({"allowed": "yes"}, "response.allowed must be true or false"),
    "too much": (b" " * (17 * 2**20), "the answer is longer than"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_a_failure_of_the_webhook(
    cluster: LocalCluster, server: WebhookServer, name: str
) -> None:
    response, message = WRONG[name]
    config = {"clientConfig": server.config("/wrong", response)}
    ignored = {**config, "failurePolicy": "Ignore"}
    with registered(cluster, registration("wrong", config, mutates=True)):
        refused = create(cluster)
    with registered(cluster, registration("wrong", ignored, mutates=True)):
        assert create(cluster).code == 201
    assert (refused.code, refused.body["reason"]) == (500, "InternalError")
    begin = 'Internal error occurred: failed calling webhook "w0.wrong.test": '
    assert refused.body["message"].startswith(begin)
    assert message in refused.body["message"]


@pytest.mark.parametrize(
    "response",
    [
        patching({"op": "remove", "path": "/spec/none"}),
        patching({"op": "sing"}),
        patching({"op": "replace", "path": "", "value": 5}),
        {"patchType": "JSONPatch", "patch": base64.b64encode(b"{").decode()},
    ],
)
def test_a_patch_that_does_not_fit_is_an_error_whatever_the_policy(
    cluster: LocalCluster, server: WebhookServer, response: Object
) -> None:
    config = {"clientConfig": server.config("/bad", response), "failurePolicy": "Ignore"}
    with registered(cluster, registration("bad", config, mutates=True)):
        assert create(cluster).code == 500


def test_only_validating_webhooks_may_not_send_patches(
    cluster: LocalCluster, server: WebhookServer
) -> None:
    config = {"clientConfig": server.config("/judge-patch", patching(OPERATION))}
    with registered(cluster, registration("judge-patch", config)):
        refused = create(cluster)
    assert "validating webhook may not return response.patch" in refused.body["message"]


def test_certificates_are_verified_and_silence_follows_the_policy(
    cluster: LocalCluster, server: WebhookServer, tmp_path: Path
) -> None:
    url = server.on("/silent", {})
    stranger = Authority(tmp_path).root.certificate.read_bytes()
    hush = threading.Event()

    def slow(_: Object) -> Object:
        hush.wait(30)
        return {}

    cases = {
        "certificate": {"url": url, "caBundle": base64.b64encode(stranger).decode()},
        "system": {"url": url},
        "bundle": {"url": url, "caBundle": base64.b64encode(b"nonsense").decode()},
        "name": {"url": url.replace("127.0.0.1", "localhost"), "caBundle": server.bundle},
        "refused": {"url": "https://127.0.0.1:1/x", "caBundle": server.bundle},
        "slow": server.config("/slow", slow),
        "service": {"service": {"namespace": "default", "name": "none"}},
    }
    told = {}
    for name, config in cases.items():
        webhook = {"clientConfig": config, "timeoutSeconds": 1 if name == "slow" else 30}
        with registered(cluster, registration(name, webhook)):
            refused = create(cluster)
            told[name] = refused.body["message"]
            assert refused.code == 500, name
    hush.set()
    with registered(
        cluster,
        registration(
            "ignored",
            *({"clientConfig": cases[name], "failurePolicy": "Ignore"} for name in cases),
        ),
    ):
        assert create(cluster).code == 201
    assert not server.seen("/silent")
    for name in ("certificate", "system", "name"):
        assert "tls: failed to verify certificate" in told[name]
    assert "unable to load root certificates" in told["bundle"]
    assert 'Post "https://127.0.0.1:1/x?timeout=30s": dial tcp 127.0.0.1:1' in told["refused"]
    assert told["slow"].endswith("context deadline exceeded")
    assert 'service "none" in namespace "default" not found' in told["service"]


def test_others_are_served_while_a_webhook_thinks_and_what_they_write_is_kept(
    cluster: LocalCluster, server: WebhookServer
) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def slow(request: Object) -> Object:
        asked.set()
        go_on.wait(30)
        return {}

    made = cluster.make(MAPS, config_map())
    path = f"{MAPS}/{made['metadata']['name']}"
    webhook = {
        "clientConfig": server.config("/think", slow),
        "rules": [rule("configmaps", "UPDATE")],
        "objectSelector": {"matchLabels": {"slow": "yes"}},
    }
    with registered(cluster, registration("think", webhook)), ThreadPoolExecutor(2) as threads:
        labels = {"labels": {"slow": "yes"}}
        change = {"metadata": labels, "data": {"patched": "yes"}}
        patched = threads.submit(cluster.merge, path, change)
        value = made | {"metadata": made["metadata"] | labels}
        put = threads.submit(cluster.call, "PUT", path, value)
        wait_until(lambda: len(server.seen("/think")) == 2, what="both to be asked about")
        assert cluster.merge(path, {"data": {"meanwhile": "yes"}}).code == 200
        go_on.set()
        assert patched.result().code == 200
        assert put.result().body["reason"] == "Conflict"
    assert cluster.get(path)["data"] == {"a": "b", "meanwhile": "yes", "patched": "yes"}


def test_a_service_leads_to_a_pod_that_is_ready(
    cluster: LocalCluster, server: WebhookServer
) -> None:
    server.on("/guard", {"allowed": False})
    ports = [{"port": 443, "targetPort": "https"}]
    cluster.make(
        "/api/v1/namespaces/default/services",
        {"metadata": {"name": "guard"}, "spec": {"selector": {"app": "guard"}, "ports": ports}},
    )
    service = {"namespace": "default", "name": "guard", "path": "/guard"}
    config = {"service": service, "caBundle": server.bundle}
    pods = "/api/v1/namespaces/default/pods"
    with registered(cluster, registration("guard", {"clientConfig": config})):
        nobody = create(cluster)
        container = {
            "name": "c",
            "image": "i",
            "ports": [{"name": "https", "containerPort": server.port}],
        }
        cluster.make(
            pods,
            {
                "metadata": {"name": "guard", "labels": {"app": "guard"}},
                "spec": {"containers": [container]},
            },
        )
        ready = {
            "podIP": "127.0.0.1",
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        assert cluster.merge(f"{pods}/guard/status", {"status": ready}).code == 200
        found = create(cluster)
    assert "no endpoints available" in nobody.body["message"]
    assert "denied the request" in found.body["message"]


def test_a_connection_is_kept_and_made_anew_when_the_server_was_away(
    cluster: LocalCluster, server: WebhookServer
) -> None:
    with registered(
        cluster, registration("kept", {"clientConfig": server.config("/kept", {})})
    ):
        for _ in range(3):
            assert create(cluster).code == 201
        clients = {asked.client for asked in server.asked if asked.path == "/kept"}
        assert len(clients) == 1
        server.stop()
        assert create(cluster).code == 500
        server.start()
        assert create(cluster).code == 201


def test_bindings_and_evictions_and_collections_are_asked_about(
    cluster: LocalCluster, server: WebhookServer
) -> None:
    pods = "/api/v1/namespaces/default/pods"
    pod = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    for name in ("asked-0", "asked-1"):
        cluster.make(pods, {"metadata": {"name": name, "labels": {"asked": "yes"}}} | pod)
    deny = {"allowed": False}
    webhook = {"clientConfig": server.config("/pods", deny)}
    rules = {"rules": [rule("pods/*", "CREATE", "DELETE")]}
    with registered(cluster, registration("pods", webhook | rules)):
        target = {"target": {"name": "node-0"}}
        answers = [
            cluster.call("POST", f"{pods}/asked-0/binding", target),
            cluster.call("POST", f"{pods}/asked-0/eviction", {}),
            cluster.call("DELETE", f"{pods}/asked-0"),
            cluster.call("DELETE", f"{pods}?labelSelector=asked"),
        ]
        assert [each.code for each in answers] == [400] * 4
    asked = server.seen("/pods")
    assert [each.get("subResource") for each in asked] == ["binding", "eviction", None, None]
    assert [each["kind"]["kind"] for each in asked] == ["Binding", "Eviction", "Pod", "Pod"]
    assert cluster.call("DELETE", f"{pods}?labelSelector=asked").code == 200


def test_who_knows_another_version_sees_that_one(
    cluster: LocalCluster, server: WebhookServer
) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [
        {"name": name, "served": True, "storage": kept, "schema": {"openAPIV3Schema": schema}}
        for name, kept in (("v1", False), ("v2", True))
    ]
    names = {"plural": "things", "kind": "Thing"}
    spec = {"group": "x.io", "scope": "Namespaced", "names": names, "versions": versions}
    cluster.make(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {"metadata": {"name": "things.x.io"}, "spec": spec},
    )
    patch = patching({"op": "add", "path": "/spec", "value": {"by": "hook"}})
    webhook = {
        "clientConfig": server.config("/versions", patch),
        "rules": [rule("things", "*", groups=["x.io"])],
    }
    things = "/apis/x.io/v2/namespaces/default/things"
    thing = {"apiVersion": "x.io/v2", "kind": "Thing", "metadata": {"name": "x"}}
    with registered(cluster, registration("versions", webhook, mutates=True)):
        made = cluster.make(things, thing)
        assert cluster.merge(f"{things}/x", {"other": 1}).code == 200
    assert (made["apiVersion"], made["spec"]) == ("x.io/v2", {"by": "hook"})
    created, updated = server.seen("/versions")
    assert created["object"]["apiVersion"] == "x.io/v1"
    assert (created["kind"]["version"], created["requestKind"]["version"]) == ("v1", "v2")
    assert (created["resource"]["version"], created["requestResource"]["version"]) == (
        "v1",
        "v2",
    )
    assert updated["oldObject"]["apiVersion"] == "x.io/v1"


def test_what_is_registered_is_checked_and_filled_in(
    cluster: LocalCluster, server: WebhookServer
) -> None:
    path = f"{CONFIGURATIONS}/mutatingwebhookconfigurations"
    good = registration("good", {"clientConfig": server.config("/good", {})}, mutates=True)
    [filled] = cluster.make(path, good)["webhooks"]
    assert filled["failurePolicy"] == "Fail"
    assert filled["timeoutSeconds"] == 10
    assert filled["reinvocationPolicy"] == "Never"
    assert filled["rules"][0]["scope"] == "*"
    cluster.call("DELETE", f"{path}/good")
    wrong = {"matchConditions": [{"name": "x", "expression": "true"}], "timeoutSeconds": 31}
    refused = cluster.call(
        "POST", path, registration("bad", {"clientConfig": {}} | wrong, mutates=True)
    )
    assert refused.code == 422
    fields = [cause["field"] for cause in refused.body["details"]["causes"]]
    assert fields == [
        "webhooks[0].timeoutSeconds",
        "webhooks[0].clientConfig",
        "webhooks[0].matchConditions",
    ]
