"""What the server does to ``metadata``, whatever the kind. Pure: values in, values out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from hekla.domain import selector, syntax, timestamps
from hekla.domain.errors import Violation
from hekla.local.kinds.registry import Kind, Object

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
PROPAGATION: Final[Mapping[str, str | None]] = {
    "Foreground": FOREGROUND,
    "Orphan": ORPHAN,
    "Background": None,
}
"""How a delete treats what the object owns, and the finalizer that says so."""
_FROM_CALLER: Final[tuple[str, ...]] = (
    "name",
    "generateName",
    "namespace",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
)
_FROM_SERVER: Final[tuple[str, ...]] = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
)
_ANNOTATIONS_BYTES: Final = 256 * 1024
_DNS_LABELS: Final = frozenset({"namespaces", "services"})


def created(kind: Kind, metadata: Object, *, uid: str, now: datetime) -> Object:
    """The metadata of a new object."""
    fresh = {key: metadata[key] for key in _FROM_CALLER if metadata.get(key)}
    fresh["uid"] = uid
    fresh["creationTimestamp"] = timestamps.to_text(now)
    if kind.generation:
        fresh["generation"] = 1
    return fresh


def updated(old: Object, wanted: Object) -> Object:
    """The metadata after an update: what the caller may not set stays."""
    fresh = {key: old[key] for key in _FROM_SERVER if key in old}
    for key in ("labels", "annotations", "ownerReferences", "finalizers"):
        if wanted.get(key):
            fresh[key] = wanted[key]
    return fresh


def marked_for_deletion(metadata: Object, *, grace_seconds: int, now: datetime) -> Object:
    """The metadata of an object that has ``grace_seconds`` from ``now``."""
    fresh = dict(metadata)
    fresh["deletionTimestamp"] = timestamps.to_text(now + timedelta(seconds=grace_seconds))
    fresh["deletionGracePeriodSeconds"] = grace_seconds
    if fresh.get("generation"):
        fresh["generation"] += 1
    return fresh


def with_less_grace(metadata: Object, *, grace_seconds: int) -> Object:
    """The metadata of an object under deletion whose time is cut short."""
    fresh = dict(metadata)
    deadline = timestamps.from_text(metadata["deletionTimestamp"])
    cut = metadata.get("deletionGracePeriodSeconds", 0) - grace_seconds
    fresh["deletionTimestamp"] = timestamps.to_text(deadline - timedelta(seconds=cut))
    fresh["deletionGracePeriodSeconds"] = grace_seconds
    return fresh


def with_propagation(metadata: Object, propagation: str | None) -> Object:
    """The metadata of an object whose delete says how to treat what it owns."""
    if propagation is None:
        return metadata
    kept = [each for each in metadata.get("finalizers", []) if each not in {FOREGROUND, ORPHAN}]
    mark = PROPAGATION[propagation]
    fresh = {**metadata, "finalizers": kept + ([mark] if mark else [])}
    if not fresh["finalizers"]:
        del fresh["finalizers"]
    return fresh


def may_go(metadata: Object) -> bool:
    """Whether nothing keeps an object that is under deletion."""
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
    )


def shape_error(metadata: object) -> str | None:
    """What keeps ``metadata`` from being read at all."""
    if not isinstance(metadata, dict):
        return "metadata must be an object"
    for key in ("name", "generateName", "namespace", "uid", "resourceVersion"):
        if not isinstance(metadata.get(key, ""), str):
            return f"metadata.{key} must be a string, is {metadata[key]!r}"
    for key in ("labels", "annotations"):
        if not isinstance(metadata.get(key, {}), dict):
            return f"metadata.{key} must be an object"
    for key in ("finalizers", "ownerReferences"):
        if not isinstance(metadata.get(key, []), list):
            return f"metadata.{key} must be a list"
    return None


def violations(kind: Kind, metadata: Object) -> list[Violation]:
    """All that is wrong with the metadata of an object of ``kind``."""
    found: list[Violation] = []
    wrong = name_error(kind, metadata["name"])
    if wrong:
        found.append(Violation("metadata.name", _invalid(metadata["name"], wrong)))
    found += selector.validate_labels(metadata.get("labels", {}), "metadata.labels")
    found += _annotations(metadata.get("annotations", {}))
    for index, finalizer in enumerate(metadata.get("finalizers", [])):
        wrong = _text_error(finalizer) or syntax.qualified_name_error(finalizer)
        if wrong and finalizer not in (FOREGROUND, ORPHAN):  # it may be a list
            found.append(Violation(f"metadata.finalizers[{index}]", _invalid(finalizer, wrong)))
    owners = metadata.get("ownerReferences", [])
    controllers = [
        str(owner.get("name"))
        for owner in owners
        if isinstance(owner, dict) and owner.get("controller") is True
    ]
    if len(controllers) > 1:
        why = (
            "Only one reference can have Controller set to true. "
            f'Found "true" in references for {" and ".join(controllers[:2])}'
        )
        found.append(Violation("metadata.ownerReferences", f"Invalid value: {why}"))
    for index, owner in enumerate(owners):
        path = f"metadata.ownerReferences[{index}]"
        for key in ("apiVersion", "kind", "name", "uid"):
            if not isinstance(owner, dict) or not isinstance(owner.get(key), str):
                found.append(Violation(f"{path}.{key}", "Required value"))
    return found


def name_error(kind: Kind, name: str) -> str | None:
    """What keeps ``name`` from naming an object of ``kind``."""
    if kind.resource in _DNS_LABELS:
        return syntax.label_error(name)
    return syntax.subdomain_error(name)


def new_finalizers(old: Object, new: Object) -> list[Violation]:
    """Finalizers that an object under deletion would gain."""
    if "deletionTimestamp" not in old:
        return []
    added = sorted(set(new.get("finalizers", [])) - set(old.get("finalizers", [])))
    if not added:
        return []
    why = (
        "Forbidden: no new finalizers can be added if the object is being deleted, "
        f"found new finalizers {added}"
    )
    return [Violation("metadata.finalizers", why)]


def deadline(metadata: Object) -> datetime | None:
    """When the grace of an object under deletion ends."""
    text = metadata.get("deletionTimestamp")
    return None if text is None else timestamps.from_text(text).astimezone(UTC)


def _annotations(annotations: Object) -> list[Violation]:
    found: list[Violation] = []
    size = 0
    for key, value in annotations.items():
        path = f"metadata.annotations[{key}]"
        # Their keys may have upper case letters in the prefix, which labels' may not.
        wrong = syntax.qualified_name_error(key.lower()) or _text_error(value)
        if wrong:
            found.append(Violation(path, _invalid(key, wrong)))
        size += len(key) + len(str(value))
    if size > _ANNOTATIONS_BYTES:
        found.append(
            Violation(
                "metadata.annotations", f"Too long: may not be over {_ANNOTATIONS_BYTES} bytes"
            )
        )
    return found


def _text_error(value: object) -> str | None:
    return None if isinstance(value, str) else "must be a string"


def _invalid(value: Any, why: str) -> str:
    return f"Invalid value: {value!r}: {why}"
