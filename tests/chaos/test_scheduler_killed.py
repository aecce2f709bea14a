"""A leader is killed between what it did and what it noted of it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hekla.store import binds
from tests.support.scheduling_stack import Stack, stack
from tests.support.waiting import wait_until


def open_records(made: Stack) -> set[str]:
    """Pods whose placement is written down and not settled."""
    with made.controller.database.transaction() as session:
        return {record.pod_name for record in binds.open_records(session)}


def nodes(made: Stack) -> dict[str, str]:
    """Where pods are bound."""
    return {it["metadata"]["name"]: it["spec"]["nodeName"] for it in made.bound()}


@pytest.mark.long
def test_binds_that_were_sent_but_not_settled_are_neither_repeated_nor_forgotten(
    postgres_url: str, tmp_path: Path
) -> None:
    with stack(tmp_path, postgres_url) as made:
        doomed = made.scheduler(HEKLA_FAILPOINTS="scheduler.bound=kill").wait_to_lead()
        heir = made.scheduler().wait_ready()

        made.gang("sent", 3, cpu="5")

        assert doomed.running.wait(20) == -9
        where = nodes(made)
        assert len(where) == 3
        assert open_records(made) == set(where)
        wait_until(lambda: not open_records(made), timeout=30, what="the records to be settled")
        assert heir.leads()
        assert nodes(made) == where
        assert not heir.log.lines("bind refused")


@pytest.mark.long
def test_another_binds_within_eight_seconds_of_its_leaders_death(
    postgres_url: str, tmp_path: Path
) -> None:
    with stack(tmp_path, postgres_url) as made:
        # Whoever leads dies once it has written its first decision down; the heir writes none.
        pair = [made.scheduler(HEKLA_FAILPOINTS="scheduler.recorded=kill") for _ in range(2)]
        for scheduler in pair:
            scheduler.wait_ready()

        made.gang("written", 3, cpu="5")

        wait_until(lambda: any(one.running.poll() is not None for one in pair), what="a death")
        died = time.monotonic()
        made.wait_bound("written", 1)
        took = time.monotonic() - died
        assert took <= 8, f"the first bind came {took:.1f} s after the leader's death"
