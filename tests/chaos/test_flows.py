"""Whatever is killed, each step of a flow runs once, in order. The gate has a round in e2e."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Final

import pytest

from tests.support.pipelines import Pipeline, assert_ran_in_order, pipeline, run
from tests.support.stack import Stack, running_stack, witnessed
from tests.support.waiting import wait_until

pytestmark = pytest.mark.long

SEED: Final = int(os.environ.get("CHAOS_SEED", "1"))
FLOWS: Final = 6
SERVICES: Final = ("webhook", "controller", "scheduler", "flow")


def many(witness: Path, count: int = FLOWS) -> list[Pipeline]:
    """Flows of the same templates, side by side."""
    return [
        pipeline("parallel-pipeline", witness, name=f"p{number}", seconds=0.5)
        for number in range(count)
    ]


def assert_all_went_well(stack: Stack, witness: Path, wanted: list[Pipeline]) -> None:
    for one in wanted:
        wait = ("jobflow", "wait", one.name, "--for", "Succeed", "--timeout", "120s")
        # Nobody may be there to ask while every replica has died.
        wait_until(
            lambda wait=wait: stack.run(*wait).returncode == 0,  # type: ignore[misc]
            timeout=120,
            what=f"{one.name} to succeed",
        )
    for one in wanted:
        assert_ran_in_order(witness, one)
    wait_until(lambda: not stack.phases(), timeout=30, what="all jobs to be deleted")


def test_random_kills_again_and_again(tmp_path: Path) -> None:
    """Two replicas of the flow service; a victim every few pods."""
    witness = tmp_path / "witness"
    chance = random.Random(SEED)
    wanted = many(witness)
    with running_stack(tmp_path / "home", "--replicas", "flow=2") as stack:
        for one in wanted:
            run(stack, one)
        for count in range(2, 5 * FLOWS, 4):
            wait_until(
                lambda count=count: len(witnessed(witness)) >= count,  # type: ignore[misc]
                timeout=120,
                what=f"{count} pods to have run",
            )
            victims = [name for name in stack.units() if name.split("-")[0] in SERVICES]
            stack.kill(chance.choice(sorted(victims)))

        assert_all_went_well(stack, witness, wanted)


@pytest.mark.parametrize(
    ("point", "flows"),
    [
        ("flow.recorded=kill@20", FLOWS),
        ("flow.created=kill@3", FLOWS),
        ("flow.acted=kill@20", FLOWS),
        ("flow.recorded=raise:0.1", FLOWS),
        ("flow.created=raise:0.2", FLOWS),
        ("flow.acted=sleep 6:0.05", FLOWS),
        # Ten passes a life, and some ten seconds from life to life: a job has half a dozen.
        ("controller.commit-unknown=kill@10", 2),
    ],
)
def test_no_place_to_die_makes_a_difference(tmp_path: Path, point: str, flows: int) -> None:
    """Also a claim that expires during a slow pass: the lease is shorter than the sleep."""
    witness = tmp_path / "witness"
    wanted = many(witness, flows)
    environ = {
        "HEKLA_FAILPOINTS": point,
        "HEKLA_FLOW_CLAIM_LEASE": "4s",
        "HEKLA_CONTROLLER_CLAIM_LEASE": "6s",
    }
    with running_stack(tmp_path / "home", "--replicas", "flow=2", environ=environ) as stack:
        for one in wanted:
            run(stack, one)
        assert_all_went_well(stack, witness, wanted)
        hits = [line for line in stack.log_lines("") if line.get("message") == "failpoint"]
        assert hits, "the failpoint was never passed"
