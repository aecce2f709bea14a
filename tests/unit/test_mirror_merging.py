"""Patches, and what counts as the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from hekla.kube.mirror import merging

LEAVES = st.one_of(st.booleans(), st.integers(-3, 3), st.text("ab", max_size=2))
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.text("xyz", min_size=1, max_size=1), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text("xyz", min_size=1, max_size=1), VALUES, max_size=3)


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386, as it stands there."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


@given(found=OBJECTS, wanted=OBJECTS)
def test_a_patch_makes_one_object_into_the_other(
    found: dict[str, Any], wanted: dict[str, Any]
) -> None:
    patch = merging.patch(found, wanted)

    assert merging.same(merged(found, patch or {}), wanted)
    assert (patch is None) == merging.same(found, wanted)


@pytest.mark.parametrize(
    ("found", "wanted", "agree"),
    [
        ({"a": None}, {}, True),
        ({}, {"a": None}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": [1, 2]}, {"a": [1]}, False),
        (
            {"ports": [{"containerPort": 1, "protocol": "TCP"}]},
            {"ports": [{"containerPort": 1}]},
            True,
        ),
        (
            {"ports": [{"containerPort": 1, "protocol": "UDP"}]},
            {"ports": [{"containerPort": 1}]},
            False,
        ),
        ({"a": 1, "more": 2}, {"a": 1}, False),
        ({"a": 1}, {"a": 1, "more": 2}, False),
    ],
)
def test_what_definitions_fill_in_is_no_difference(
    found: dict[str, Any], wanted: dict[str, Any], *, agree: bool
) -> None:
    assert merging.says(found, wanted) is agree
