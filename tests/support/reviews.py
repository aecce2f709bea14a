"""AdmissionReviews as an API server sends them, and what it makes of the answers."""

from __future__ import annotations

import base64
import json
from typing import Any

import jsonpatch

from services.webhook.https.inventory import ENDPOINTS

Object = dict[str, Any]


def review(
    path: str, operation: str, value: Any, old: Any = None, /, uid: str = "u-1", **more: Any
) -> Object:
    """The review that is sent to ``path``; ``more`` are fields of its request."""
    resource = ENDPOINTS[path].resource
    names = {"group": resource.group, "version": resource.version}
    shown = value if isinstance(value, dict) else old if isinstance(old, dict) else {}
    metadata = shown.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": uid,
            "kind": {**names, "kind": resource.kind},
            "resource": {**names, "resource": resource.plural},
            "requestKind": {**names, "kind": resource.kind},
            "requestResource": {**names, "resource": resource.plural},
            "name": name,
            **({"namespace": "default"} if resource.namespaced else {}),
            "operation": operation,
            "userInfo": {"username": "admin", "groups": ["system:authenticated"]},
            "object": value,
            "oldObject": old,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
            **more,
        },
    }


def response(answer: bytes, uid: str = "u-1") -> Object:
    """The response in an answer, held to what an API server requires of it."""
    found = json.loads(answer)
    assert (found["apiVersion"], found["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    told: Object = found["response"]
    assert told["uid"] == uid
    assert isinstance(told["allowed"], bool)
    assert ("patch" in told) == ("patchType" in told)
    assert told.get("patchType", "JSONPatch") == "JSONPatch"
    assert ("status" in told) is not told["allowed"]
    assert all(len(warning) <= 256 for warning in told.get("warnings", ()))
    return told


def patched(told: Object, value: Object) -> Object:
    """The object with the patch of a response applied to it."""
    if "patch" not in told:
        return value
    operations = json.loads(base64.b64decode(told["patch"]))
    found: Object = jsonpatch.JsonPatch(operations).apply(value)
    return found
