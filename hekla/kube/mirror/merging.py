"""What makes one JSON value into another (RFC 7386), and whether one says all another does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_DEFAULTS: Final = frozenset({("protocol", "TCP"), ("name", ""), ("service", "")})
"""What definitions of Volcano's write into pod templates where nothing stands."""


def patch(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    """The merge patch that makes ``found`` into ``wanted``; None if they are the same."""
    changes: dict[str, Any] = {}
    for key in found.keys() - wanted.keys():
        if found[key] is not None:
            changes[key] = None
    for key, value in wanted.items():
        if value is None:
            if found.get(key) is not None:
                changes[key] = None
            continue
        there = found.get(key)
        if isinstance(value, Mapping) and isinstance(there, Mapping):
            inner = patch(there, value)
            if inner is not None:
                changes[key] = inner
        elif key not in found or not same(there, value):
            changes[key] = value
    return changes or None


def same(one: Any, other: Any) -> bool:
    """Whether two values are one and the same JSON: ``1`` is not ``true``."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            same(a, b) for a, b in zip(one, other, strict=True)
        )
    return bool(one == other)


def says(found: Any, wanted: Any) -> bool:
    """Whether ``found`` is ``wanted``, but for nulls and what definitions fill in."""
    if isinstance(found, Mapping) and isinstance(wanted, Mapping):
        for key in found.keys() | wanted.keys():
            there, asked = found.get(key), wanted.get(key)
            if asked is None and _is_filled_in(key, there):
                continue
            if not says(there, asked):
                return False
        return True
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(
            says(a, b) for a, b in zip(found, wanted, strict=True)
        )
    return same(found, wanted)


def _is_filled_in(key: str, value: Any) -> bool:
    return isinstance(value, str) and (key, value) in _DEFAULTS


def holds(found: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether all of ``wanted`` is in ``found``."""
    return all(found.get(key) == value for key, value in wanted.items())
