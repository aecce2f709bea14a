"""Requests are counted in the terms in which RBAC grants them."""

from __future__ import annotations

import pytest

from hekla.local.kinds.registry import Registry
from hekla.local.serving import accesses, routing
from hekla.local.serving.accesses import Access, Accesses
from hekla.local.serving.routing import Request, Target

PODS = "/api/v1/namespaces/default/pods"


def asked(method: str, url: str, agent: str = "hekla-x/1 (linux)") -> tuple[Target, Request]:
    path, _, query = url.partition("?")
    request = Request(method, path, routing.read_query(query.encode()), "", b"", agent)
    target = routing.find(Registry(), path)
    assert target is not None
    return target, request


@pytest.mark.parametrize(
    ("method", "url", "verb", "resource"),
    [
        ("GET", "/api/v1/pods", "list", "pods"),
        ("GET", f"{PODS}?fieldSelector=metadata.name%3Da", "list", "pods"),
        ("GET", "/api/v1/pods?watch=true", "watch", "pods"),
        ("GET", f"{PODS}/a", "get", "pods"),
        ("GET", f"{PODS}/a/log?follow=true", "get", "pods/log"),
        ("POST", PODS, "create", "pods"),
        ("POST", f"{PODS}/a/binding", "create", "pods/binding"),
        ("PUT", f"{PODS}/a", "update", "pods"),
        ("PATCH", f"{PODS}/a/status", "patch", "pods/status"),
        ("DELETE", f"{PODS}/a", "delete", "pods"),
        ("DELETE", PODS, "deletecollection", "pods"),
    ],
)
def test_a_request_is_a_verb_on_a_resource(
    method: str, url: str, verb: str, resource: str
) -> None:
    assert accesses.read(*asked(method, url)) == Access("hekla-x/1", verb, "", resource)


def test_a_group_is_told_and_who_does_not_say_who_it_is_is_unknown() -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

    found = accesses.read(*asked("GET", path, agent=""))

    assert found == Access("unknown", "list", "coordination.k8s.io", "leases")


def test_requests_are_counted_and_agents_that_never_end_take_no_room_for_ever() -> None:
    counted = Accesses()

    for number in range(accesses.MOST + 100):
        counted.note(*asked("GET", "/api/v1/pods", agent=f"agent-{number}"))
        counted.note(*asked("GET", "/api/v1/nodes", agent="hekla-x"))

    listed = counted.describe()["accesses"]
    assert len(listed) == accesses.MOST
    [nodes] = [one for one in listed if one["resource"] == "nodes"]
    assert nodes["count"] == accesses.MOST + 100
