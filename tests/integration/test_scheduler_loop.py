"""The scheduling thread's steps, one at a time, over a real store and a scripted API server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hekla.kube.client import KubeClient
from hekla.kube.fence import Fence, Progress
from hekla.store import binds, leases
from hekla.store.binds import BindRecord
from hekla.store.database import Database
from services.scheduler.binder import Binder
from services.scheduler.cache import Cache
from services.scheduler.campaign import LEASE, Campaign
from services.scheduler.config import SchedulerConfig
from services.scheduler.core.objects import Group, GroupReport, Node, Pod, PodSpec, Queue
from services.scheduler.events import Batch, Change, Elected, Full, Kind, SeenPod
from services.scheduler.framework import Framework
from services.scheduler.inbox import Inbox
from services.scheduler.loop import Scheduler
from services.scheduler.policies import Policies
from services.scheduler.telling import Conditions, Reports
from tests.support.kube_server import KubeServer
from tests.support.waiting import wait_until

PODS = "/api/v1/namespaces/ns/pods"
NOTHING = timedelta()


class Failing:
    """An action with a fault: it fails so many times."""

    name = "failing"

    def __init__(self, times: int) -> None:
        self.left = times

    def run(self, session: Any) -> None:
        if self.left:
            self.left -= 1
            session.cluster.nodes.used[:] += 1000
            raise RuntimeError("a fault of ours")


class World:
    """A scheduler whose steps the test takes."""

    def __init__(self, database: Database, server: KubeServer, client: KubeClient) -> None:
        settings = SchedulerConfig(
            database_url="postgresql://nobody@127.0.0.1:1/none", schedule_period=NOTHING
        )
        self.server = server
        self.database = database
        self.inbox = Inbox()
        self.fence = Fence()
        self.progress = Progress()
        self.cache = Cache("volcano", self.progress.move)
        self.stale: str | None = None
        self.reported: list[GroupReport] = []
        self.policies = Policies(None, self.progress.move)
        self.binder = Binder(
            database, client, self.inbox.put, timeout=timedelta(seconds=2), batch=16
        )
        self.reports = Reports(self._hear, self.inbox.put)
        campaign = Campaign(
            database,
            self.inbox,
            self.fence,
            holder="us",
            ttl=timedelta(seconds=3),
            takeover_pause=NOTHING,
            hindrance=lambda: "the test elects",
            at_rest=self.binder.at_rest,
        )
        self.scheduler = Scheduler(
            settings,
            cache=self.cache,
            inbox=self.inbox,
            policies=self.policies,
            fence=self.fence,
            progress=self.progress,
            campaign=campaign,
            binder=self.binder,
            reports=self.reports,
            conditions=Conditions(client, self.inbox.put, batch=10),
            stale=lambda: self.stale,
        )
        self.inbox.put(Full(Kind.NODE, [Node("n0", {"cpu": 2000, "pods": 9})]))
        self.inbox.put(Full(Kind.QUEUE, [Queue("default")]))
        self.inbox.put(Full(Kind.PRIORITY_CLASS, []))
        self.inbox.put(Full(Kind.GROUP, [Group("g", "ns", "g", min_member=1)]))
        self.inbox.put(Full(Kind.POD, []))

    def _hear(self, epoch: int, reports: Any) -> list[str]:
        del epoch
        self.reported.extend(reports)
        return []

    def pod(self, name: str) -> Pod:
        """A pod that exists and that the scheduler is told of."""
        made = self.server.put(f"{PODS}/{name}", {"metadata": {"name": name}, "spec": {}})
        spec = PodSpec.of({"cpu": 1000})
        pod = Pod(made["metadata"]["uid"], "ns", name, spec, group="g")
        self.inbox.put(Batch(Kind.POD, [Change("ADDED", SeenPod(pod, "volcano"))]))
        return pod

    def elect(self, *unsettled: BindRecord, pause: timedelta = NOTHING) -> None:
        """Let it lead."""
        with self.database.transaction() as session:
            taken = leases.acquire(session, LEASE, holder="us", ttl=timedelta(minutes=1))
        assert taken is not None
        self.fence.extend(time.monotonic() + 60)
        self.inbox.put(Elected(taken.epoch, pause, unsettled, ()))

    def step(self) -> None:
        """One step of each thread."""
        self.scheduler.step()
        self.reports.look()
        self.binder.look()

    def node(self, name: str) -> str | None:
        found = self.server.object(f"{PODS}/{name}")
        assert found is not None
        node: str | None = found["spec"].get("nodeName")
        return node

    def wait_bound(self, name: str) -> None:
        def stepped() -> str | None:
            self.step()
            return self.node(name)

        wait_until(stepped, what=f"{name} to be bound")


@pytest.fixture
def world(database: Database, tmp_path: Path) -> Iterator[World]:
    fence = Fence()
    fence.extend(time.monotonic() + 600)
    with (
        KubeServer() as server,
        KubeClient.start(server.kubeconfig(tmp_path), isolated=False, fence=fence) as client,
    ):
        yield World(database, server, client)


def test_who_leads_decides_and_who_does_not_only_listens(world: World) -> None:
    world.pod("p")
    for _ in range(3):
        world.step()
    assert world.scheduler.figures.sessions == 0
    assert world.cache.missing() == []
    assert not world.reported

    world.elect()

    world.wait_bound("p")
    assert world.scheduler.figures.leading
    assert world.reported


def test_nothing_is_decided_before_its_time_or_on_old_news(world: World) -> None:
    world.pod("p")
    world.elect(pause=timedelta(hours=1))
    world.step()
    term = world.scheduler.term
    assert term is not None
    assert world.scheduler.figures.sessions == 0, "an earlier leader may still be at work"

    world.stale = "the controller is away"
    term.begins_at = time.monotonic()
    world.step()
    assert world.scheduler.figures.sessions == 0, "what it knows may be old"

    world.stale = None
    world.wait_bound("p")


def test_a_fence_that_comes_down_ends_the_term(world: World) -> None:
    world.elect()
    world.step()
    assert world.scheduler.figures.leading

    world.fence.drop()
    world.step()

    assert not world.scheduler.figures.leading
    assert world.binder.at_rest()


def test_a_fence_that_never_comes_up_ends_the_term_too(world: World) -> None:
    world.elect()
    world.fence.drop()
    world.step()
    term = world.scheduler.term
    assert term is not None
    assert world.scheduler.figures.sessions == 0
    term.fence_by = time.monotonic() - 1

    world.step()

    assert world.scheduler.term is None


def test_a_pod_whose_bind_is_refused_is_placed_again_after_a_pause(world: World) -> None:
    world.pod("p")
    world.server.on("POST", "/pods/p/binding", status=403)
    world.elect()

    world.wait_bound("p")

    first, second = world.server.seen("POST", "/pods/p/binding")
    assert first.body == second.body


def test_what_was_written_down_before_comes_first_and_takes_its_room(world: World) -> None:
    old = world.server.put(f"{PODS}/old", {"metadata": {"name": "old"}, "spec": {}})
    record = BindRecord(old["metadata"]["uid"], "ns", "old", "g", "n0", {"cpu": 2000})
    world.pod("new")

    world.elect(record)

    world.wait_bound("old")
    for _ in range(3):
        world.step()
    assert world.node("new") is None, "the node is full"
    world.server.remove(f"{PODS}/old")
    gone = Pod(record.pod_uid, "ns", "old", PodSpec.of({"cpu": 2000}), node="n0")
    world.inbox.put(Batch(Kind.POD, [Change("DELETED", SeenPod(gone, "volcano"))]))
    world.wait_bound("new")
    world.step()  # what became of a bind is noted with what is decided next
    with world.database.transaction() as session:
        assert not binds.open_records(session)


def test_a_fault_in_a_session_costs_the_term_and_bends_nothing(world: World) -> None:
    framework = world.policies.framework
    world.policies.framework = Framework([], [Failing(1)])
    world.pod("p")
    world.elect()

    with pytest.raises(RuntimeError, match="a fault of ours"):
        world.step()

    assert world.scheduler.term is None
    assert int(world.cache.cluster.nodes.used.sum()) == 0
    world.policies.framework = framework
    with world.database.transaction() as session:
        leases.release(session, LEASE, epoch=1)
    world.elect()
    world.wait_bound("p")


def test_who_cannot_decide_does_not_keep_the_processor_busy(world: World) -> None:
    def seconds_of_a_step() -> float:
        began = time.monotonic()
        world.scheduler.step()
        return time.monotonic() - began

    world.step()
    assert seconds_of_a_step() >= 0.4, "it stands by"

    world.stale = "the controller is away"
    world.elect()
    world.step()
    assert seconds_of_a_step() >= 0.04, "it leads, but must wait"
