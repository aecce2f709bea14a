"""Two schedulers: one leads, the other takes over, whatever becomes of the first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hekla.store import binds
from hekla.store.binds import BindRecord
from tests.support.postgres import Server
from tests.support.scheduling_stack import Scheduler, Stack, stack
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def made(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    url = postgres.make_database("scheduler_failover", template="template")
    with stack(tmp_path_factory.mktemp("failover"), url, "--nodes=4") as running:
        yield running


def open_records(made: Stack) -> dict[str, BindRecord]:
    """Placements that are written down and not settled, by pod."""
    with made.controller.database.transaction() as session:
        return {record.pod_name: record for record in binds.open_records(session)}


def ended(scheduler: Scheduler) -> bool:
    """Whether it runs no more."""
    return scheduler.running.poll() is not None


def nodes(made: Stack, group: str) -> dict[str, str]:
    """Where a group's pods are bound."""
    return {it["metadata"]["name"]: it["spec"]["nodeName"] for it in made.bound(group)}


def test_what_a_leader_wrote_down_before_it_died_is_carried_out_as_written(
    made: Stack,
) -> None:
    # Whoever leads dies once it has written its first decision down; the heir writes none.
    pair = [made.scheduler(HEKLA_FAILPOINTS="scheduler.recorded=kill") for _ in range(2)]
    for scheduler in pair:
        scheduler.wait_ready()

    made.gang("written", 3, cpu="5")

    doomed = wait_until(lambda: next(filter(ended, pair), None), what="the leader to die")
    [heir] = [scheduler for scheduler in pair if scheduler is not doomed]
    assert doomed.running.wait() == -9
    written = open_records(made)
    assert len(written) == 3
    assert not made.bound("written"), "it died before it sent any bind"
    made.wait_bound("written", 3)
    assert nodes(made, "written") == {pod: record.node for pod, record in written.items()}
    wait_until(lambda: not open_records(made), what="the records to be settled")
    assert heir.leads()


def test_a_leader_that_stops_hands_over_at_once(made: Stack) -> None:
    first = made.leader()
    second = made.scheduler().wait_ready()
    holder = first.status().holder
    wait_until(lambda: second.status().holder == holder, what="the other to know who leads")

    assert first.end() == 0

    second.wait_to_lead()
    assert second.log.wait_for("elected")["clean"], "its lease did not run out"
    made.gang("handed", 2)
    made.wait_bound("handed", 2)
