"""Writes as requests, and what to make of one that was not answered. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from hekla.domain import names
from hekla.kube.errors import ALREADY_EXISTS
from hekla.kube.requests import TIMEOUT, Binding, Deletion, Patch
from hekla.kube.resources import PODS, Resource
from hekla.kube.wire import Outcome, Verb, Write


def creation(resource: Resource, item: Mapping[str, Any]) -> Write:
    """POST an object."""
    metadata = item.get("metadata") or {}
    namespace, name = metadata.get("namespace") or "default", metadata.get("name")
    annotations = metadata.get("annotations") or {}
    return Write(
        verb=Verb.CREATE,
        path=resource.collection(namespace),
        body=orjson.dumps(item),
        object_path=resource.path(namespace, name) if name else "",
        mark=annotations.get(names.ATTEMPT_UID) or "",
    )


def deletion(wanted: Deletion, *, fenced: bool = False) -> Write:
    """DELETE an object."""
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if wanted.uid is not None:
        options["preconditions"] = {"uid": wanted.uid}
    if wanted.version is not None:
        options.setdefault("preconditions", {})["resourceVersion"] = str(wanted.version)
    if wanted.grace_seconds is not None:
        options["gracePeriodSeconds"] = wanted.grace_seconds
    if wanted.propagation is not None:
        options["propagationPolicy"] = wanted.propagation
    path = wanted.resource.path(wanted.namespace, wanted.name)
    return Write(
        verb=Verb.DELETE,
        path=path,
        body=orjson.dumps(options),
        object_path=path,
        mark=wanted.uid or "",
        fenced=fenced,
    )


def merge(wanted: Patch, *, fenced: bool = False) -> Write:
    """PATCH an object."""
    return Write(
        verb=Verb.PATCH,
        path=wanted.resource.path(wanted.namespace, wanted.name, wanted.subresource),
        body=orjson.dumps(wanted.body),
        object_path="",
        mark="",
        fenced=fenced,
    )


def binding(wanted: Binding) -> Write:
    """POST a pod's binding. Always fenced."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": wanted.namespace, "name": wanted.name, "uid": wanted.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": wanted.node},
    }
    return Write(
        verb=Verb.BIND,
        path=PODS.path(wanted.namespace, wanted.name, "binding"),
        body=orjson.dumps(body),
        object_path=PODS.path(wanted.namespace, wanted.name),
        mark=wanted.uid,
        node=wanted.node,
        fenced=True,
    )


UNANSWERED: Final = Outcome(
    0, b"", TIMEOUT, "not answered, and nothing came of it so far; it may still happen"
)


def settle(write: Write, found: Outcome, otherwise: Outcome = UNANSWERED) -> Outcome:
    """What became of ``write``, given what a GET of its object ``found``.

    ``otherwise`` is the outcome if nothing can be seen of it.
    """
    if found.status not in {200, 404}:
        return otherwise
    return _SETTLE[write.verb](write, found, otherwise)


def _settle_create(write: Write, found: Outcome, otherwise: Outcome) -> Outcome:
    if found.status == 404:
        return otherwise
    annotations = _metadata(found).get("annotations") or {}
    if write.mark and annotations.get(names.ATTEMPT_UID) == write.mark:
        return Outcome(201, found.body)
    return Outcome(409, found.body, ALREADY_EXISTS, "an object of that name exists")


def _settle_delete(write: Write, found: Outcome, otherwise: Outcome) -> Outcome:
    if found.status == 404:
        return Outcome(200)
    metadata = _metadata(found)
    if write.mark and metadata.get("uid") != write.mark:
        return Outcome(200)
    return Outcome(200, found.body) if metadata.get("deletionTimestamp") else otherwise


def _settle_bind(write: Write, found: Outcome, otherwise: Outcome) -> Outcome:
    if found.status == 404:
        return Outcome(404, b"", "NotFound", "the pod is gone")
    if _metadata(found).get("uid") != write.mark:
        return Outcome(409, found.body, "Conflict", "another pod has the name by now")
    node = (orjson.loads(found.body).get("spec") or {}).get("nodeName")
    if node == write.node:
        return Outcome(201, found.body)
    if node:
        return Outcome(409, found.body, "Conflict", f"the pod is bound to {node}")
    return otherwise


_SETTLE: Final[Mapping[Verb, Callable[[Write, Outcome, Outcome], Outcome]]] = {
    Verb.CREATE: _settle_create,
    Verb.DELETE: _settle_delete,
    Verb.BIND: _settle_bind,
}


def said(outcome: Outcome) -> tuple[str, str]:
    """The reason and the message of an answer that is no success."""
    try:
        status = orjson.loads(outcome.body)
        return str(status.get("reason") or ""), str(status.get("message") or "")
    except (orjson.JSONDecodeError, AttributeError):
        return "", outcome.body[:500].decode(errors="replace")


def _metadata(found: Outcome) -> dict[str, Any]:
    metadata: dict[str, Any] = orjson.loads(found.body).get("metadata") or {}
    return metadata
