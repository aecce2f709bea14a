"""What a cluster's admission adds to a create: live namespaces, priorities of pods."""

from __future__ import annotations

from typing import Final

from hekla.local import errors
from hekla.local.registry import NAMESPACES, PODS, PRIORITY_CLASSES, Kind, Object
from hekla.local.storage import Storage

SYSTEM_PRIORITIES: Final = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}

FIRST_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
KEPT_NAMESPACES: Final = frozenset({"default", "kube-system", "kube-public"})


def check_namespace(storage: Storage, kind: Kind, namespace: str, name: str) -> None:
    """Refuse to make objects where no namespace is, or one that is going.

    Raises:
        ApiError: the namespace is missing (404) or terminating (403).
    """
    entry = storage.latest(NAMESPACES, "", namespace)
    if entry is None:
        raise errors.not_found(NAMESPACES, namespace)
    if entry.deleting:
        why = (
            f"unable to create new content in namespace {namespace} "
            "because it is being terminated"
        )
        raise errors.forbidden(kind, name, why, cause="NamespaceTerminating")


def admit(storage: Storage, kind: Kind, value: Object) -> None:
    """Complete a new object from others, in place.

    Raises:
        ApiError: what it refers to is missing or disagrees.
    """
    if kind is PODS:
        _set_priority(storage, value)
    elif kind is PRIORITY_CLASSES and value.get("globalDefault"):
        _check_only_default(storage, value)


def _set_priority(storage: Storage, pod: Object) -> None:
    spec, name = pod["spec"], pod["metadata"]["name"]
    wanted = spec.get("priorityClassName")
    found: Object | None = None
    if wanted:
        entry = storage.latest(PRIORITY_CLASSES, "", wanted)
        if entry is None:
            why = f"no PriorityClass with name {wanted} was found"
            raise errors.forbidden(PODS, name, why)
        found = entry.object()
    else:
        found = _default_class(storage)
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
    priority = found.get("value", 0) if found else 0
    if spec.get("priority", priority) != priority:
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod "
            f"spec; priority admission controller computed {priority} from the given "
            "PriorityClass name"
        )
        raise errors.forbidden(PODS, name, why)
    spec["priority"] = priority
    policy = found.get("preemptionPolicy") if found else None
    spec.setdefault("preemptionPolicy", policy or "PreemptLowerPriority")


def _default_class(storage: Storage) -> Object | None:
    for entry in storage.select(PRIORITY_CLASSES):
        value = entry.object()
        if value.get("globalDefault"):
            return value
    return None


def _check_only_default(storage: Storage, value: Object) -> None:
    name = value["metadata"]["name"]
    present = _default_class(storage)
    if present is not None and present["metadata"]["name"] != name:
        why = (
            f"PriorityClass {present['metadata']['name']} is already marked as default. "
            "Only one default can exist"
        )
        raise errors.forbidden(PRIORITY_CLASSES, name, why)
