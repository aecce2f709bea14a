"""Label selectors choose what Kubernetes' would."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from hekla.domain import selector
from hekla.domain.errors import InvalidError

WEB = {"app": "web", "tier": "front", "size": "10", "empty": "", "x.io/y": "z"}


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("", True),
        ("  ", True),
        ("app=web", True),
        ("app==web", True),
        ("app = web , tier = front", True),
        ("app=db", False),
        ("app!=db", True),
        ("app!=web", False),
        ("absent!=anything", True),
        ("app in (db,web)", True),
        ("app in (db)", False),
        ("app notin (db)", True),
        ("absent notin (db)", True),
        ("app notin (web)", False),
        ("app", True),
        ("absent", False),
        ("!absent", True),
        ("! app", False),
        ("empty=", True),
        ("empty in ()", True),
        ("app=", False),
        ("size>9", True),
        ("size>10", False),
        ("size<11", True),
        ("app>1", False),
        ("absent<1", False),
        ("x.io/y=z", True),
        ("app=web,!absent,size in (10,11),tier!=back", True),
        ("app=web,tier=back", False),
    ],
)
def test_text_selects(text: str, chosen: bool) -> None:  # noqa: FBT001
    assert selector.parse(text).matches(WEB) is chosen


@pytest.mark.parametrize(
    "text",
    [
        ",",
        "a=b,",
        "a b",
        "a=b c=d",
        "a in b",
        "a in (b",
        "a in b)",
        "a in (b,c",
        "(a)",
        "=b",
        "!",
        "!!a",
        "a>b",
        "a>",
        "a<1.5",
        "-a",
        "a-",
        "a/b/c",
        "/a",
        "A.b/ c",
        "a=-",
        "a=b=c",
        "a=" + "x" * 64,
        "a notin",
        "ä=b",
        "UPPER.io/x",
    ],
)
def test_text_that_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(InvalidError, match="label selector"):
        selector.parse(text)


@pytest.mark.parametrize(
    ("value", "chosen"),
    [
        ({}, True),
        ({"matchLabels": None, "matchExpressions": None}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "back"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": "absent", "operator": "NotIn", "values": ["a"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        (
            {"matchExpressions": [{"key": "app", "operator": "DoesNotExist", "values": []}]},
            False,
        ),
    ],
)
def test_an_object_selects(value: dict[str, Any], chosen: bool) -> None:  # noqa: FBT001
    assert selector.from_object(value).matches(WEB) is chosen


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"matchLabels": []}, "matchLabels"),
        ({"matchLabels": {"-a": "b"}}, "matchLabels[-a]"),
        ({"matchLabels": {"a": 1}}, "matchLabels.a"),
        ({"matchExpressions": {}}, "matchExpressions"),
        ({"matchExpressions": ["a"]}, "matchExpressions[0]"),
        ({"matchExpressions": [None]}, "matchExpressions[0].key"),
        ({"matchExpressions": [{}]}, "matchExpressions[0].key"),
        ({"matchExpressions": [{"key": "a", "operator": []}]}, "matchExpressions[0].operator"),
        (
            {"matchExpressions": [{"key": "a", "operator": "Gt"}]},
            "matchExpressions[0].operator",
        ),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, "matchExpressions[0].values"),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
            "matchExpressions[0].values",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": [{}]}]},
            "matchExpressions[0].values[0]",
        ),
    ],
)
def test_an_object_that_is_no_selector_is_refused_with_its_path(
    value: dict[str, Any], path: str
) -> None:
    with pytest.raises(InvalidError) as refused:
        selector.from_object(value)

    assert path in [violation.path for violation in refused.value.violations]


@given(st.text(alphabet="ab.=!,()<>1 /-in"))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        selector.parse(text).matches(WEB)
    except InvalidError:
        return


KEYS = st.sampled_from(["a", "b", "c.io/d"])
VALUES = st.sampled_from(["", "x", "y"])
LABELS = st.dictionaries(KEYS, VALUES)


@given(LABELS, KEYS, st.sets(VALUES, min_size=1))
def test_what_is_in_a_set_and_what_is_not_are_complements(
    labels: dict[str, str], key: str, values: set[str]
) -> None:
    listed = ",".join(sorted(values, reverse=True))
    inside = selector.parse(f"{key} in ({listed})")
    outside = selector.parse(f"{key} notin ({listed})")

    assert inside.matches(labels) is not outside.matches(labels)


@given(LABELS, LABELS)
def test_both_forms_agree(wanted: dict[str, str], labels: dict[str, str]) -> None:
    text = selector.parse(",".join(f"{key}={value}" for key, value in wanted.items()))

    assert text.matches(labels) is selector.from_object({"matchLabels": wanted}).matches(labels)
    assert text.matches(labels) is (wanted.items() <= labels.items())


def test_every_bad_label_is_named() -> None:
    wrong = selector.validate_labels({"ok": "fine", "a b": "c", "d": "-"}, "metadata.labels")

    assert [violation.path for violation in wrong] == [
        "metadata.labels[a b]",
        "metadata.labels.d",
    ]
