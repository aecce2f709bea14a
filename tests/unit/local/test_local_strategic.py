"""Strategic merge patches do what Kubernetes' do: cases from how its own are documented."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, strategies as st

from hekla.local.patches.merge_keys import Merging, merging_of
from hekla.local.patches.standard import MalformedError, UnfitError, merge
from hekla.local.patches.strategic import StrategicPatch, parsed

ITEMS = Merging(merged=True, key="name", fields={"ports": Merging(merged=True, key="port")})
SCALARS = Merging(merged=True)
FIELDS = Merging(
    fields={
        "items": ITEMS,
        "words": SCALARS,
        "whole": Merging(replaced=True),
        "inner": Merging(fields={"items": ITEMS}),
    }
)


def named(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, **more} for name in names]


def patched(target: Any, patch: Any) -> Any:
    return parsed(patch, FIELDS).apply(target)


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="a value is added"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="null removes"),
        pytest.param({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="new nulls are none"),
        pytest.param({"a": [1]}, {"a": [2]}, {"a": [2]}, id="a list of no kind is replaced"),
        pytest.param(
            {"whole": {"a": 1}}, {"whole": {"b": 2}}, {"whole": {"b": 2}}, id="whole objects"
        ),
        pytest.param(
            {"items": named("a", v=1) + named("b", v=1)},
            {"items": named("b", w=2)},
            {"items": [{"name": "a", "v": 1}, {"name": "b", "v": 1, "w": 2}]},
            id="an item is merged by its key, where it stands",
        ),
        pytest.param(
            {"items": named("a", "b")},
            {"items": named("c")},
            {"items": named("c", "a", "b")},
            id="a new item comes first",
        ),
        pytest.param(
            {"items": named("a", "b", "c")},
            {"items": [{"$patch": "delete", "name": "b"}]},
            {"items": named("a", "c")},
            id="an item is deleted",
        ),
        pytest.param(
            {"items": named("a", "b")},
            {"items": [*named("c"), {"$patch": "replace"}]},
            {"items": named("c")},
            id="a list is replaced",
        ),
        pytest.param(
            {"items": named("a", v=1)},
            {"items": [{"name": "a", "$patch": "replace", "w": 2}]},
            {"items": []},
            id="to replace an item replaces the list by what is no such item",
        ),
        pytest.param(
            {"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 2}}, {"a": {"c": 2}}, id="replace"
        ),
        pytest.param({"a": {"b": 1}}, {"a": {"$patch": "delete"}}, {"a": {}}, id="delete"),
        pytest.param(
            {"a": 1}, {"$patch": "replace", "b": 2}, {"b": 2}, id="replace at the top"
        ),
        pytest.param(
            {"words": ["a", "b"]},
            {"words": ["c", "a"]},
            {"words": ["c", "a", "b"]},
            id="scalars are joined without doubles, the patch's in its order",
        ),
        pytest.param(
            {"words": ["a", "b", "c"]},
            {"$deleteFromPrimitiveList/words": ["b", "x"]},
            {"words": ["a", "c"]},
            id="scalars are deleted",
        ),
        pytest.param(
            {"words": ["a", "b"]},
            {
                "$setElementOrder/words": ["c", "a"],
                "words": ["c"],
                "$deleteFromPrimitiveList/words": ["b"],
            },
            {"words": ["c", "a"]},
            id="scalars are deleted, added and ordered",
        ),
        pytest.param(
            {"items": named("a", "b", "c")},
            {"$setElementOrder/items": named("c", "a")},
            {"items": named("b", "c", "a")},
            id="an order alone moves what it names",
        ),
        pytest.param(
            {"items": named("a", "b")},
            {"$setElementOrder/items": named("a", "x", "b"), "items": named("x")},
            {"items": named("a", "x", "b")},
            id="a new item goes where the order has it",
        ),
        pytest.param(
            {"items": named("server", "a", "b")},
            {
                "$setElementOrder/items": named("b", "a"),
                "items": [{"$patch": "delete", "name": "a"}],
            },
            {"items": named("server", "b")},
            id="what the order does not name stays where it stood",
        ),
        pytest.param(
            {},
            {"$setElementOrder/items": named("b", "a"), "items": named("b", "a")},
            {"items": named("b", "a")},
            id="an order for a list that was not there",
        ),
        pytest.param({}, {"$setElementOrder/items": named("b")}, {}, id="an order for nothing"),
        pytest.param(
            {"a": {"x": 1, "y": 2, "z": 3}},
            {"a": {"$retainKeys": ["y", "w"], "w": 4}},
            {"a": {"y": 2, "w": 4}},
            id="only what is retained stays",
        ),
        pytest.param(
            {"inner": {"items": [{"name": "a", "ports": [{"port": 1, "p": "x"}]}]}},
            {"inner": {"items": [{"name": "a", "ports": [{"port": 2}, {"port": 1, "q": 1}]}]}},
            {
                "inner": {
                    "items": [
                        {"name": "a", "ports": [{"port": 2}, {"port": 1, "p": "x", "q": 1}]}
                    ]
                }
            },
            id="lists in lists",
        ),
    ],
)
def test_strategic_merge(target: Any, patch: Any, expected: Any) -> None:
    assert patched(target, patch) == expected


@pytest.mark.parametrize(
    ("target", "patch", "error"),
    [
        ({"items": named("a")}, {"items": [{"v": 1}]}, UnfitError),
        ({"items": named("a")}, {"items": [{"$patch": "delete"}]}, UnfitError),
        ({"items": named("a")}, {"items": ["a"]}, UnfitError),
        ({"items": named("a")}, {"items": [["a"]]}, UnfitError),
        ({"words": named("a")}, {"words": named("b")}, UnfitError),
        ({"items": named("a")}, {"items": [{"$patch": "merge", "name": "a"}]}, UnfitError),
        ({"a": {}}, {"a": {"$patch": "sing"}}, UnfitError),
        ({"items": 5}, {"$setElementOrder/items": named("a")}, UnfitError),
        ({"a": {}}, {"a": {"$retainKeys": "x"}}, MalformedError),
        ({"a": {}}, {"a": {"$retainKeys": ["x"], "y": 1}}, MalformedError),
        ({}, {"$deleteFromPrimitiveList/words": "a"}, MalformedError),
        ({}, {"$setElementOrder/items": 5, "items": named("a")}, MalformedError),
        (
            {"items": named("a")},
            {"$setElementOrder/items": named("a"), "items": named("b")},
            MalformedError,
        ),
        (
            {"items": named("a")},
            {"$setElementOrder/items": named("a", "b"), "items": named("b", "a")},
            MalformedError,
        ),
    ],
)
def test_patches_that_make_no_sense_are_refused(
    target: Any, patch: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        patched(target, patch)


def test_a_patch_is_an_object() -> None:
    with pytest.raises(MalformedError):
        parsed([], FIELDS)


@pytest.mark.parametrize(
    ("resource", "patch", "expected"),
    [
        (
            "pods",
            {"spec": {"containers": [{"name": "a", "env": [{"name": "X", "value": "2"}]}]}},
            {
                "spec": {
                    "containers": [
                        {"name": "a", "env": [{"name": "X", "value": "2"}, {"name": "Y"}]},
                        {"name": "b"},
                    ],
                    "tolerations": [{"key": "a"}],
                }
            },
        ),
        (
            "pods",
            {"spec": {"tolerations": [{"key": "b"}]}},
            {
                "spec": {
                    "containers": [
                        {"name": "a", "env": [{"name": "X"}, {"name": "Y"}]},
                        {"name": "b"},
                    ],
                    "tolerations": [{"key": "b"}],
                }
            },
        ),
    ],
)
def test_kinds_say_how_their_lists_are_merged(resource: str, patch: Any, expected: Any) -> None:
    pod = {
        "spec": {
            "containers": [{"name": "a", "env": [{"name": "X"}, {"name": "Y"}]}, {"name": "b"}],
            "tolerations": [{"key": "a"}],
        }
    }
    assert parsed(patch, merging_of(resource)).apply(pod) == expected


def test_finalizers_of_any_kind_are_joined() -> None:
    patch = parsed({"metadata": {"finalizers": ["x/b"]}}, merging_of("configmaps"))
    changed = patch.apply({"metadata": {"finalizers": ["x/a"]}})
    assert sorted(changed["metadata"]["finalizers"]) == ["x/a", "x/b"]


KEYS = st.sampled_from(["items", "words", "a", "inner", "name"])
NO_LISTS = st.recursive(
    st.none() | st.integers(0, 3) | st.text(max_size=2),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
DIRECTED = st.sampled_from(
    ["$patch", "$retainKeys", "$setElementOrder/items", "$deleteFromPrimitiveList/words"]
)
ANYTHING = st.recursive(
    st.none() | st.integers(0, 3) | st.sampled_from(["a", "b", "delete", "replace"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS | DIRECTED, inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, NO_LISTS, max_size=3), st.dictionaries(KEYS, NO_LISTS, max_size=3))
def test_without_lists_it_is_a_merge_patch(target: Any, patch: Any) -> None:
    assert StrategicPatch(patch, Merging()).apply(target) == merge(target, patch)


@given(
    st.dictionaries(KEYS, ANYTHING, max_size=3),
    st.dictionaries(KEYS | DIRECTED, ANYTHING, max_size=3),
)
def test_whatever_is_patched_ends_well_or_is_refused(target: Any, patch: Any) -> None:
    before, sent = repr(target), repr(patch)
    with contextlib.suppress(UnfitError, MalformedError):
        patched(target, patch)
    assert (repr(target), repr(patch)) == (before, sent)


@given(st.lists(st.sampled_from("abcdef"), unique=True), st.permutations("abcdef"))
def test_an_order_is_kept(present: list[str], order: list[str]) -> None:
    patch = {"$setElementOrder/items": named(*order)}
    changed = patched({"items": named(*present)}, patch)
    assert [each["name"] for each in changed["items"]] == [x for x in order if x in present]
