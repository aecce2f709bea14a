"""How a delete goes: what it asks, whether it may, and what it makes of the object. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from hekla.local.kinds import errors, metadata
from hekla.local.kinds.registry import NAMESPACES, Kind, Object
from hekla.local.rules.table import rules_of
from hekla.local.storage.memory import Entry
from hekla.local.verbs import admission, drafts


@dataclass(frozen=True, slots=True)
class Deletion:
    """How something is to be deleted."""

    grace_seconds: int | None = None
    uid: str | None = None
    version: str | None = None
    dry_run: bool = False
    propagation: str | None = None
    """What becomes of what it owns: a key of ``metadata.PROPAGATION``; None: as it was."""


class Deleted(NamedTuple):
    """What a delete did."""

    entry: Entry
    gone: bool
    """Whether the object is no more; else it is marked and waits for someone."""


def check(old: Entry, how: Deletion) -> None:
    """Refuse the delete of an object that may not go, or is not the one that was meant.

    Raises:
        ApiError: it is so.
    """
    if how.uid is not None and how.uid != old.uid:
        raise errors.conflict(old.kind, old.name, drafts.uid_mismatch(how.uid, old.uid))
    if how.version is not None and how.version != str(old.version):
        why = (
            f"Precondition failed: ResourceVersion in precondition: {how.version}, "
            f"ResourceVersion in object meta: {old.version}"
        )
        raise errors.conflict(old.kind, old.name, why)
    if old.kind is NAMESPACES and old.name in admission.KEPT_NAMESPACES:
        raise errors.forbidden(old.kind, old.name, "this namespace may not be deleted")


def marked(kind: Kind, value: Object, how: Deletion, *, now: datetime) -> Object:
    """An object as a delete leaves it if something holds it."""
    grace = rules_of(kind.resource).grace(value, how.grace_seconds)
    mark = metadata.with_propagation(
        _with_mark(kind, value["metadata"], grace, now), how.propagation
    )
    value = {**value, "metadata": mark}
    if kind is NAMESPACES:
        value["status"] = {**value.get("status", {}), "phase": "Terminating"}
    return value


def _with_mark(kind: Kind, old: Object, grace: int, now: datetime) -> Object:
    if "deletionTimestamp" not in old:
        held = rules_of(kind.resource).finalizers
        if held:
            old = {**old, "finalizers": [*old.get("finalizers", []), *held]}
        return metadata.marked_for_deletion(old, grace_seconds=grace, now=now)
    if grace < old.get("deletionGracePeriodSeconds", 0):
        return metadata.with_less_grace(old, grace_seconds=grace)
    return old


def may_go(kind: Kind, value: Object) -> bool:
    """Whether an object is deleted and nothing holds it any more."""
    if kind is NAMESPACES and value["spec"].get("finalizers"):
        return False
    return metadata.may_go(value["metadata"])
