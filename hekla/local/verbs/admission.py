"""What a cluster's admission adds to a create: priorities, accounts, storage classes."""

from __future__ import annotations

from typing import Final

from hekla.local.kinds import errors
from hekla.local.kinds.registry import (
    CLAIMS,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    SERVICE_ACCOUNTS,
    STORAGE_CLASSES,
    Kind,
    Object,
)
from hekla.local.storage.memory import Storage

SYSTEM_PRIORITIES: Final = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}

DEFAULT_ACCOUNT: Final = "default"
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
"""The annotation of the storage class that claims get unless they name another."""
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
    if kind is PODS and isinstance(value.get("spec"), dict):
        _set_priority(storage, value)
        _set_account(storage, value)
    elif kind is CLAIMS and isinstance(value.get("spec"), dict):
        _set_class(storage, value)
    elif kind is PRIORITY_CLASSES and value.get("globalDefault"):
        _check_only_default(storage, value)


def _set_priority(storage: Storage, pod: Object) -> None:
    spec, name = pod["spec"], pod["metadata"].get("name", "")
    wanted = spec.get("priorityClassName")
    found: Object | None = None
    if wanted:
        if not isinstance(wanted, str):
            return  # which the checks refuse
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


def _set_account(storage: Storage, pod: Object) -> None:
    spec, metadata = pod["spec"], pod["metadata"]
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or DEFAULT_ACCOUNT
    if not isinstance(name, str):
        return  # which the checks refuse
    namespace = metadata["namespace"]
    if storage.latest(SERVICE_ACCOUNTS, namespace, name) is None:
        why = (
            f"error looking up service account {namespace}/{name}: "
            f'serviceaccount "{name}" not found'
        )
        raise errors.forbidden(PODS, metadata.get("name", ""), why)
    spec["serviceAccountName"] = spec["serviceAccount"] = name


def _set_class(storage: Storage, claim: Object) -> None:
    """Give a claim that names no storage class the newest default one."""
    if "storageClassName" in claim["spec"]:
        return
    found = [
        (entry.object()["metadata"]["creationTimestamp"], entry.name)
        for entry in storage.select(STORAGE_CLASSES)
        if entry.object()["metadata"].get("annotations", {}).get(DEFAULT_CLASS) == "true"
    ]
    if found:
        claim["spec"]["storageClassName"] = max(found)[1]


def _default_class(storage: Storage) -> Object | None:
    for entry in storage.select(PRIORITY_CLASSES):
        value = entry.object()
        if value.get("globalDefault"):
            return value
    return None


def _check_only_default(storage: Storage, value: Object) -> None:
    name = value["metadata"].get("name", "")
    present = _default_class(storage)
    if present is not None and present["metadata"]["name"] != name:
        why = (
            f"PriorityClass {present['metadata']['name']} is already marked as default. "
            "Only one default can exist"
        )
        raise errors.forbidden(PRIORITY_CLASSES, name, why)
