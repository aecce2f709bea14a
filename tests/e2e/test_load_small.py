"""The load suite works: a fiftieth of a shape, with every invariant checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.load import report
from tests.load.run import Plan, run
from tests.load.shapes import SHAPES, nodes_for
from tests.load.target import Target
from tests.support.stack import running_stack

SMALL = SHAPES[1].scaled(0.02)


@pytest.mark.timeout(200)
def test_a_fiftieth_of_the_load_runs_to_its_end_and_keeps_every_promise(tmp_path: Path) -> None:
    told: list[str] = []
    options = (f"--nodes={nodes_for(SMALL.all_pods)}", "--runtime=simulate")
    with running_stack(tmp_path / "h", *options) as stack:
        plan = Plan(SMALL, clients=0, rate=20, seconds=0.2, timeout=60)
        outcome = run(Target(stack.home), plan, told.append)

    assert outcome.broken == []
    assert outcome.good
    assert {"pod bound", "running seen", "over seen"} <= set(outcome.percentiles)
    assert {"controller", "scheduler", "postgres", "cluster"} <= set(outcome.usage)
    assert outcome.usage["controller"]["cpu_seconds"] > 0
    assert "answered" in told[0]
    written = report.write([outcome], tmp_path / "out")
    assert [it["shape"] for it in json.loads(written[0].read_text())] == ["10x20"]
    assert all(path.stat().st_size for path in written)
