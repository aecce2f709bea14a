"""Structural schemas: what a CustomResourceDefinition says of its objects, made ready for use.

A schema is compiled once into a tree of ``Node``. ``settle`` brings an object into shape before
anybody looks at it: fields that are not known go, absent ones get their defaults.
``violations`` then says all that is wrong with it, in the words of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from hekla.domain.errors import Violation
from hekla.local.checks import Check, checks_of, shown, type_name

PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
DEEPEST: Final = 100
"""Levels that a schema may have."""

_OF_EVERY_OBJECT: Final = frozenset({"apiVersion", "kind", "metadata"})
_METADATA: Final = frozenset(
    {
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)


class _Nothing:
    """Stands for a value that is not there, which null is not."""


_ABSENT: Final = _Nothing()


class Node:
    """One place of a schema."""

    __slots__ = (
        "additional",
        "alternatives",
        "checks",
        "defaults",
        "embedded",
        "int_or_string",
        "items",
        "nullable",
        "preserve",
        "properties",
        "required",
        "type",
    )

    def __init__(self) -> None:
        self.type = ""
        """One of ``TYPES``, or empty: anything."""
        self.nullable = False
        self.preserve = False
        """Whether fields that are not known stay."""
        self.embedded = False
        """Whether it is a whole object with a kind and metadata."""
        self.int_or_string = False
        self.properties: dict[str, Node] = {}
        self.additional: Node | None = None
        """What every further field of a map is."""
        self.items: Node | None = None
        self.required: tuple[str, ...] = ()
        self.defaults: tuple[tuple[str, bytes], ...] = ()
        """The fields that are filled in where they are absent, and their values as JSON."""
        self.checks: tuple[Check, ...] = ()
        self.alternatives: tuple[tuple[str, tuple[Node, ...]], ...] = ()
        """``allOf``, ``anyOf``, ``oneOf`` and ``not``, with what is in them."""

    def settle(self, value: Any, path: str, unknown: list[str]) -> None:
        """Drop what is not known and null from ``value``, fill in defaults, all in place.

        The paths of what was not known are added to ``unknown``.
        """
        if isinstance(value, dict):
            self._settle_fields(value, path, unknown)
        elif isinstance(value, list) and self.items is not None:
            for index, item in enumerate(value):
                self.items.settle(item, f"{path}[{index}]", unknown)

    def _settle_fields(self, value: dict[str, Any], path: str, unknown: list[str]) -> None:
        properties = self.properties
        gone: list[str] = []
        for key, item in value.items():
            node = properties.get(key) or self.additional
            if node is None:
                if self.embedded and key in _OF_EVERY_OBJECT:
                    continue
                if not self.preserve:
                    unknown.append(_below(path, key))
                    gone.append(key)
            elif item is None:
                if not node.nullable:
                    gone.append(key)
            elif type(item) is dict or type(item) is list:
                node.settle(item, _below(path, key), unknown)
        for key in gone:
            del value[key]
        for key, default in self.defaults:
            if key not in value:
                value[key] = orjson.loads(default)

    def violations(self, value: Any, path: str, found: list[Violation], old: Any) -> None:
        """Add to ``found`` what is wrong with ``value``, where it differs from ``old``."""
        if old is not _ABSENT and _same(value, old):
            return  # what was there before may stay, whatever the schema says by now
        if not self._fits(value):
            if value is not None or not self.nullable:
                found.append(Violation(path, self._type_error(value, path)))
            return
        for check in self.checks:
            wrong = check(value, path)
            if wrong:
                found.append(Violation(path, wrong))
        for way, nodes in self.alternatives:
            wrong = _choice_error(way, nodes, value, path)
            if wrong:
                found.append(Violation(path, wrong))
        if isinstance(value, dict):
            self._field_violations(value, path, found, old)
        elif isinstance(value, list) and self.items is not None:
            for index, item in enumerate(value):
                self.items.violations(item, f"{path}[{index}]", found, _ABSENT)

    def _field_violations(
        self, value: dict[str, Any], path: str, found: list[Violation], old: Any
    ) -> None:
        before = old if isinstance(old, dict) else {}
        for key in self.required:
            if key not in value:
                found.append(Violation(_below(path, key), "Required value"))
        if self.embedded:
            for key in ("apiVersion", "kind"):
                if not value.get(key):
                    found.append(Violation(_below(path, key), "Required value"))
        for key, item in value.items():
            node = self.properties.get(key) or self.additional
            if node is not None:
                node.violations(item, _below(path, key), found, before.get(key, _ABSENT))

    def _fits(self, value: Any) -> bool:
        if value is None:
            return self.nullable and not self.checks
        if self.int_or_string:
            return type(value) is int or isinstance(value, str)
        if not self.type:
            return True
        return isinstance(value, TYPES[self.type]) and (
            self.type == "boolean" or not isinstance(value, bool)
        )

    def _type_error(self, value: Any, path: str) -> str:
        wanted = "integer,string" if self.int_or_string else self.type
        found = type_name(value)
        return f'Invalid value: "{found}": {path} in body must be of type {wanted}: "{found}"'


class Structural:
    """The schema of one version of a kind."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Compile ``schema``, which has no ``errors_of``."""
        self.source = schema
        self._root = root = _compile(schema)
        for key in ("apiVersion", "kind"):
            root.properties.setdefault(key, Node())
        root.properties.setdefault("metadata", Node()).preserve = True
        self.nullable = _any_nullable(root)
        """Whether a null says something anywhere; else it is as good as absent."""

    def settle(self, value: dict[str, Any]) -> list[str]:
        """Bring an object into shape, in place; the paths of what was not known."""
        unknown = [f"metadata.{key}" for key in value["metadata"] if key not in _METADATA]
        self._root.settle(value, "", unknown)
        return unknown

    def violations(
        self, value: dict[str, Any], old: Mapping[str, Any] | None = None
    ) -> list[Violation]:
        """All that is wrong with an object that is settled, where it differs from ``old``."""
        found: list[Violation] = []
        self._root.violations(value, "", found, _ABSENT)
        if found and old is not None:  # to compare costs, and most objects are valid
            found = []
            self._root.violations(value, "", found, old)
        return found


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


def _compile(schema: Mapping[str, Any]) -> Node:
    node = Node()
    node.type = schema.get("type", "")
    node.nullable = bool(schema.get("nullable"))
    node.preserve = bool(schema.get(PRESERVE))
    node.embedded = bool(schema.get(EMBEDDED))
    node.int_or_string = bool(schema.get(INT_OR_STRING))
    node.properties = {
        key: _compile(inner) for key, inner in schema.get("properties", {}).items()
    }
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        node.additional = _compile(additional)
    elif additional is True:
        node.additional = Node()
        node.additional.preserve = True
    if "items" in schema:
        node.items = _compile(schema["items"])
    node.required = tuple(schema.get("required", ()))
    node.checks = tuple(checks_of(schema))
    node.alternatives = tuple(
        (way, tuple(_compile(inner) for inner in inners))
        for way, inners in _choices(schema)
        if not (
            node.int_or_string and way in {"anyOf", "allOf"} and _says_int_or_string(inners)
        )
    )
    node.defaults = tuple(_defaults(schema, node))
    return node


def _any_nullable(node: Node) -> bool:
    below = [*node.properties.values(), node.additional, node.items]
    return node.nullable or any(_any_nullable(each) for each in below if each is not None)


def _defaults(schema: Mapping[str, Any], node: Node) -> Iterable[tuple[str, bytes]]:
    for key, inner in schema.get("properties", {}).items():
        if "default" in inner:
            default = orjson.loads(orjson.dumps(inner["default"]))
            node.properties[key].settle(default, "", [])
            yield key, orjson.dumps(default)


def _choices(schema: Mapping[str, Any]) -> Iterable[tuple[str, Sequence[Mapping[str, Any]]]]:
    for way in ("allOf", "anyOf", "oneOf"):
        if schema.get(way):
            yield way, schema[way]
    if "not" in schema:
        yield "not", [schema["not"]]


def _says_int_or_string(inners: Sequence[Mapping[str, Any]]) -> bool:
    return [inner.get("type") for inner in inners] == ["integer", "string"]


def _choice_error(way: str, nodes: Sequence[Node], value: Any, path: str) -> str:
    """What is wrong with ``value`` by schemas of which some, one or none must hold."""
    holding = 0
    for node in nodes:
        found: list[Violation] = []
        node.violations(value, path, found, _ABSENT)
        holding += not found
    says = {
        "allOf": (holding == len(nodes), "must validate all the schemas (allOf)"),
        "anyOf": (holding > 0, "must validate at least one schema (anyOf)"),
        "oneOf": (holding == 1, "must validate one and only one schema (oneOf)"),
        "not": (holding == 0, "must not validate the schema (not)"),
    }
    fine, why = says[way]
    return "" if fine else f'Invalid value: {shown(value)}: "{path}" {why}'


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
        for way, listed in _choices(schema)
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
            node = _compile(inner)
            default = orjson.loads(orjson.dumps(inner["default"]))
            unknown: list[str] = []
            node.settle(default, f"{at}.default", unknown)
            found += [Violation(each, "Invalid value: must not be unknown") for each in unknown]
            node.violations(default, f"{at}.default", found, _ABSENT)
        _judge_defaults(inner, at, found)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            _judge_defaults(schema[key], f"{path}.{key}", found)


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON; for Python 1 is True."""
    return orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(
        other, option=orjson.OPT_SORT_KEYS
    )


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
