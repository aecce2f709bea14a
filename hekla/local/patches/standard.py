"""Changes that are sent as patches: JSON merge patch (RFC 7386) and JSON patch (RFC 6902)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

import jsonpatch
import jsonpointer
import orjson

MOST_OPERATIONS: Final = 10_000
MOST_COPIED: Final = 3 * 2**20
"""Bytes that the operations of a patch may copy: a few of them can double an object often."""


class MalformedError(Exception):
    """The patch is none."""


class UnfitError(Exception):
    """The patch does not fit the object: a path is missing, or a test fails."""


class Patch(Protocol):
    """A change to an object as it will be found."""

    def apply(self, target: Any) -> Any:
        """``target`` as changed; it stays as it is, but the result may share parts.

        Raises:
            UnfitError: it cannot be changed so.
        """


@dataclass(frozen=True, slots=True)
class MergePatch:
    """The members to set, and to remove where they are null."""

    value: dict[str, Any]

    @classmethod
    def of(cls, value: object) -> MergePatch:
        """The patch that a body states.

        Raises:
            MalformedError: it is none.
        """
        if not isinstance(value, dict):
            raise MalformedError("a merge patch must be an object")
        return cls(value)

    def apply(self, target: Any) -> Any:
        """See ``Patch``."""
        return merge(target, self.value)


class JsonPatch:
    """Operations, one after the other, all or none."""

    def __init__(self, operations: object) -> None:
        if not isinstance(operations, list):
            raise MalformedError("a JSON patch must be a list of operations")
        if len(operations) > MOST_OPERATIONS:
            raise MalformedError(f"a JSON patch may have {MOST_OPERATIONS} operations")
        for index, operation in enumerate(operations):
            if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
                raise MalformedError(f"operation {index} must be an object with a path")
            if not isinstance(operation.get("from", ""), str):
                raise MalformedError(f"operation {index}: from must be a path")
        try:
            # One at a time where something is copied, to see how much.
            copies = any(operation.get("op") == "copy" for operation in operations)
            parts = [[each] for each in operations] if copies else [operations]
            self._patches = [jsonpatch.JsonPatch(part) for part in parts]
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
            raise MalformedError(str(error)) from error

    def apply(self, target: Any) -> Any:
        """See ``Patch``."""
        try:
            return without_nulls(self._applied(target))
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
            raise UnfitError(str(error)) from error
        except (TypeError, KeyError, IndexError, ValueError, RecursionError) as error:
            # What the library lets through when a path leads into a text or a number.
            raise UnfitError(f"it does not fit the object ({error})") from error

    def _applied(self, target: Any) -> Any:
        value, copied = target, 0
        for number, patch in enumerate(self._patches):
            first = patch.patch[0] if patch.patch else {}
            if first.get("op") == "copy":
                source = jsonpointer.resolve_pointer(value, first["from"])
                copied += len(orjson.dumps(source))
                if copied > MOST_COPIED:
                    raise UnfitError(f"it copies more than {MOST_COPIED} bytes")
            value = patch.apply(value, in_place=number > 0)
        return value


def merge(target: Any, patch: Any) -> Any:
    """``target`` with a merge patch applied. Neither is changed; the result may share parts."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def without_nulls(value: Any) -> Any:
    """``value`` without the members that are null: for Kubernetes they are absent."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value
