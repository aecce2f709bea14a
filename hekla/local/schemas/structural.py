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
from hekla.local.schemas.checks import Check, checks_of, shown, type_name

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


ABSENT: Final = _Nothing()
"""The value of what is not there."""


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
                    unknown.append(below(path, key))
                    gone.append(key)
            elif item is None:
                if not node.nullable:
                    gone.append(key)
            elif type(item) is dict or type(item) is list:
                node.settle(item, below(path, key), unknown)
        for key in gone:
            del value[key]
        for key, default in self.defaults:
            if key not in value:
                value[key] = orjson.loads(default)

    def violations(self, value: Any, path: str, found: list[Violation], old: Any) -> None:
        """Add to ``found`` what is wrong with ``value``, where it differs from ``old``."""
        if old is not ABSENT and _same(value, old):
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
                self.items.violations(item, f"{path}[{index}]", found, ABSENT)

    def _field_violations(
        self, value: dict[str, Any], path: str, found: list[Violation], old: Any
    ) -> None:
        before = old if isinstance(old, dict) else {}
        for key in self.required:
            if key not in value:
                found.append(Violation(below(path, key), "Required value"))
        if self.embedded:
            for key in ("apiVersion", "kind"):
                if not value.get(key):
                    found.append(Violation(below(path, key), "Required value"))
        for key, item in value.items():
            node = self.properties.get(key) or self.additional
            if node is not None:
                node.violations(item, below(path, key), found, before.get(key, ABSENT))

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
        """Compile ``schema``, of which ``schema_rules`` finds nothing wrong."""
        self.source = schema
        self._root = root = compiled(schema)
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
        self._root.violations(value, "", found, ABSENT)
        if found and old is not None:  # to compare costs, and most objects are valid
            found = []
            self._root.violations(value, "", found, old)
        return found


def compiled(schema: Mapping[str, Any]) -> Node:
    """One place of a schema, with all that is below it."""
    node = Node()
    node.type = schema.get("type", "")
    node.nullable = bool(schema.get("nullable"))
    node.preserve = bool(schema.get(PRESERVE))
    node.embedded = bool(schema.get(EMBEDDED))
    node.int_or_string = bool(schema.get(INT_OR_STRING))
    node.properties = {
        key: compiled(inner) for key, inner in schema.get("properties", {}).items()
    }
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        node.additional = compiled(additional)
    elif additional is True:
        node.additional = Node()
        node.additional.preserve = True
    if "items" in schema:
        node.items = compiled(schema["items"])
    node.required = tuple(schema.get("required", ()))
    node.checks = tuple(checks_of(schema))
    node.alternatives = tuple(
        (way, tuple(compiled(inner) for inner in inners))
        for way, inners in choices(schema)
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


def choices(schema: Mapping[str, Any]) -> Iterable[tuple[str, Sequence[Mapping[str, Any]]]]:
    """The further schemas of one place, of which all, some, one or none must hold."""
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
        node.violations(value, path, found, ABSENT)
        holding += not found
    says = {
        "allOf": (holding == len(nodes), "must validate all the schemas (allOf)"),
        "anyOf": (holding > 0, "must validate at least one schema (anyOf)"),
        "oneOf": (holding == 1, "must validate one and only one schema (oneOf)"),
        "not": (holding == 0, "must not validate the schema (not)"),
    }
    fine, why = says[way]
    return "" if fine else f'Invalid value: {shown(value)}: "{path}" {why}'


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON; for Python 1 is True."""
    return orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(
        other, option=orjson.OPT_SORT_KEYS
    )


def below(path: str, key: str) -> str:
    """The path of a field."""
    return f"{path}.{key}" if path else key
