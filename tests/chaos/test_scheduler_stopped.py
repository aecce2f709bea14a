"""A leader is stopped in the middle of binds, another fills the cluster, the first goes on.

Whatever the first has decided, recorded or half sent by then, no node may get more than it
has. ``CHAOS_SEED`` picks when it is stopped.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest

from hekla.store import binds
from hekla.store.binds import BindRecord
from tests.support.postgres import Server
from tests.support.scheduling_stack import Scheduler, Stack, stack
from tests.support.waiting import wait_until

SEED = int(os.environ.get("CHAOS_SEED", "1"))
NODES = 4
ROOM = 50
"""Pods that a node has CPU for."""
GANG = 40
NAMES = [f"gang-{number}" for number in range(8)]
"""Five of them fill the cluster to the last pod."""
SLOWLY = {
    "HEKLA_SCHEDULER_BIND_BATCH": "8",
    "HEKLA_SCHEDULER_KUBE_CONCURRENCY": "2",
    "HEKLA_SCHEDULER_LEASE_TTL": "1.5s",
    "HEKLA_SCHEDULER_STALL_TIMEOUT": "1.5s",
}


class Pair(NamedTuple):
    """Two schedulers; the first leads."""

    leader: Scheduler
    heir: Scheduler


@pytest.fixture
def made(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("stopped")
    url = postgres.make_database(folder.name, template="template")
    flags = (f"--nodes={NODES}", f"--node-cpu={ROOM}", "--node-pods=1000")
    with stack(folder, url, *flags) as running:
        urgent = {"metadata": {"name": "urgent"}, "value": 1000}
        running.cluster.make("/apis/scheduling.k8s.io/v1/priorityclasses", urgent)
        yield running


@pytest.fixture
def pair(made: Stack) -> Pair:
    leader = made.scheduler(**SLOWLY).wait_to_lead()
    return Pair(leader, made.scheduler(**SLOWLY).wait_ready())


@pytest.mark.parametrize(
    "number", [0, *(pytest.param(number, marks=pytest.mark.long) for number in range(1, 7))]
)
def test_no_node_gets_more_than_it_has(made: Stack, pair: Pair, number: int) -> None:
    chance = random.Random(f"{SEED}-{number}")
    if number % 2:
        # The heir leads before its watches tell of the last binds.
        made.delay_watches(5)

    stop_and_go_on(made, pair, chance, whole=False)
    clear(made, pair)
    # Now the other way round: the first is the heir of its heir.
    stop_and_go_on(made, Pair(pair.heir, pair.leader), chance, whole=True)


def stop_and_go_on(made: Stack, pair: Pair, chance: random.Random, *, whole: bool) -> None:
    """Stop the leader at some moment, and let it go on when the cluster is full."""
    leader, heir = pair
    came_to_rest = len(leader.log.lines("lease released"))
    early, late = NAMES[:4], NAMES[4:]
    # Pods without a group wait: the heir knows of these before it leads.
    for name in late:
        made.pods(name, GANG)
    wait_until(
        lambda: [it.status().pods for it in pair] == [GANG * len(late)] * 2,
        what="both to see the late pods",
    )
    for name in early:
        made.pods(made.group(name, GANG), GANG)
    moment = chance.randrange(GANG // 2, 2 * GANG)
    wait_until(lambda: len(made.bound()) >= moment, timeout=30, what=f"{moment} binds")

    (leader.stop_all if whole else leader.stop_main)()
    # An heir that knew nothing of what was decided would serve these first.
    for name in late:
        made.group(name, GANG, priority="urgent")
    full = NODES * ROOM
    wait_until(
        lambda: len(made.bound()) >= full, timeout=60, what="the heir to fill the cluster"
    )
    assert heir.leads()
    leader.go_on()

    wait_until(
        lambda: made.overfull() or len(leader.log.lines("lease released")) > came_to_rest,
        timeout=30,
        what="the stopped one to come to rest",
    )
    wait_until(lambda: not open_records(made), timeout=30, what="all binds to be settled")
    assert made.overfull() == {}
    assert {len(made.bound(name)) for name in NAMES} == {0, GANG}, "a gang is all or nothing"


def clear(made: Stack, pair: Pair) -> None:
    """Remove all pods and groups, and wait until both schedulers know."""
    for name in NAMES:
        made.delete(made.find(name))
    for scheduler in pair:
        wait_until(scheduler.sees_nothing, what="the pods and groups to be gone")


def open_records(made: Stack) -> Sequence[BindRecord]:
    """Placements that nobody knows the end of."""
    with made.controller.database.transaction() as session:
        return binds.open_records(session)
