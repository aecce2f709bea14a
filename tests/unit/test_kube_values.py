from __future__ import annotations

import time

import orjson
import pytest
from hypothesis import given, strategies as st

from hekla.domain import errors as domain
from hekla.kube.backoff import LONGEST, backoff
from hekla.kube.errors import error_for
from hekla.kube.events import Objects, decode_page
from hekla.kube.fence import Fence, Progress
from hekla.kube.replies import read_outcome
from hekla.kube.requests import Reply
from hekla.kube.session import Pace
from hekla.kube.wire import Outcome


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (400, "BadRequest", domain.InvalidError),
        (401, "Unauthorized", domain.DeniedError),
        (403, "Forbidden", domain.DeniedError),
        (404, "NotFound", domain.NotFoundError),
        (409, "AlreadyExists", domain.AlreadyExistsError),
        (409, "Conflict", domain.ConflictError),
        (410, "Expired", domain.CursorExpiredError),
        (422, "Invalid", domain.InvalidError),
        (429, "TooManyRequests", domain.ExhaustedError),
        (500, "InternalError", domain.UnavailableError),
        (0, "Timeout", domain.UnavailableError),
    ],
)
def test_answers_become_errors_of_the_domain(
    status: int, reason: str, kind: type[domain.DomainError]
) -> None:
    with pytest.raises(kind, match="because"):
        Reply(status, None, reason, "because").found()


def test_an_error_without_a_message_still_says_something() -> None:
    assert "502" in str(error_for(502, "", ""))


@pytest.mark.parametrize(
    ("outcome", "reply"),
    [
        pytest.param(Outcome(200, b'{"a":1}'), Reply(200, {"a": 1}), id="an object"),
        pytest.param(Outcome(200), Reply(200, None), id="nothing to show"),
        pytest.param(
            Outcome(404, b'{"reason":"NotFound","message":"m"}'),
            Reply(404, None, "NotFound", "m"),
            id="a Status",
        ),
        pytest.param(
            Outcome(409, b'{"a":1}', "AlreadyExists", "m"),
            Reply(409, {"a": 1}, "AlreadyExists", "m"),
            id="the object in the way",
        ),
        pytest.param(
            Outcome(502, b"<html>"),
            Reply(502, None, "UnreadableAnswer", "<html>"),
            id="a proxy's page",
        ),
        pytest.param(
            Outcome(500, b'["x"]'),
            Reply(500, None, "UnreadableAnswer", '["x"]'),
            id="JSON that is no object",
        ),
    ],
)
def test_outcomes_become_replies(outcome: Outcome, reply: Reply) -> None:
    assert read_outcome(outcome) == reply


def test_a_fence_is_down_until_it_is_extended() -> None:
    fence = Fence()
    assert fence.left() == 0

    fence.extend(time.monotonic() + 60)
    assert 50 < fence.left() <= 60

    fence.drop()
    assert fence.left() == 0


def test_a_fence_is_shared_by_its_descriptor() -> None:
    fence, progress = Fence(), Progress()
    other, seen = Fence(fence.fileno()), Progress(progress.fileno())
    assert seen.age() == float("inf")

    other.extend(time.monotonic() + 60)
    progress.move()

    assert fence.left() > 50
    assert seen.age() < 10


@given(st.integers(1, 10_000))
def test_waits_grow_within_bounds(failures: int) -> None:
    assert 0 < backoff(failures) <= LONGEST


@given(
    rate=st.floats(0.5, 1000),
    steps=st.lists(st.floats(0, 0.5), min_size=1, max_size=200),
)
def test_no_window_sees_more_than_its_rate_and_one_burst(
    rate: float, steps: list[float]
) -> None:
    pace = Pace(rate)
    now = 0.0
    sent = []
    for step in steps:
        now += step
        sent.append(now + pace.delay(now))

    burst = max(1.0, rate)
    assert sent == sorted(sent)
    for first in range(0, len(sent), 7):
        span = sent[-1] - sent[first]
        assert len(sent) - first <= rate * span + burst + 1 + 1e-6


def test_a_full_list_is_decoded_when_it_is_walked_over() -> None:
    pages = [orjson.dumps({"items": [{"n": 1}, {"n": 2}]}), b'{"items":null}', b"broken"]
    objects = Objects(pages[:2], 2, decode_page)

    assert len(objects) == 2
    assert [item["n"] for item in objects] == [1, 2]
    assert [item["n"] for item in objects] == [1, 2]
    assert len(Objects(pages, 3, decode_page)) == 3, "nothing is read for the length"
