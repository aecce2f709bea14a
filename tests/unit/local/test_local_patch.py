from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, strategies as st

from hekla.local.patches.standard import (
    JsonPatch,
    MalformedError,
    UnfitError,
    merge,
    without_nulls,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("target", "patch", "merged"),
    [
        pytest.param({"a": "b"}, {"a": "c"}, {"a": "c"}, id="a value is replaced"),
        pytest.param({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}, id="a value is added"),
        pytest.param({"a": "b"}, {"a": None}, {}, id="null removes"),
        pytest.param(
            {"a": "b", "b": "c"}, {"a": None}, {"b": "c"}, id="null removes only that"
        ),
        pytest.param({"a": ["b"]}, {"a": "c"}, {"a": "c"}, id="a list gives way to a value"),
        pytest.param({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}, id="a value gives way to a list"),
        pytest.param(
            {"a": {"b": "c"}},
            {"a": {"b": "d", "c": None}},
            {"a": {"b": "d"}},
            id="objects merge, and removing what is absent does nothing",
        ),
        pytest.param({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}, id="lists do not merge"),
        pytest.param(["a", "b"], ["c", "d"], ["c", "d"], id="a list at the top is replaced"),
        pytest.param({"a": "b"}, ["c"], ["c"], id="a patch that is no object replaces all"),
        pytest.param(
            {"e": None}, {"a": 1}, {"e": None, "a": 1}, id="a null that is there stays"
        ),
        pytest.param(
            [1, 2], {"a": "b", "c": None}, {"a": "b"}, id="a list gives way to an object"
        ),
        pytest.param(
            {}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}, id="nulls never enter"
        ),
    ],
)
def test_a_merge_patch_is_applied_as_rfc_7386_says(
    target: Any, patch: Any, merged: Any
) -> None:
    assert merge(target, patch) == merged


@given(JSON, JSON)
def test_a_merge_patch_applied_twice_changes_nothing_more(target: Any, patch: Any) -> None:
    once = merge(target, patch)

    assert merge(once, patch) == once


@given(JSON)
def test_what_is_left_without_nulls_has_none_in_objects(value: Any) -> None:
    def members(found: Any) -> list[Any]:
        if isinstance(found, dict):
            return [
                *found.values(),
                *(inner for item in found.values() for inner in members(item)),
            ]
        return (
            [inner for item in found for inner in members(item)]
            if isinstance(found, list)
            else []
        )

    assert None not in members(without_nulls(value))


PATHS = st.sampled_from(
    ["", "/", "/a", "/a/0", "/a/-", "/b/c", "/b/c/d", "/-", "a", "/~2", "/a/01"]
)
OPERATIONS = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "jump"])},
    optional={
        "path": PATHS | st.integers(),
        "from": PATHS | st.none(),
        "value": st.none() | st.integers() | st.just({"a": [1]}) | st.text(max_size=2),
    },
)


@given(st.lists(OPERATIONS | st.text(max_size=2), max_size=4))
def test_whatever_stands_in_a_json_patch_is_done_or_refused(operations: list[Any]) -> None:
    target = {"a": [1, 2], "b": {"c": "text"}}

    with contextlib.suppress(MalformedError, UnfitError):
        JsonPatch(operations).apply(target)

    assert target == {"a": [1, 2], "b": {"c": "text"}}
