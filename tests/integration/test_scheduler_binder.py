"""Carrying decisions out: a real store, and an API server that misbehaves on request."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hekla.kube.client import KubeClient
from hekla.kube.fence import Fence
from hekla.store import binds, leases
from hekla.store.binds import BindRecord
from hekla.store.database import Database
from services.scheduler.binder import CHUNK, Binder
from services.scheduler.campaign import LEASE
from services.scheduler.core.objects import Pod
from services.scheduler.events import Bound, Deposed, Event, Outdated, Refused, SeenPod
from services.scheduler.telling import Conditions
from tests.support.kube_server import KubeServer
from tests.support.waiting import wait_until

PODS = "/api/v1/namespaces/ns/pods"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class World:
    """A binder in its first term, and what it talks to."""

    def __init__(self, database: Database, server: KubeServer, client: KubeClient) -> None:
        self.database = database
        self.server = server
        self.client = client
        self.events: list[Event] = []
        self.binder = Binder(
            database, client, self.events.append, timeout=timedelta(milliseconds=400), batch=16
        )
        with database.transaction() as session:
            leases.acquire(session, LEASE, holder="us", ttl=timedelta(minutes=1))
        self.binder.begin(1)

    def records(self, *names: str, group: str = "g") -> Sequence[BindRecord]:
        """Placements of pods that exist."""
        for name in names:
            metadata = {"name": name, "namespace": "ns"}
            self.server.put(f"{PODS}/{name}", {"metadata": metadata, "spec": {}})
        return [
            BindRecord(self.uid(name), "ns", name, group, f"node-of-{name}") for name in names
        ]

    def uid(self, name: str) -> str:
        found = self.server.object(f"{PODS}/{name}")
        assert found is not None
        return str(found["metadata"]["uid"])

    def work(self) -> None:
        """Look until there is nothing left to do."""
        wait_until(lambda: not self.binder.look() and self.binder.done(), what="the work")

    def node(self, name: str) -> str | None:
        found = self.server.object(f"{PODS}/{name}")
        assert found is not None
        node: str | None = found["spec"].get("nodeName")
        return node

    def open(self) -> list[str]:
        with self.database.transaction() as session:
            return sorted(it.pod_name for it in binds.open_records(session))

    def depose(self) -> bool:
        """Let another lead."""
        with self.database.transaction() as session:
            leases.release(session, LEASE, epoch=1)
            return leases.acquire(session, LEASE, holder="them", ttl=timedelta(1)) is not None


@pytest.fixture
def server() -> Iterator[KubeServer]:
    with KubeServer() as running:
        yield running


@pytest.fixture
def fence() -> Fence:
    fence = Fence()
    fence.extend(time.monotonic() + 60)
    return fence


@pytest.fixture
def client(server: KubeServer, fence: Fence, tmp_path: Path) -> Iterator[KubeClient]:
    config = server.kubeconfig(tmp_path)
    with KubeClient.start(config, isolated=False, fence=fence) as running:
        yield running


@pytest.fixture
def world(database: Database, server: KubeServer, client: KubeClient) -> World:
    return World(database, server, client)


def test_pods_are_bound_where_it_was_decided_and_settled(world: World) -> None:
    world.binder.submit(world.records("a", "b"))

    world.work()

    assert (world.node("a"), world.node("b")) == ("node-of-a", "node-of-b")
    assert world.events == [Bound(1, world.uid("a")), Bound(1, world.uid("b"))]
    assert world.open() == []


@pytest.mark.parametrize("effect", [False, True], ids=["did not land", "landed"])
def test_a_bind_that_was_not_answered_is_sent_again_to_the_same_node(
    world: World, *, effect: bool
) -> None:
    world.server.on("POST", "/pods/a/binding", stall=1, effect=effect)
    world.server.on("GET", "/pods/a", status=503, times=4)
    world.binder.submit(world.records("a"))

    world.work()

    assert world.node("a") == "node-of-a"
    assert world.events == [Bound(1, world.uid("a"))]
    sent = world.server.seen("POST", "/pods/a/binding")
    assert len(sent) > 1
    assert {it.body["target"]["name"] for it in sent} == {"node-of-a"}


def test_a_bind_that_is_refused_is_told_of_and_the_others_are_made(world: World) -> None:
    records = world.records("a", "b", "c")
    [_, _, gone] = records
    b = world.server.object(f"{PODS}/b")
    assert b is not None
    world.server.put(f"{PODS}/b", {**b, "spec": {"nodeName": "elsewhere"}})
    world.server.remove(f"{PODS}/c")
    world.binder.submit(records)

    world.work()

    assert world.events == [
        Bound(1, world.uid("a")),
        Refused(1, world.uid("b"), gone=False),
        Refused(1, gone.pod_uid, gone=True),
    ]
    assert world.open() == []


def test_nothing_is_sent_while_the_fence_is_down(world: World, fence: Fence) -> None:
    fence.drop()
    world.binder.submit(world.records("a"))

    world.binder.look()

    assert world.open() == ["a"], "it is written down all the same"
    assert not world.server.seen("POST", "/binding")
    fence.extend(time.monotonic() + 60)
    world.work()
    assert world.node("a") == "node-of-a"


def test_nothing_is_written_or_sent_for_an_epoch_that_is_over(world: World) -> None:
    world.depose()
    world.binder.submit(world.records("a"))

    world.binder.look()

    assert [type(event) for event in world.events] == [Deposed]
    assert world.open() == []
    assert not world.server.seen("POST", "/binding")


def test_an_old_leader_settles_nothing(world: World) -> None:
    # Another comes to lead while the bind is under way.
    world.server.on("POST", "/pods/a/binding", only=lambda _: world.depose())
    world.binder.submit(world.records("a"))

    wait_until(lambda: not world.binder.look(), what="the bind")
    world.binder.look()

    assert world.node("a") == "node-of-a"
    assert isinstance(world.events[-1], Deposed)
    assert world.open() == ["a"], "the new leader finds out for itself"


def test_what_was_refused_and_decided_anew_is_open(world: World) -> None:
    world.server.on("POST", "/pods/a/binding", status=403)
    again = world.records("a")
    world.binder.submit(again)
    world.binder.look()
    world.server.on("POST", "/pods/a/binding", status=429, times=100)

    world.binder.submit(again)
    world.binder.look()

    assert isinstance(world.events[0], Refused)
    assert world.open() == ["a"]


def test_when_a_term_ends_what_is_written_down_is_left_to_the_next(world: World) -> None:
    world.server.on("POST", "/pods/a/binding", status=429, times=100)
    world.binder.submit(world.records("a"))
    world.binder.look()
    assert not world.binder.at_rest()

    world.binder.end()

    assert world.binder.at_rest()
    assert not world.binder.look()
    assert world.open() == ["a"]


def test_what_an_earlier_term_wrote_down_is_carried_out(world: World) -> None:
    records = world.records("a", "b")
    with world.database.transaction() as session:
        binds.record(session, LEASE, epoch=1, binds=records)

    world.binder.resume(records)
    world.work()

    assert (world.node("a"), world.node("b")) == ("node-of-a", "node-of-b")
    assert world.open() == []


def test_a_group_is_written_down_as_a_whole_or_not_at_all(world: World) -> None:
    size = CHUNK * 2 // 3
    for group in ("g", "h", "i"):
        names = [f"{group}{number}" for number in range(size)]
        world.binder.submit([BindRecord(it, "ns", it, group, "n") for it in names])

    world.binder.look()

    assert len(world.open()) in {2 * size, 2 * size - 16}, "two groups, some already sent"


class TestConditions:
    """Telling pods why they wait."""

    def seen(self, world: World, **status: Any) -> SeenPod:
        world.records("a")
        return SeenPod(Pod("a", "ns", "a"), "volcano", "1", **status)

    def conditions(self, world: World) -> Any:
        found = world.server.object(f"{PODS}/a")
        assert found is not None
        return found.get("status", {}).get("conditions")

    def make(self, world: World) -> Conditions:
        return Conditions(world.client, world.events.append, batch=10)

    def test_the_reason_comes_beside_other_conditions(self, world: World) -> None:
        conditions = self.make(world)
        other = '{"type":"Other","status":"True"}'

        conditions.say(self.seen(world, conditions=(other,)), "Unschedulable", "why", NOW)
        conditions.look()

        kept, ours = self.conditions(world)
        assert kept == {"type": "Other", "status": "True"}
        assert (ours["type"], ours["status"], ours["reason"], ours["message"]) == (
            "PodScheduled",
            "False",
            "Unschedulable",
            "why",
        )
        [sent] = world.server.seen("PATCH")
        assert sent.path == f"{PODS}/a/status"
        assert sent.body["metadata"]["resourceVersion"] == "1"

    def test_a_pod_that_knows_is_not_told_again(self, world: World) -> None:
        conditions = self.make(world)

        conditions.say(self.seen(world, told=("R", "M")), "R", "M", NOW)
        conditions.look()

        assert not world.server.seen("PATCH")

    def test_a_pod_that_changed_meanwhile_is_looked_at_again(self, world: World) -> None:
        conditions = self.make(world)
        world.server.on("PATCH", status=409)

        conditions.say(self.seen(world), "R", "M", NOW)
        conditions.look()

        assert world.events == [Outdated("a", "R", "M")]

    def test_only_a_leader_tells(self, world: World, fence: Fence) -> None:
        conditions = self.make(world)
        fence.drop()

        conditions.say(self.seen(world), "R", "M", NOW)
        conditions.look()

        assert not world.server.seen("PATCH")
