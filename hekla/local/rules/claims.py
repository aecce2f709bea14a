"""The API server's side of claims and volumes: defaults and checks. Pure."""

from __future__ import annotations

from typing import Any, Final

from hekla.domain import quantity, resources
from hekla.domain.errors import InvalidError, Violation
from hekla.local.kinds.registry import Object

PROTECTION: Final = "kubernetes.io/pvc-protection"
"""The finalizer that keeps a claim while a pod uses it."""
_ACCESS_MODES: Final = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
_POLICIES: Final = ("Retain", "Delete", "Recycle")


def claim_defaults(claim: Object) -> None:
    """Fill in what the API server fills in."""
    if isinstance(claim.get("spec"), dict):
        claim["spec"].setdefault("volumeMode", "Filesystem")
    finalizers = claim["metadata"].setdefault("finalizers", [])
    if PROTECTION not in finalizers and "deletionTimestamp" not in claim["metadata"]:
        finalizers.append(PROTECTION)


def check_claim(claim: Object) -> list[Violation]:
    """All that is wrong with a claim."""
    spec = claim.get("spec")
    if not isinstance(spec, dict):
        return [Violation("spec", "Required value")]
    found = _modes(spec, "spec.accessModes")
    asked = spec.get("resources")
    requests = asked.get("requests") if isinstance(asked, dict) else None
    found += _storage(requests, "spec.resources.requests")
    for field in ("storageClassName", "volumeName"):
        if not isinstance(spec.get(field, ""), str):
            found.append(Violation(f"spec.{field}", "Invalid value: must be a string"))
    return found


def check_claim_update(old: Object, new: Object) -> list[Violation]:
    """A claim stays as it is, but that it may ask for more."""
    before, after = ({**value["spec"]} for value in (old, new))
    sizes = [
        quantity.parse(each.pop("resources")["requests"]["storage"]) for each in (before, after)
    ]
    if before != after:
        why = "Forbidden: spec is immutable after creation except resources.requests"
        return [Violation("spec", why)]
    if sizes[1] < sizes[0]:
        why = "Forbidden: field can not be less than status.capacity"
        return [Violation("spec.resources.requests.storage", why)]
    return []


def volume_defaults(volume: Object) -> None:
    """Fill in what the API server fills in."""
    if isinstance(volume.get("spec"), dict):
        volume["spec"].setdefault("persistentVolumeReclaimPolicy", "Retain")
        volume["spec"].setdefault("volumeMode", "Filesystem")


def check_volume(volume: Object) -> list[Violation]:
    """All that is wrong with a persistent volume."""
    spec = volume.get("spec")
    if not isinstance(spec, dict):
        return [Violation("spec", "Required value")]
    found = _modes(spec, "spec.accessModes") + _storage(spec.get("capacity"), "spec.capacity")
    policy = spec.get("persistentVolumeReclaimPolicy", "Retain")
    if policy not in list(_POLICIES):
        why = f"Unsupported value: {policy!r}: supported values: {', '.join(_POLICIES)}"
        found.append(Violation("spec.persistentVolumeReclaimPolicy", why))
    host = spec.get("hostPath", {"path": "/"})
    if not isinstance(host, dict) or not isinstance(host.get("path"), str):
        found.append(Violation("spec.hostPath.path", "Required value"))
    if not isinstance(spec.get("claimRef", {}), dict):
        found.append(Violation("spec.claimRef", "Invalid value: must be an object"))
    return found


def check_class(storage_class: Object) -> list[Violation]:
    """All that is wrong with a storage class."""
    if not isinstance(storage_class.get("provisioner"), str):
        return [Violation("provisioner", "Required value")]
    return []


def _modes(spec: Object, path: str) -> list[Violation]:
    modes = spec.get("accessModes")
    if not isinstance(modes, list) or not modes:
        return [Violation(path, "Required value: at least 1 access mode is required")]
    supported = ", ".join(_ACCESS_MODES)
    return [
        Violation(path, f"Unsupported value: {mode!r}: supported values: {supported}")
        for mode in modes
        if mode not in list(_ACCESS_MODES)
    ]


def _storage(amounts: Any, path: str) -> list[Violation]:
    if not isinstance(amounts, dict) or "storage" not in amounts:
        return [Violation(f"{path}.storage", "Required value")]
    try:
        amount = resources.parse_list(amounts)["storage"]
    except InvalidError as error:
        return [
            Violation(f"{path}[{wrong.path}]", f"Invalid value: {wrong.message}")
            for wrong in error.violations
        ]
    if amount <= 0:
        why = f"Invalid value: {amounts['storage']!r}: must be greater than zero"
        return [Violation(f"{path}.storage", why)]
    return []
