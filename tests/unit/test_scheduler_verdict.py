"""What replies to binds mean."""

from __future__ import annotations

import pytest

from hekla.kube.requests import FENCED, NOT_SENT, TIMEOUT, Reply
from services.scheduler.verdict import SERVER_ERRORS, Verdict, judge


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        pytest.param(Reply(201, None), Verdict.BOUND, id="done"),
        pytest.param(Reply(0, None, TIMEOUT), Verdict.AGAIN, id="it may still happen"),
        pytest.param(Reply(0, None, NOT_SENT), Verdict.AGAIN, id="it never left"),
        pytest.param(Reply(0, None, FENCED), Verdict.FENCED, id="the lease was not held"),
        pytest.param(Reply(409, {"spec": {}}), Verdict.REFUSED, id="bound elsewhere"),
        pytest.param(Reply(409, None), Verdict.AGAIN, id="perhaps bound by us"),
        pytest.param(Reply(404, None, "NotFound"), Verdict.REFUSED, id="the pod is gone"),
        pytest.param(Reply(403, None, "Forbidden"), Verdict.REFUSED, id="forbidden"),
        pytest.param(Reply(429, None), Verdict.AGAIN, id="the server is busy"),
        pytest.param(Reply(401, None), Verdict.AGAIN, id="a token has just run out"),
    ],
)
def test_a_reply_means(reply: Reply, verdict: Verdict) -> None:
    assert judge(reply, faults=0) is verdict


def test_a_server_that_keeps_failing_is_believed_in_the_end() -> None:
    verdicts = [judge(Reply(500, None), faults) for faults in range(1, SERVER_ERRORS + 1)]

    assert verdicts == [Verdict.AGAIN] * (SERVER_ERRORS - 1) + [Verdict.REFUSED]


def test_a_bind_that_may_still_happen_is_never_given_up() -> None:
    assert judge(Reply(0, None, TIMEOUT), faults=1000) is Verdict.AGAIN
