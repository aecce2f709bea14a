"""What a body or a patch makes of an object: its shape, what stays, what is refused. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hekla.domain.errors import Violation
from hekla.local.kinds import errors, metadata
from hekla.local.kinds.registry import Kind, Object
from hekla.local.patches.standard import without_nulls
from hekla.local.rules.table import rules_of
from hekla.local.storage.memory import Entry

Told = Callable[[Sequence[str]], None]
"""Hears the paths of fields that are not known; may refuse them."""


def ignored(_: Sequence[str]) -> None:
    """Let fields that are not known go in silence."""


def read(entry: Entry, kind: Kind) -> Object:
    """A copy of an object as one version of its kind has it."""
    value = entry.object()
    if kind is not entry.kind:
        value["apiVersion"] = kind.api_version
    return value


def keeps_nulls(kind: Kind) -> bool:
    """Whether a null says something in objects of a kind; else it is as good as absent."""
    return kind.schema is not None and kind.schema.nullable


def complete(kind: Kind, value: Object) -> Sequence[str]:
    """Fill in what is absent, drop what is not known and give its paths; all in place."""
    if kind.schema is not None:
        return kind.schema.settle(value)
    rules_of(kind.resource).defaults(value)
    return ()


def check_new(kind: Kind, value: Object) -> None:
    """Refuse a new object that breaks rules.

    Raises:
        ApiError: it does.
    """
    found = metadata.violations(kind, value["metadata"])
    found += rules_of(kind.resource).check(value)
    if kind.schema is not None:
        found += kind.schema.violations(value)
    refuse(kind, value["metadata"]["name"], found)


def check_same(old: Entry, given: Object) -> None:
    """Refuse a write that is meant for another object or another version of it.

    Raises:
        ApiError: it is.
    """
    if given.get("uid", old.uid) != old.uid:
        raise errors.conflict(old.kind, old.name, uid_mismatch(given["uid"], old.uid))
    if given.get("resourceVersion") and given["resourceVersion"] != str(old.version):
        raise errors.modified(old.kind, old.name)


def prepared(kind: Kind, before: Object, wanted: Object, *, status: bool) -> Object:
    """What an update makes of an object: what is not the caller's to write stays.

    Raises:
        ApiError: its status is none.
    """
    if status:
        written = wanted.get("status", {})
        if not isinstance(written, dict):
            why = [Violation("status", "Invalid value: must be an object")]
            raise errors.invalid(kind, before["metadata"]["name"], why)
        return {**before, "status": written}
    value = {**wanted, "metadata": metadata.updated(before["metadata"], wanted["metadata"])}
    if kind.status:
        value.pop("status", None)
        if "status" in before:
            value["status"] = before["status"]
    return value


def count_change(kind: Kind, before: Object, value: Object) -> None:
    """Count a change of what a controller acts on, in ``metadata.generation``."""
    if kind.generation and _counted(kind, value) != _counted(kind, before):
        value["metadata"] = {
            **value["metadata"],
            "generation": before["metadata"].get("generation", 0) + 1,
        }


def _counted(kind: Kind, value: Object) -> object:
    if kind.schema is None:
        return value.get("spec")
    left_out = ("metadata", "status") if kind.status else ("metadata",)
    return {key: part for key, part in value.items() if key not in left_out}


def check_update(kind: Kind, before: Object, value: Object, *, status: bool) -> None:
    """Refuse a change that breaks rules; what was wrong before may stay where a schema says it.

    Raises:
        ApiError: it does.
    """
    rules, name = rules_of(kind.resource), before["metadata"]["name"]
    if kind.schema is not None:
        found = kind.schema.violations(value, before)
        if not status:
            found += metadata.violations(kind, value["metadata"])
            found += metadata.new_finalizers(before["metadata"], value["metadata"])
        refuse(kind, name, found)
        return
    if status:
        refuse(kind, name, rules.check_status(value["status"]))
        return
    found = metadata.violations(kind, value["metadata"]) + rules.check(value)
    refuse(kind, name, found)
    found = metadata.new_finalizers(before["metadata"], value["metadata"])
    refuse(kind, name, found + rules.check_update(before, value))


def shaped(kind: Kind, body: object, *, kind_name: str = "") -> Object:
    """``body`` as an object of ``kind`` that can be worked on.

    Raises:
        ApiError: it is none.
    """
    if not isinstance(body, dict):
        raise errors.bad_request("the body must be a JSON object")
    wanted = {"apiVersion": kind.api_version, "kind": kind_name or kind.name}
    for key, expected in wanted.items():
        given = body.get(key) or expected
        if given != expected:
            what = "API version" if key == "apiVersion" else "kind"
            raise errors.bad_request(
                f"the {what} in the data ({given}) "
                f"does not match the expected {what} ({expected})"
            )
    given_metadata = body.get("metadata") or {}
    if keeps_nulls(kind):
        given_metadata = without_nulls(given_metadata)
    wrong = metadata.shape_error(given_metadata)
    if wrong:
        raise errors.bad_request(f"{wanted['kind']} cannot be read: {wrong}")
    return {**body, **wanted, "metadata": dict(given_metadata)}


def check_namespace(kind: Kind, namespace: str, given: Object) -> None:
    """Refuse an object that names another namespace than its path.

    Raises:
        ApiError: it does.
    """
    if kind.namespaced:
        if given.setdefault("namespace", namespace) != namespace:
            raise errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                f"request: {given['namespace']!r}, {namespace!r}"
            )
    else:
        given.pop("namespace", None)


def refuse(kind: Kind, name: str, found: list[Violation]) -> None:
    """Refuse an object if anything was found.

    Raises:
        ApiError: it was.
    """
    if found:
        raise errors.invalid(kind, name, found)


def uid_mismatch(wanted: str, present: str) -> str:
    """Why an object is not the one that was meant."""
    return f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {present}"
