from __future__ import annotations

from typing import Any

import orjson
import pytest

from hekla.local.kinds.errors import ApiError
from hekla.local.kinds.registry import EVENTS, NODES, PODS, Kind, Object, Registry
from hekla.local.serving import routing
from hekla.local.storage import selection
from hekla.local.storage.memory import Entry, entry_of


def make_entry(kind: Kind = PODS, **parts: Any) -> Entry:
    metadata = {
        "name": "one",
        "namespace": "here",
        "uid": "u",
        "resourceVersion": "7",
        "labels": {"app": "web", "tier": "front"},
    }
    value: Object = {"metadata": metadata, **parts}
    return entry_of(kind, value, orjson.dumps(value))


@pytest.mark.parametrize(
    ("fields", "matches"),
    [
        pytest.param("", True, id="nothing asked"),
        pytest.param("metadata.name=one", True, id="its name"),
        pytest.param("metadata.name==one", True, id="its name, with two signs"),
        pytest.param("metadata.name!=one", False, id="any other name"),
        pytest.param("metadata.namespace=here", True, id="its namespace"),
        pytest.param("spec.nodeName=node-1", True, id="its node"),
        pytest.param("spec.nodeName=", False, id="no node"),
        pytest.param("status.podIP=", True, id="no address"),
        pytest.param("spec.hostNetwork=false", True, id="an absent flag is false"),
        pytest.param(
            "spec.nodeName=node-1,status.phase!=Succeeded,status.phase!=Failed",
            True,
            id="all of several",
        ),
        pytest.param(
            "spec.nodeName=node-1,status.phase=Failed", False, id="not all of several"
        ),
    ],
)
def test_a_field_selector_compares_fields(fields: str, *, matches: bool) -> None:
    entry = make_entry(spec={"nodeName": "node-1"}, status={"phase": "Running"})

    assert selection.parse(PODS, None, "", fields).matches(entry) is matches


@pytest.mark.parametrize(
    ("labels", "matches"),
    [("app=web", True), ("app in (db,web),tier", True), ("app!=web", False), ("!tier", False)],
)
def test_a_label_selector_compares_labels(labels: str, *, matches: bool) -> None:
    assert selection.parse(PODS, "here", labels).matches(make_entry()) is matches


def test_a_selection_of_a_namespace_leaves_out_the_others() -> None:
    assert not selection.parse(PODS, "there").matches(make_entry())


def test_a_value_in_a_field_selector_may_hold_escaped_signs() -> None:
    entry = make_entry(EVENTS, reason="a,b=c")

    assert selection.parse(EVENTS, None, "", r"reason=a\,b\=c").matches(entry)


@pytest.mark.parametrize(
    "fields", ["spec.nodeName", "=x", "metadata.name=a=b", "spec.bogus=1", "a b"]
)
def test_a_field_selector_that_is_none_is_a_bad_request(fields: str) -> None:
    with pytest.raises(ApiError) as refused:
        selection.parse(PODS, None, "", fields)

    assert refused.value.code == 400


def test_a_label_selector_that_is_none_is_a_bad_request() -> None:
    with pytest.raises(ApiError) as refused:
        selection.parse(PODS, None, "a in (b")

    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/api/v1/pods", (PODS, None, None, "")),
        ("/api/v1/namespaces/a/pods", (PODS, "a", None, "")),
        ("/api/v1/namespaces/a/pods/b", (PODS, "a", "b", "")),
        ("/api/v1/namespaces/a/pods/b/log", (PODS, "a", "b", "log")),
        ("/api/v1/nodes/n/status", (NODES, None, "n", "status")),
    ],
)
def test_a_path_leads_to_a_kind(path: str, found: tuple[Kind, str, str, str]) -> None:
    assert routing.find(Registry(), path) == found


@pytest.mark.parametrize(
    ("path", "name", "subresource"),
    [
        ("/api/v1/namespaces", None, ""),
        ("/api/v1/namespaces/pods", "pods", ""),
        ("/api/v1/namespaces/a/status", "a", "status"),
        ("/api/v1/namespaces/a/finalize", "a", "finalize"),
    ],
)
def test_a_namespace_is_an_object_too(path: str, name: str | None, subresource: str) -> None:
    target = routing.find(Registry(), path)

    assert target is not None
    assert target.kind.plural == "namespaces"
    assert target[1:] == (None, name, subresource)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/bogus",
        "/api/v2/pods",
        "/apis/apps/v1/deployments",
        "/api/v1/pods/a",
        "/api/v1/namespaces/a/nodes",
        "/api/v1/namespaces/a/pods/b/bogus",
        "/api/v1/namespaces/a/pods/b/log/c",
        "/api/v1/namespaces//pods",
        "/",
    ],
)
def test_other_paths_lead_nowhere(path: str) -> None:
    assert routing.find(Registry(), path) is None
