"""Postgres is away for a while under load: nothing is lost or doubled, and no service dies."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.load.run import Plan, run
from tests.load.shapes import nodes_for, parse
from tests.load.target import Target
from tests.support.stack import running_stack

pytestmark = pytest.mark.long

AWAY: Final = 20.0
"""Seconds; `make load LOAD=--postgres-away=60` has a minute and more jobs."""


@pytest.mark.timeout(280)
def test_postgres_stopped_in_the_middle_of_a_load_is_an_interruption_and_no_more(
    tmp_path: Path,
) -> None:
    shape = parse("200x5")
    told: list[str] = []
    options = (f"--nodes={nodes_for(shape.all_pods)}", "--runtime=simulate")
    with running_stack(tmp_path / "h", *options) as stack:
        before = {name: unit.pid for name, unit in stack.units().items()}
        plan = Plan(shape, clients=0, rate=20, seconds=1.0, postgres_away=AWAY, timeout=200)

        outcome = run(Target(stack.home), plan, told.append)

        after = {name: unit.pid for name, unit in stack.units().items()}
    assert any("Postgres is stopped" in line for line in told), told
    assert any("Postgres is back" in line for line in told), told
    assert outcome.broken == []
    assert outcome.good
    del before["postgres"], after["postgres"]
    assert after == before, "a service did not live through it"
