"""Fields that nobody knows or that come twice: refused, told, or passed over."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from hekla.api.crd import DEFINITIONS
from hekla.local.kinds import registry
from hekla.local.kinds.errors import ApiError
from hekla.local.kinds.registry import PODS, Kind
from hekla.local.schemas.structural import Structural
from hekla.local.serving.routing import Request
from hekla.local.serving.strictness import Strictness, duplicates

JOBS = Kind(
    "batch.volcano.sh", "v1alpha1", "jobs", "Job", schema=Structural({"type": "object"})
)


def asked(says: str, body: bytes = b"{}") -> Request:
    query = {"fieldValidation": says} if says else {}
    return Request("POST", "/", query, "", body)


@pytest.mark.parametrize("says", ["", "Warn"])
def test_without_a_word_unknown_fields_are_told(says: str) -> None:
    request = asked(says)

    Strictness(JOBS, request).told(["spec.a", "spec.b"])

    assert request.warnings == ['unknown field "spec.a"', 'unknown field "spec.b"']


def test_they_are_refused_or_passed_over_if_asked() -> None:
    with pytest.raises(ApiError) as refused:
        Strictness(JOBS, asked("Strict", b'{"spec":{"a":1,"a":2}}')).told(["spec.b"])
    assert refused.value.code == 400
    assert str(refused.value) == (
        'Job in version "v1alpha1" cannot be handled as a Job: strict decoding error: '
        'unknown field "spec.b", duplicate field "spec.a"'
    )
    request = asked("Ignore", b'{"a":1,"a":2}')
    Strictness(JOBS, request).told(["spec.b"])
    assert request.warnings == []
    Strictness(PODS, asked("Strict")).told([])


POD = b'{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","imag":1}]}}'


def test_misspelt_fields_of_built_in_kinds_are_found_if_asked() -> None:
    request = asked("Warn", POD)
    Strictness(PODS, request).told([])
    assert request.warnings == ['unknown field "spec.containers[0].imag"']
    with pytest.raises(ApiError, match=r"unknown field \"spec.containers\[0\].imag\""):
        Strictness(PODS, asked("Strict", POD)).told([])
    request = asked("", POD)
    Strictness(PODS, request).told([])
    assert request.warnings == [], "who does not ask need not wait for the answer"


def test_directives_of_patches_are_no_misspelt_fields() -> None:
    body = (
        b'{"spec":{"$setElementOrder/containers":[{"name":"c"}],"$retainKeys":["a"],'
        b'"containers":[{"$patch":"delete","name":"c"}],"contaners":[],"hots":null}}'
    )
    query = {"fieldValidation": "Warn"}
    for content_type, found in (
        ("application/strategic-merge-patch+json", ['unknown field "spec.contaners"']),
        ("application/json-patch+json", []),
    ):
        request = Request("PATCH", "/", query, content_type, body)
        Strictness(PODS, request).told([])
        assert request.warnings == found


def test_the_schemas_of_custom_kinds_may_be_described_with_every_keyword() -> None:
    body = orjson.dumps(DEFINITIONS[0].manifest())

    Strictness(registry.DEFINITIONS, asked("Strict", body)).told([])


def test_what_is_asked_must_make_sense() -> None:
    with pytest.raises(ApiError, match="Loose"):
        Strictness(JOBS, asked("Loose"))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"a":1,"b":2}', []),
        (b'{"a":1,"a":2}', ["a"]),
        (b'{"s":{"x":[{"a":1},{"b":1,"b":2,"b":3}]}}', ["s.x[1].b"]),
        (b'{"a":{"b":1,"b":2},"a":3,"c":{"d":1}}', ["a"]),
        (b"{", []),
        (b"[" * 100_000, []),
    ],
)
def test_fields_that_come_twice_are_found(body: bytes, found: Any) -> None:
    assert duplicates(body) == found
