"""What values may be stored and sent at all, whatever kind they are of.

Plain JSON, not too deep and not too much of it; texts without NUL (Postgres stores none) and
without lone surrogates (UTF-8 has none); integers of at most 64 bits (other readers of JSON
lose the rest).
"""

from __future__ import annotations

import math
from typing import Any, Final

from hekla.domain import paths
from hekla.domain.errors import InvalidError, Violation

DEEPEST: Final = 100
MOST_VALUES: Final = 300_000

_SMALLEST_INTEGER: Final = -(2**63)
_LARGEST_INTEGER: Final = 2**64 - 1
_UNSTORABLE: Final = "a text without NUL characters and lone surrogates"


def require_plain(value: Any, path: str = "") -> None:
    """Refuse what cannot be stored and sent.

    Raises:
        InvalidError: naming the first such value, found at ``path`` or below it.
    """
    if not _is_ascii(value):
        _Walk(path).enter(value, 0)


def _is_ascii(value: Any) -> bool:
    """Whether there is nothing to refuse, and no text beyond ASCII: as nearly always.

    A look at one level after the other costs a third of a walk that knows where it is.
    """
    left = MOST_VALUES
    level = [value]
    for _ in range(DEEPEST):
        left -= len(level)
        if left < 0:
            return False
        below: list[Any] = []
        for one in level:
            kind, ascii_ = type(one), True
            if kind is str:
                ascii_ = one.isascii() and "\0" not in one
            elif kind is dict:
                ascii_ = all(map(_is_ascii_key, one))
                below.extend(one.values())
            elif kind is list:
                below.extend(one)
            elif kind is int:
                ascii_ = _SMALLEST_INTEGER <= one <= _LARGEST_INTEGER
            else:
                ascii_ = one is None or kind is bool
            if not ascii_:
                return False
        if not below:
            return True
        level = below
    return False


def _is_ascii_key(key: Any) -> bool:
    return type(key) is str and key.isascii() and "\0" not in key


class _Walk:
    """One look at everything in a value."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._keys: list[str | int] = []
        self._left = MOST_VALUES

    def enter(self, value: Any, depth: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise self._error(f"must not hold more than {MOST_VALUES} values")
        if isinstance(value, str):
            if not _storable(value):
                raise self._error(f"must be {_UNSTORABLE}")
        elif isinstance(value, dict | list):
            if depth >= DEEPEST:
                del self._keys[8:]
                raise self._error(f"must not be nested more than {DEEPEST} deep")
            if isinstance(value, dict):
                self._enter_object(value, depth)
            else:
                self._enter_list(value, depth)
        elif value is not None and not isinstance(value, bool):
            self._check_number(value)

    def _enter_object(self, value: dict[Any, Any], depth: int) -> None:
        keys = self._keys
        for key, item in value.items():
            if not isinstance(key, str):
                raise self._error(
                    f"must have texts as keys, has one of the type {type(key).__name__}"
                )
            if not _storable(key):
                raise self._error(f"must have keys that are each {_UNSTORABLE}")
            keys.append(key)
            self.enter(item, depth + 1)
            keys.pop()

    def _enter_list(self, value: list[Any], depth: int) -> None:
        keys = self._keys
        for index, item in enumerate(value):
            keys.append(index)
            self.enter(item, depth + 1)
            keys.pop()

    def _check_number(self, value: Any) -> None:
        if isinstance(value, int):
            if not _SMALLEST_INTEGER <= value <= _LARGEST_INTEGER:
                raise self._error("must be an integer of at most 64 bits")
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise self._error("must be a finite number")
        else:
            raise self._error(f"must be plain JSON, is of the type {type(value).__name__}")

    def _error(self, message: str) -> InvalidError:
        return InvalidError.of([Violation(paths.at(self._path, *self._keys), message)])


def _storable(text: str) -> bool:
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
