"""Passes as JSON lines: what goes in and what comes out."""

from __future__ import annotations

import pytest

from hekla.domain.attempt import Outcome
from hekla.domain.phases import JobAction
from hekla.domain.trigger import Command
from services.controller.core.observed import TaskCounts
from services.controller.core.plan import plan
from services.controller.replay import LINE, PLAN, Line, replay
from tests.support.factories import NOW, make_ended, make_job, make_observed, policies


def test_a_pass_made_again_from_json_decides_the_same() -> None:
    observed = make_observed(
        make_job(policies=policies(("PodFailed", "RestartJob"), timeout="1m")),
        ended=[make_ended(Outcome.FAILED)],
        counts={"t": TaskCounts(failed=1)},
        commands=[Command(3, JobAction.RESTART_POD, task="t", index=0)],
    )
    line = LINE.dump_json(Line(NOW, observed), by_alias=True).decode()

    answer, *_ = replay([line, "\n"])

    assert answer == PLAN.dump_json(plan(observed, NOW), by_alias=True).decode()


def test_a_line_that_is_none_says_which_and_why() -> None:
    with pytest.raises(ValueError, match=r"line 2: observed: Field required"):
        list(replay(["", '{"now": "2026-01-01T00:00:00Z"}']))
