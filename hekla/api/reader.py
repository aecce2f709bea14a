"""One document's value, from YAML or JSON text that may be hostile.

The parser's events are turned into values here, since its own constructor trusts them: it
lets the last of two equal keys win, follows aliases into any number of values, and knows
another YAML than kubectl.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from typing import Any, Final, NoReturn

import yaml

from hekla.api import scalars
from hekla.api.plain import DEEPEST, MOST_VALUES
from hekla.domain.errors import InvalidError, Violation

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG: Final = "tag:yaml.org,2002:"
_RESOLVED: Final = {"bool": bool, "int": int, "float": float | int, "null": type(None)}


class Budget:
    """How many values may still be read."""

    def __init__(self, values: int = MOST_VALUES) -> None:
        self.left = values

    def spend(self, values: int) -> bool:
        """Take so many, and return whether there were enough."""
        self.left -= values
        return self.left >= 0


def read(text: str, line: int, budget: Budget) -> Any:
    """The value that ``text``, which begins in ``line``, stands for; None if it is empty.

    Raises:
        InvalidError: naming the line of the first mistake.
    """
    if text.lstrip()[:1] == "{":
        try:
            return json.loads(
                text,
                object_pairs_hook=_unique,
                parse_constant=_refuse,
                parse_float=lambda number: scalars.whole(float(number)),
            )
        except (ValueError, RecursionError):
            pass  # YAML has braces as well, and its reader says where the mistake is
    try:
        return _Reader(text, line, budget).document()
    except yaml.YAMLError as error:
        raise _syntax_error(error, text, line) from None


def error_in(line: int, message: str) -> InvalidError:
    """An error that names a line."""
    return InvalidError.of([Violation(f"line {line}", message)])


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key occurs twice")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number in JSON")


def _syntax_error(error: yaml.YAMLError, text: str, line: int) -> InvalidError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        # The reader knows only how far it came, in bytes.
        position = getattr(error, "position", 0)
        lines = text.encode()[:position].count(b"\n")
        reason = getattr(error, "reason", "cannot be read")
        return error_in(line + lines, f"is no YAML: {reason}")
    problem = str(getattr(error, "problem", None) or "cannot be read").strip()
    here = text.split("\n")[mark.line] if mark.line < text.count("\n") + 1 else ""
    if here[mark.column : mark.column + 1] == "\t":
        problem = "a tab stands where only blanks may indent"
    return error_in(line + mark.line, f"is no YAML: {problem}")


class _Reader:
    """Builds one document's value from the parser's events, without trusting its size."""

    def __init__(self, text: str, line: int, budget: Budget) -> None:
        # Typed loosely, for every event that is asked has the marks that its type leaves open.
        self._events: Iterator[Any] = iter(yaml.parse(text, Loader=_LOADER))
        self._line = line
        self._budget = budget
        self._anchors: dict[str, tuple[Any, int] | None] = {}

    def document(self) -> Any:
        value = None
        for event in self._events:
            if not isinstance(
                event,
                yaml.StreamStartEvent
                | yaml.StreamEndEvent
                | yaml.DocumentStartEvent
                | yaml.DocumentEndEvent,
            ):
                value = self._read(event, 0)
        return value

    def _read(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if event.anchor is not None:
            # Known, but without a value yet: it must not contain itself.
            self._anchors[event.anchor] = None
        left = self._budget.left
        self._spend(event, 1)
        value = self._content(event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, left - self._budget.left)
        return value

    def _content(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if depth >= DEEPEST:
            raise self._error(event, f"must not be nested more than {DEEPEST} deep")
        if event.tag not in (None, "!", f"{_TAG}map", f"{_TAG}seq"):
            raise self._error(event, f"has the tag {event.tag!r}, which is not known")
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(depth)
        return self._object(depth)

    def _list(self, depth: int) -> list[Any]:
        items = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._read(event, depth + 1))
        return items

    def _object(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        lines: dict[str, int] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if _is_merge(event):
                following = next(self._events)
                for other in self._merged(following, depth):
                    merged = other | merged
                continue
            key = self._key(event)
            if key in lines:
                message = f"has the key {key!r} again, which is in line {lines[key]} already"
                raise self._error(event, message)
            lines[key] = self._line + event.start_mark.line
            values[key] = self._read(next(self._events), depth + 1)
        return merged | values

    def _key(self, event: Any) -> str:
        if isinstance(event, yaml.CollectionStartEvent):
            raise self._error(event, "must have a text as its key")
        key = self._read(event, DEEPEST)
        if isinstance(key, bool):
            return "true" if key else "false"
        if isinstance(key, str | int | float):
            return str(key)
        raise self._error(event, "must have a text as its key")

    def _merged(self, event: Any, depth: int) -> list[dict[str, Any]]:
        value = self._read(event, depth + 1)
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(item, dict) for item in values):
            raise self._error(event, "merges what is no object")
        return values

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            raise self._error(event, f"names the anchor {event.anchor!r}, which is not there")
        found = self._anchors[event.anchor]
        if found is None:
            raise self._error(event, f"has the anchor {event.anchor!r} inside itself")
        value, size = found
        self._spend(event, size)
        return _copy(value)

    def _scalar(self, event: Any) -> Any:
        if event.tag is None or event.tag == "!":
            plain = event.implicit[0] and event.tag is None
            value = scalars.resolve(event.value) if plain else event.value
        else:
            value = self._tagged(event)
        if isinstance(value, float) and not abs(value) < float("inf"):
            raise self._error(event, "must be a finite number")
        return value

    def _tagged(self, event: Any) -> Any:
        name = event.tag.removeprefix(_TAG)
        if name in ("str", "timestamp"):
            return event.value
        if name == "binary":
            try:
                return base64.b64decode("".join(event.value.split()), validate=True).decode()
            except (binascii.Error, ValueError):
                raise self._error(event, "must be base64 of a text") from None
        if name not in _RESOLVED:
            raise self._error(event, f"has the tag {event.tag!r}, which is not known")
        value = scalars.resolve(event.value)
        if not isinstance(value, _RESOLVED[name]):
            raise self._error(event, f"is tagged as {name}, but is {event.value[:60]!r}")
        return value

    def _spend(self, event: Any, size: int) -> None:
        if not self._budget.spend(size):
            raise self._error(event, f"must not hold more than {MOST_VALUES} values")

    def _error(self, event: Any, message: str) -> InvalidError:
        return error_in(self._line + event.start_mark.line, message)


def _is_merge(event: Any) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]


def _copy(value: Any) -> Any:
    """A value of its own, so that what becomes of one use does not change another."""
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value
