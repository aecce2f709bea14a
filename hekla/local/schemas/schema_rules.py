"""What a structural schema must be: typed everywhere, with checks that can be made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from hekla.domain.errors import Violation
from hekla.local.schemas.checks import checks_of, shown
from hekla.local.schemas.structural import (
    ABSENT,
    INT_OR_STRING,
    PRESERVE,
    TYPES,
    choices,
    compiled,
)

DEEPEST: Final = 100
"""Levels that a schema may have."""


def errors_of(schema: object, path: str) -> list[Violation]:
    """All that keeps ``schema``, which is at ``path``, from being a structural schema."""
    found: list[Violation] = []
    _judge(schema, path, found, depth=0)
    if not found:
        assert isinstance(schema, dict)
        if schema.get("type") != "object":
            why = f"Invalid value: {shown(schema.get('type', ''))}: must be object at the root"
            found.append(Violation(f"{path}.type", why))
        _judge_defaults(schema, path, found)
    return found


_WRONG_SHAPES: Final[Mapping[str, type]] = {
    "properties": dict,
    "required": list,
    "allOf": list,
    "anyOf": list,
    "oneOf": list,
    "type": str,
}


def _judge(
    schema: object, path: str, found: list[Violation], *, depth: int, structural: bool = True
) -> None:
    if not isinstance(schema, dict):
        found.append(Violation(path, "Invalid value: must be an object"))
        return
    if depth > DEEPEST:
        found.append(Violation(path, f"Too many: must have at most {DEEPEST} levels"))
        return
    shapes = [
        Violation(f"{path}.{key}", f"Invalid value: {shown(schema[key])}: has another type")
        for key, shape in _WRONG_SHAPES.items()
        if not isinstance(schema.get(key, shape()), shape)
    ]
    if shapes:
        found += shapes
        return
    if "$ref" in schema:
        found.append(Violation(f"{path}.$ref", "Forbidden: $ref is not supported"))
    # What only narrows a value down need not say its type again.
    found += _type_errors(schema, path) if structural else ()
    found += [
        Violation(f"{path}.{key}", f"Invalid value: {shown(schema[key])}: {why}")
        for key, why in _unusable(schema)
    ]
    inners = [
        (inner, f"{path}.properties[{key}]", structural)
        for key, inner in schema.get("properties", {}).items()
    ]
    if "items" in schema:
        inners.append((schema["items"], f"{path}.items", structural))
    if not isinstance(schema.get("additionalProperties", True), bool):
        inners.append(
            (schema["additionalProperties"], f"{path}.additionalProperties", structural)
        )
    inners += [
        (inner, f"{path}.{way}[{index}]", False)
        for way, listed in choices(schema)
        for index, inner in enumerate(listed)
    ]
    for inner, at, whole in inners:
        _judge(inner, at, found, depth=depth + 1, structural=whole)


def _type_errors(schema: Mapping[str, Any], path: str) -> Iterable[Violation]:
    kind = schema.get("type", "")
    if schema.get(INT_OR_STRING):
        if kind:
            why = f"Forbidden: must be empty if {INT_OR_STRING} is true"
            yield Violation(f"{path}.type", why)
    elif not kind and not schema.get(PRESERVE):
        why = "Required value: must not be empty for specified object fields"
        yield Violation(f"{path}.type", why)
    if kind and kind not in TYPES:
        listed = ", ".join(shown(each) for each in sorted(TYPES))
        why = f"Unsupported value: {shown(kind)}: supported values: {listed}"
        yield Violation(f"{path}.type", why)
    if kind == "array" and "items" not in schema:
        yield Violation(f"{path}.items", "Required value: must be specified")
    if schema.get("properties") and schema.get("additionalProperties"):
        why = "Forbidden: additionalProperties and properties are mutual exclusive"
        yield Violation(f"{path}.additionalProperties", why)


def _unusable(schema: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The keywords of one place whose values make no check."""
    wrong: list[tuple[str, str]] = []
    checks_of(schema, wrong)
    if not all(isinstance(each, str) for each in schema.get("required", [])):
        wrong.append(("required", "must be a list of names"))
    return wrong


def _judge_defaults(schema: Mapping[str, Any], path: str, found: list[Violation]) -> None:
    """Add what is wrong with defaults, which must be valid themselves."""
    for key, inner in schema.get("properties", {}).items():
        at = f"{path}.properties[{key}]"
        if "default" in inner:
            node = compiled(inner)
            default = orjson.loads(orjson.dumps(inner["default"]))
            unknown: list[str] = []
            node.settle(default, f"{at}.default", unknown)
            found += [Violation(each, "Invalid value: must not be unknown") for each in unknown]
            node.violations(default, f"{at}.default", found, ABSENT)
        _judge_defaults(inner, at, found)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            _judge_defaults(schema[key], f"{path}.{key}", found)
