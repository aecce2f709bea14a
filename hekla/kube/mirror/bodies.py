"""Custom resources as the mirror writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hekla.kube import told
from hekla.kube.mirror import merging
from hekla.kube.mirror.custom import Custom
from hekla.kube.mirror.deciding import Row, marks
from hekla.kube.requests import Deletion, Patch
from hekla.kube.resources import Resource

STATUS: Final = "status"
COMPONENT: Final = "hekla-mirror"


def creation(resource: Resource, row: Row, *, status_apart: bool) -> dict[str, Any]:
    """The custom resource of a row, to be made."""
    metadata: dict[str, Any] = {
        "name": row.key.name,
        "annotations": {**row.annotations, **marks(row)},
    }
    if row.key.namespace:
        metadata["namespace"] = row.key.namespace
    if row.labels:
        metadata["labels"] = dict(row.labels)
    if row.owner is not None:
        metadata["ownerReferences"] = [dict(row.owner)]
    body: dict[str, Any] = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": dict(row.spec),
    }
    if row.status and not status_apart:
        body[STATUS] = dict(row.status)
    return body


def rewrite(resource: Resource, custom: Custom, row: Row) -> Patch:
    """What brings a custom resource up to its row."""
    body: dict[str, Any] = {
        "metadata": {
            **_this(custom),
            "annotations": {**row.annotations, **marks(row)},
            "labels": dict(row.labels),
        }
    }
    if row.owner is not None:
        body["metadata"]["ownerReferences"] = [dict(row.owner)]
    if not merging.says(custom.spec, row.spec):
        body["spec"] = merging.patch(custom.spec, row.spec) or {}
    return Patch(resource, custom.key.namespace or None, custom.key.name, body)


def show(
    resource: Resource, custom: Custom, wanted: Mapping[str, Any], *, status_apart: bool
) -> Patch | None:
    """What gives a custom resource a status; None if it has it."""
    changes = merging.patch(custom.status, wanted)
    if changes is None:
        return None
    return Patch(
        resource,
        custom.key.namespace or None,
        custom.key.name,
        {"metadata": _this(custom), STATUS: changes},
        STATUS if status_apart else None,
    )


def deletion(resource: Resource, custom: Custom) -> Deletion:
    """What deletes this very custom resource, and what it owns after it."""
    return Deletion(
        resource,
        custom.key.namespace or None,
        custom.key.name,
        custom.uid,
        propagation="Background",
    )


def event(resource: Resource, custom: Custom, reason: str, message: str, at: str) -> Any:
    """The event that tells of a complaint; the same complaint has the same name."""
    return told.event(
        resource,
        custom.key,
        custom.uid,
        reason=reason,
        message=message,
        at=at,
        once=f"{custom.uid}/{custom.generation}/{reason}/{message}",
        component=COMPONENT,
        version=custom.version,
    )


def owner_reference(api_version: str, kind: str, name: str, uid: str) -> dict[str, Any]:
    """The reference of what an object controls to that object."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _this(custom: Custom) -> dict[str, Any]:
    """The precondition that it is this object, at this version."""
    return {"uid": custom.uid, "resourceVersion": str(custom.version)}
