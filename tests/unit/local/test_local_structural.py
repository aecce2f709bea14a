"""What a schema makes of an object: what is dropped, filled in, refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import assume, given, settings, strategies as st

from hekla.api.crd import DEFINITIONS
from hekla.local.schemas import schema_rules
from hekla.local.schemas.structural import Structural

Schema = dict[str, Any]
FREE = {"x-kubernetes-preserve-unknown-fields": True}
MIXED = {"x-kubernetes-int-or-string": True}


def whole(**properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": properties}},
    }


def made(spec: Any, **more: Any) -> Schema:
    return {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "x"}, "spec": spec, **more}


def settled(schema: Schema, spec: Any) -> tuple[Any, list[str]]:
    value = made(spec)
    unknown = Structural(schema).settle(value)
    return value["spec"], unknown


def wrong(schema: Schema, spec: Any, old: Any = None) -> dict[str, str]:
    before = None if old is None else made(old)
    found = Structural(schema).violations(made(spec), before)
    return {each.path: each.message for each in found}


NESTED = {"type": "object", "properties": {"a": {"type": "string", "default": "A"}}}


@pytest.mark.parametrize(
    ("schema", "given_spec", "expected", "unknown"),
    [
        pytest.param(
            {"a": {"type": "string"}}, {"a": "x", "b": 1}, {"a": "x"}, ["spec.b"], id="unknown"
        ),
        pytest.param(
            {"a": {"type": "array", "items": NESTED}},
            {"a": [{"b": 1}, {"a": "x"}]},
            {"a": [{"a": "A"}, {"a": "x"}]},
            ["spec.a[0].b"],
            id="in lists",
        ),
        pytest.param(
            {"m": {"type": "object", "additionalProperties": NESTED}},
            {"m": {"k": {"b": 1}}},
            {"m": {"k": {"a": "A"}}},
            ["spec.m.k.b"],
            id="in maps",
        ),
        pytest.param(
            {"m": {"type": "object", "additionalProperties": True}},
            {"m": {"k": {"b": 1}}},
            {"m": {"k": {"b": 1}}},
            [],
            id="maps of anything",
        ),
        pytest.param(
            {"t": {"type": "object", **FREE, "properties": {"n": NESTED}}},
            {"t": {"x": {"y": None}, "n": {"b": 1}}},
            {"t": {"x": {"y": None}, "n": {"a": "A"}}},
            ["spec.t.n.b"],
            id="free, but for what is described",
        ),
        pytest.param(
            {"t": {"type": "object"}}, {"t": {"a": 1}}, {"t": {}}, ["spec.t.a"], id="closed"
        ),
        pytest.param(
            {"o": {"type": "object", "x-kubernetes-embedded-resource": True}},
            {"o": {"apiVersion": "v1", "kind": "X", "metadata": {"a": 1}, "z": 1}},
            {"o": {"apiVersion": "v1", "kind": "X", "metadata": {"a": 1}}},
            ["spec.o.z"],
            id="a whole object inside",
        ),
        pytest.param(
            {"a": {"type": "string", "default": "A"}}, {}, {"a": "A"}, [], id="default"
        ),
        pytest.param(
            {"a": {"type": "string", "default": "A"}},
            {"a": None},
            {"a": "A"},
            [],
            id="a null is as good as absent",
        ),
        pytest.param(
            {"a": {"type": "string", "default": "A", "nullable": True}},
            {"a": None},
            {"a": None},
            [],
            id="unless it says something",
        ),
        pytest.param(
            {"o": {**NESTED, "default": {}}},
            {},
            {"o": {"a": "A"}},
            [],
            id="a default gets defaults",
        ),
        pytest.param({"o": NESTED}, {}, {}, [], id="nothing is made to hold a default"),
    ],
)
def test_an_object_is_brought_into_shape(
    schema: Schema, given_spec: Any, expected: Any, unknown: list[str]
) -> None:
    assert settled(whole(**schema), given_spec) == (expected, unknown)


def test_fields_of_metadata_that_nobody_knows_are_named() -> None:
    value = made({}) | {"metadata": {"name": "x", "bogus": 1}, "extra": 2}

    assert Structural(whole()).settle(value) == ["metadata.bogus", "extra"]


@pytest.mark.parametrize(
    ("schema", "value", "says"),
    [
        (
            {"type": "integer"},
            "1",
            'Invalid value: "string": spec.a in body must be of type integer: "string"',
        ),
        (
            {"type": "string"},
            True,
            'Invalid value: "boolean": spec.a in body must be of type string: "boolean"',
        ),
        (
            {"type": "integer"},
            True,
            'Invalid value: "boolean": spec.a in body must be of type integer: "boolean"',
        ),
        (
            {"type": "object"},
            [],
            'Invalid value: "array": spec.a in body must be of type object: "array"',
        ),
        (
            {"type": "string"},
            None,
            'Invalid value: "null": spec.a in body must be of type string: "null"',
        ),
        (
            MIXED,
            1.5,
            'Invalid value: "number": spec.a in body must be of type integer,string: "number"',
        ),
        (
            {"type": "integer", "minimum": 0},
            -1,
            "Invalid value: -1: spec.a in body should be greater than or equal to 0",
        ),
        (
            {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
            0,
            "Invalid value: 0: spec.a in body should be greater than 0",
        ),
        (
            {"type": "integer", "maximum": 65535},
            65536,
            "Invalid value: 65536: spec.a in body should be less than or equal to 65535",
        ),
        (
            {"type": "number", "multipleOf": 0.5},
            0.7,
            "Invalid value: 0.7: spec.a in body should be a multiple of 0.5",
        ),
        (
            {"type": "string", "minLength": 1},
            "",
            'Invalid value: "": spec.a in body should be at least 1 chars long',
        ),
        ({"type": "string", "maxLength": 2}, "abc", "Too long: may not be more than 2 bytes"),
        (
            {"type": "string", "pattern": "^[a-z]$"},
            "a\n",
            "Invalid value: \"a\\n\": spec.a in body should match '^[a-z]$'",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
            [],
            "Invalid value: 0: spec.a in body should have at least 1 items",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "maxItems": 1},
            ["a", "b"],
            "Too many: 2: must have at most 1 items",
        ),
        (
            {"type": "string", "enum": ["hard", "soft"]},
            "x",
            'Unsupported value: "x": supported values: "hard", "soft"',
        ),
        (
            {"type": "string", "format": "date-time"},
            "noon",
            'Invalid value: "noon": spec.a in body must be of type date-time: "noon"',
        ),
        (
            {"type": "integer", "format": "int32"},
            2**31,
            "Invalid value: 2147483648: Checked value must be of type integer with "
            "format int32 in spec.a",
        ),
        (
            {"type": "string", "anyOf": [{"minLength": 3}, {"enum": ["a"]}]},
            "b",
            'Invalid value: "b": "spec.a" must validate at least one schema (anyOf)',
        ),
        (
            {"type": "string", "oneOf": [{"minLength": 1}, {"maxLength": 3}]},
            "b",
            'Invalid value: "b": "spec.a" must validate one and only one schema (oneOf)',
        ),
        (
            {"type": "string", "not": {"enum": ["b"]}},
            "b",
            'Invalid value: "b": "spec.a" must not validate the schema (not)',
        ),
    ],
)
def test_what_is_wrong_with_a_value_is_said_as_kubernetes_says_it(
    schema: Schema, value: Any, says: str
) -> None:
    assert wrong(whole(a=schema), {"a": value}) == {"spec.a": says}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "number"}, 1),
        (MIXED, 1),
        (MIXED, "1"),
        (MIXED | {"anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "^1$"}, 2),
        ({"type": "string", "nullable": True}, None),
        ({"type": "string", "format": "who-knows"}, "x"),
        ({"type": "string", "pattern": "b"}, "abc"),
        ({"type": "string", "pattern": r"^[$]\$$"}, "$$"),
        (FREE, [1, {"a": None}]),
        ({"type": "string", "allOf": [{"minLength": 1}, {"maxLength": 3}]}, "b"),
    ],
)
def test_what_fits_is_fine(schema: Schema, value: Any) -> None:
    assert wrong(whole(a=schema), {"a": value}) == {}


def test_paths_lead_through_lists_and_maps_to_what_is_missing() -> None:
    item = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    schema = whole(
        l={"type": "array", "items": item}, m={"type": "object", "additionalProperties": item}
    )

    found = wrong(schema, {"l": [{"n": 1}, {}], "m": {"k": {"n": "x"}}})

    assert found == {
        "spec.l[1].n": "Required value",
        "spec.m.k.n": 'Invalid value: "string": spec.m.k.n in body must be of type integer: '
        '"string"',
    }


def test_what_was_wrong_before_may_stay_and_nothing_else() -> None:
    schema = whole(
        a={"type": "integer", "maximum": 3},
        b={"type": "integer", "maximum": 3},
        l={"type": "array", "items": {"type": "integer", "maximum": 3}},
    )

    assert wrong(schema, {"a": 9, "b": 1}, old={"a": 9}) == {}
    assert wrong(schema, {"a": 9, "b": 9}, old={"a": 9, "b": 8}).keys() == {"spec.b"}
    assert wrong(schema, {"l": [9], "b": 2}, old={"l": [9]}) == {}
    assert wrong(schema, {"l": [9, 1]}, old={"l": [9]}).keys() == {"spec.l[0]"}
    assert wrong(schema, {"a": True}, old={"a": 1}).keys() == {"spec.a"}, "true is not 1"


@pytest.mark.parametrize(
    ("schema", "path", "says"),
    [
        pytest.param(5, "s", "must be an object", id="no object"),
        pytest.param({"type": "string"}, "s.type", "must be object at the root", id="root"),
        pytest.param(
            whole(a={}), "s.properties[spec].properties[a].type", "Required", id="none"
        ),
        pytest.param(
            whole(a={"type": "int"}),
            "s.properties[spec].properties[a].type",
            'Unsupported value: "int"',
            id="no such type",
        ),
        pytest.param(
            whole(a={"type": ["string"]}),
            "s.properties[spec].properties[a].type",
            "Invalid value",
            id="a list of types",
        ),
        pytest.param(
            whole(a={"type": "array"}),
            "s.properties[spec].properties[a].items",
            "Required value",
            id="no items",
        ),
        pytest.param(
            whole(a={"type": "string", "pattern": "("}),
            "s.properties[spec].properties[a].pattern",
            "must be a valid regular expression",
            id="pattern",
        ),
        pytest.param(
            whole(a={"type": "string", "maxLength": "x"}),
            "s.properties[spec].properties[a].maxLength",
            "must be a whole number",
            id="bound",
        ),
        pytest.param(
            whole(a={"type": "string", "$ref": "#/x"}),
            "s.properties[spec].properties[a].$ref",
            "Forbidden",
            id="reference",
        ),
        pytest.param(
            whole(a={"type": "string", "default": 5}),
            "s.properties[spec].properties[a].default",
            "must be of type string",
            id="a default of another type",
        ),
        pytest.param(
            whole(a={"type": "string", "anyOf": [{"pattern": "("}]}),
            "s.properties[spec].properties[a].anyOf[0].pattern",
            "must be a valid regular expression",
            id="inside a choice",
        ),
    ],
)
def test_what_is_no_structural_schema_is_refused(schema: Any, path: str, says: str) -> None:
    found = {each.path: each.message for each in schema_rules.errors_of(schema, "s")}

    assert says in found[path]


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda one: one.kind)
def test_our_own_schemas_are_structural(definition: Any) -> None:
    version = definition.manifest()["spec"]["versions"][0]

    assert schema_rules.errors_of(version["schema"]["openAPIV3Schema"], "s") == []


NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "default": "d"},
        {"type": "string", "nullable": True},
        {"type": "integer", "minimum": 0},
        {"type": "integer", "default": 3},
        {"type": "boolean"},
        MIXED,
        FREE,
    ]
)
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: (
        st.builds(
            lambda fields, free: {"type": "object", "properties": fields, **free},
            st.dictionaries(NAMES, inner, max_size=3),
            st.sampled_from([{}, FREE]),
        )
        | st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda each: {"type": "object", "additionalProperties": each}, inner)
    ),
    max_leaves=8,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(NAMES, SCHEMAS, max_size=3), VALUES)
def test_an_object_in_shape_stays_as_it_is(properties: Schema, spec: Any) -> None:
    schema = whole(**properties)
    assume(not schema_rules.errors_of(schema, "s"))
    value = made(spec)
    compiled = Structural(schema)
    compiled.settle(value)
    once = copy.deepcopy(value)

    assert compiled.settle(value) == [], "nothing unknown is left"
    assert value == once
    found = compiled.violations(value)
    assert compiled.violations(value, copy.deepcopy(value)) == [], "nothing has changed"
    assert value == once, "to look at it does not change it"
    assert all(each.path.startswith("spec") and each.message for each in found)


@settings(max_examples=100, deadline=None)
@given(VALUES, st.sampled_from(DEFINITIONS))
def test_whatever_is_sent_is_brought_into_shape_and_judged(spec: Any, definition: Any) -> None:
    version = definition.manifest()["spec"]["versions"][0]
    compiled = Structural(version["schema"]["openAPIV3Schema"])
    value = made(spec, status=spec)

    compiled.settle(value)
    compiled.violations(value)


@settings(max_examples=150, deadline=None)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-3, 3)
        | st.sampled_from(["", "(", "object", "array", "string"]),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(
                    [
                        *("type", "properties", "items", "required", "enum", "pattern"),
                        *("additionalProperties", "anyOf", "not", "default", "minimum", "a"),
                        *("maxLength", "nullable", "format", "allOf", "multipleOf"),
                        "x-kubernetes-preserve-unknown-fields",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
    VALUES,
)
def test_whatever_is_sent_as_a_schema_is_refused_or_works(schema: Any, spec: Any) -> None:
    if not schema_rules.errors_of(schema, "s"):
        compiled = Structural(schema)
        value = made(spec)
        compiled.settle(value)
        compiled.violations(value)
