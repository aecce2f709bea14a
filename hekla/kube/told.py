"""Events: what is said of an object, for whoever describes it."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from hekla.domain.names import Key
from hekla.kube.resources import Resource

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
LONGEST_MESSAGE: Final = 1024


def event(
    about: Resource,
    key: Key,
    uid: str,
    *,
    reason: str,
    message: str,
    at: str,
    once: str,
    component: str,
    type_: str = WARNING,
    version: int | None = None,
) -> dict[str, Any]:
    """An event of an object; of all with the same name and the same ``once`` one is kept.

    ``at`` is an instant as text. ``version`` is the object's resource version, if it is known.
    """
    digest = hashlib.sha256(once.encode()).hexdigest()[:16]
    involved: dict[str, Any] = {
        "apiVersion": about.api_version,
        "kind": about.kind,
        "name": key.name,
        "namespace": key.namespace,
        "uid": uid,
    }
    if version is not None:
        involved["resourceVersion"] = str(version)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{key.name[:200]}.{digest}",
            "namespace": key.namespace or "default",
        },
        "involvedObject": involved,
        "reason": reason,
        "message": message[:LONGEST_MESSAGE],
        "type": type_,
        "count": 1,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "source": {"component": component},
    }
