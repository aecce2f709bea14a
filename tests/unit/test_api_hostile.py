"""Whatever comes, the decoder says what is wrong with it and never breaks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from hekla.api import bounds, decode
from hekla.api.job import Job
from hekla.api.plain import MOST_VALUES
from hekla.domain.errors import InvalidError
from tests.support.manifests import complaints, task
from tests.support.objects import job_manifest, models


def cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["again"] = value
    return value


def bomb() -> Any:
    value: Any = "x"
    for _ in range(30):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        cyclic(),
        bomb(),
        [0] * (MOST_VALUES + 1),
        {1: 2},
        {None: 1},
        "\0",
        "\ud800",
        {"\0": 1},
        float("nan"),
        float("inf"),
        2**64,
        -(2**63) - 1,
        pytest.param(10**5000, id="a number of 5,001 digits"),
        pytest.param({10**5000: 1}, id="a key of 5,001 digits"),
        b"bytes",
        {1},
        (1,),
        object(),
    ],
)
def test_what_can_be_neither_stored_nor_sent_is_refused(value: Any) -> None:
    raw = job_manifest(tasks=[task(template={"spec": value})])

    assert all(path.startswith("spec.tasks[0].template") for path in complaints(raw))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text() | st.integers() | st.none(), inner, max_size=4)
    ),
    max_leaves=20,
)
WORDS = st.sampled_from(
    [
        "spec",
        "tasks",
        "metadata",
        "name",
        "replicas",
        "queue",
        "policies",
        "plugins",
        "status",
        "template",
        "labels",
        "volumes",
        "mountPath",
        "minAvailable",
        "capability",
        "subGroupPolicy",
        "labelSelector",
        "matchExpressions",
        "key",
        "partitionPolicy",
        "state",
        "conditions",
    ]
)
LIKELY = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**33) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=30,
)


@given(ANYTHING)
@example({"apiVersion": {}, "kind": []})
def test_nothing_breaks_the_decoder(raw: Any) -> None:
    with pytest.raises(InvalidError) as refused:
        decode.decode(raw)
    assert str(refused.value).isprintable()


@given(LIKELY, st.sampled_from(sorted(decode.KINDS)))
def test_nothing_that_looks_like_an_object_breaks_the_decoder(
    raw: Any, kind: tuple[str, str]
) -> None:
    if isinstance(raw, dict):
        raw |= {"apiVersion": kind[0], "kind": kind[1]}
    try:
        decode.decode(raw)
    except InvalidError as error:
        assert str(error).isprintable()  # noqa: PT017


@given(models(Job))
@settings(max_examples=30)
def test_bounds_can_be_asked_of_every_job(value: Job) -> None:
    for violation in bounds.violations(value):
        assert violation.path
        assert violation.message
