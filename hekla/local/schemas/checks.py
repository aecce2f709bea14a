"""What a schema says of one value: bounds, lengths, patterns, formats, choices.

Each keyword becomes a function made once. What it says follows Kubernetes' own words, for that
is what people and programs look for.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sized
from datetime import date
from functools import partial
from typing import Any, Final

import orjson

from hekla.domain import duration, timestamps
from hekla.domain.errors import InvalidError

Check = Callable[[Any, str], str]
"""What is wrong with a value that stands at a path, or nothing."""

_LONGEST_SHOWN: Final = 1_000
_TYPE_NAMES: Final[Mapping[type, str]] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


def shown(value: Any) -> str:
    """A value as messages show it."""
    text = orjson.dumps(value).decode()
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def type_name(value: Any) -> str:
    """The name of the JSON type of a value."""
    return _TYPE_NAMES[type(value)]


def checks_of(
    schema: Mapping[str, Any], wrong: list[tuple[str, str]] | None = None
) -> list[Check]:
    """The checks that one place of a schema asks for.

    Keywords whose values make none are added to ``wrong``, with what they must be.
    """
    found: list[Check] = []
    for key, (make, fits, must) in _MAKERS.items():
        if key not in schema:
            continue
        if fits(schema[key]):
            found += make(schema)
        elif wrong is not None:
            wrong.append((key, must))
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_pattern(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(_regex(value))
    except (re.error, OverflowError, RecursionError):
        return False


def _says(value: Any, path: str, why: str) -> str:
    return f"Invalid value: {shown(value)}: {path} in body {why}"


def _minimum(schema: Mapping[str, Any]) -> Iterable[Check]:
    least = schema["minimum"]
    if schema.get("exclusiveMinimum") is True:
        yield (
            lambda value, path: (
                _says(value, path, f"should be greater than {least}")
                if _is_number(value) and value <= least
                else ""
            )
        )
    else:
        yield (
            lambda value, path: (
                _says(value, path, f"should be greater than or equal to {least}")
                if _is_number(value) and value < least
                else ""
            )
        )


def _maximum(schema: Mapping[str, Any]) -> Iterable[Check]:
    most = schema["maximum"]
    if schema.get("exclusiveMaximum") is True:
        yield (
            lambda value, path: (
                _says(value, path, f"should be less than {most}")
                if _is_number(value) and value >= most
                else ""
            )
        )
    else:
        yield (
            lambda value, path: (
                _says(value, path, f"should be less than or equal to {most}")
                if _is_number(value) and value > most
                else ""
            )
        )


def _multiple_of(schema: Mapping[str, Any]) -> Iterable[Check]:
    factor = schema["multipleOf"]
    yield (
        lambda value, path: (
            _says(value, path, f"should be a multiple of {factor}")
            if _is_number(value) and value % factor
            else ""
        )
    )


_COUNTED: Final[Mapping[str, type[Sized]]] = {"Length": str, "Items": list, "Properties": dict}
_TOO_FEW: Final = {
    "Length": "should be at least {} chars long",
    "Items": "should have at least {} items",
    "Properties": "should have at least {} properties",
}


def _at_least(what: str, schema: Mapping[str, Any]) -> Iterable[Check]:
    counted, least = _COUNTED[what], schema[f"min{what}"]

    def check(value: Any, path: str) -> str:
        if not isinstance(value, counted) or len(value) >= least:
            return ""
        return _says(
            value if what == "Length" else len(value), path, _TOO_FEW[what].format(least)
        )

    yield check


def _at_most(what: str, schema: Mapping[str, Any]) -> Iterable[Check]:
    counted, most = _COUNTED[what], schema[f"max{what}"]

    def check(value: Any, _: str) -> str:
        if not isinstance(value, counted) or len(value) <= most:
            return ""
        if what == "Length":
            return f"Too long: may not be more than {most} bytes"
        return f"Too many: {len(value)}: must have at most {most} items"

    yield check


def _pattern(schema: Mapping[str, Any]) -> Iterable[Check]:
    text = schema["pattern"]
    regex = _regex(text)
    yield (
        lambda value, path: (
            _says(value, path, f"should match '{text}'")
            if isinstance(value, str) and regex.search(value) is None
            else ""
        )
    )


def _regex(text: str) -> re.Pattern[str]:
    """A pattern of Go's; there ``$`` is the very end, and a final newline counts."""
    return re.compile(re.sub(r"(\\.|\[(?:\\.|[^\]\\])*\])|\$", _end, text), re.ASCII)


def _end(found: re.Match[str]) -> str:
    return found[1] or r"\Z"


def _enum(schema: Mapping[str, Any]) -> Iterable[Check]:
    choices = schema["enum"]
    listed = ", ".join(shown(each) for each in choices)
    yield (
        lambda value, _: (
            ""
            if any(value == each and type(value) is type(each) for each in choices)
            else f"Unsupported value: {shown(value)}: supported values: {listed}"
        )
    )


def _format(schema: Mapping[str, Any]) -> Iterable[Check]:
    name = schema["format"]
    if name in _INTEGERS:
        bound = _INTEGERS[name]
        yield (
            lambda value, path: (
                f"Invalid value: {shown(value)}: Checked value must be of type integer with "
                f"format {name} in {path}"
                if _is_count(value) and not -bound <= value < bound
                else ""
            )
        )
    elif name in FORMATS:
        holds = FORMATS[name]
        yield (
            lambda value, path: (
                _says(value, path, f"must be of type {name}: {shown(value)}")
                if isinstance(value, str) and not holds(value)
                else ""
            )
        )


_INTEGERS: Final = {"int32": 2**31, "int64": 2**63}


def _succeeds(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except (ValueError, InvalidError, binascii.Error):
        return False
    return True


FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "date-time": partial(_succeeds, timestamps.from_text),
    "datetime": partial(_succeeds, timestamps.from_text),
    "date": partial(_succeeds, date.fromisoformat),
    "duration": partial(_succeeds, duration.parse),
    "byte": partial(_succeeds, partial(base64.b64decode, validate=True)),
    "uuid": partial(_succeeds, uuid.UUID),
    "ipv4": partial(_succeeds, ipaddress.IPv4Address),
    "ipv6": partial(_succeeds, ipaddress.IPv6Address),
    "cidr": partial(_succeeds, ipaddress.ip_network),
}
"""The formats of texts that are checked; others say nothing, as in Kubernetes."""

_NUMBER: Final = (_is_number, "must be a number")
_COUNT: Final = (_is_count, "must be a whole number")

_MAKERS: Final[
    Mapping[
        str,
        tuple[Callable[[Mapping[str, Any]], Iterable[Check]], Callable[[object], bool], str],
    ]
] = {
    "enum": (
        _enum,
        lambda value: isinstance(value, list) and bool(value),
        "must be a list of values",
    ),
    "minimum": (_minimum, *_NUMBER),
    "maximum": (_maximum, *_NUMBER),
    "multipleOf": (
        _multiple_of,
        lambda value: _is_number(value) and bool(value),
        "must be a number",
    ),
    **{f"min{what}": (partial(_at_least, what), *_COUNT) for what in _COUNTED},
    **{f"max{what}": (partial(_at_most, what), *_COUNT) for what in _COUNTED},
    "pattern": (
        _pattern,
        _is_pattern,
        "must be a valid regular expression, but isn't",
    ),
    "format": (_format, lambda value: isinstance(value, str), "must be a text"),
}
