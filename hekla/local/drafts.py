"""What a body or a patch makes of an object: its shape, what stays, what is refused. Pure."""

from __future__ import annotations

from hekla.domain.errors import Violation
from hekla.local import errors, metadata
from hekla.local.registry import Kind, Object
from hekla.local.rules import rules_of
from hekla.local.storage import Entry


def check_same(old: Entry, given: Object) -> None:
    """Refuse a write that is meant for another object or another version of it."""
    if given.get("uid", old.uid) != old.uid:
        raise errors.conflict(old.kind, old.name, uid_mismatch(given["uid"], old.uid))
    if given.get("resourceVersion") and given["resourceVersion"] != str(old.version):
        raise errors.modified(old.kind, old.name)


def prepared(old: Entry, before: Object, wanted: Object, *, status: bool) -> Object:
    """What an update makes of an object: what is not the caller's to write stays."""
    kind = old.kind
    if status:
        written = wanted.get("status", {})
        if not isinstance(written, dict):
            why = [Violation("status", "Invalid value: must be an object")]
            raise errors.invalid(kind, old.name, why)
        return {**before, "status": written}
    value = {**wanted, "metadata": metadata.updated(before["metadata"], wanted["metadata"])}
    if kind.status:
        value.pop("status", None)
        if "status" in before:
            value["status"] = before["status"]
    rules_of(kind.resource).defaults(value)
    if kind.generation and value.get("spec") != before.get("spec"):
        value["metadata"]["generation"] = before["metadata"].get("generation", 0) + 1
    return value


def check_update(kind: Kind, before: Object, value: Object, *, status: bool) -> None:
    """Refuse what an update may not do."""
    rules, name = rules_of(kind.resource), before["metadata"]["name"]
    if status:
        refuse(kind, name, rules.check_status(value["status"]))
        return
    found = metadata.violations(kind, value["metadata"]) + rules.check(value)
    refuse(kind, name, found)
    found = metadata.new_finalizers(before["metadata"], value["metadata"])
    refuse(kind, name, found + rules.check_update(before, value))


def shaped(kind: Kind, body: object, *, kind_name: str = "") -> Object:
    """``body`` as an object of ``kind`` that can be worked on."""
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
    wrong = metadata.shape_error(given_metadata)
    if wrong:
        raise errors.bad_request(f"{wanted['kind']} cannot be read: {wrong}")
    return {**body, **wanted, "metadata": dict(given_metadata)}


def check_namespace(kind: Kind, namespace: str, given: Object) -> None:
    """Hold the metadata of an object to the namespace of the request, in place."""
    if kind.namespaced:
        if given.setdefault("namespace", namespace) != namespace:
            raise errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                f"request: {given['namespace']!r}, {namespace!r}"
            )
    else:
        given.pop("namespace", None)


def refuse(kind: Kind, name: str, found: list[Violation]) -> None:
    """Refuse an object if anything was found to be wrong with it."""
    if found:
        raise errors.invalid(kind, name, found)


def uid_mismatch(wanted: str, present: str) -> str:
    """That somebody means another object of that name."""
    return f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {present}"
