"""One scheduler as a process, over a real store, a real cluster and pod groups by gRPC."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import psycopg
import pytest

from hekla.domain import names
from hekla.domain.errors import NotServedError
from hekla.rpc.channel import connect
from hekla.rpc.errors import translated
from hekla.store import binds
from hekla.v1 import scheduler_service_pb2 as messages
from hekla.v1.scheduler_service_pb2_grpc import SchedulerServiceStub
from tests.integration.test_rpc_probes import ask
from tests.support.local_cluster import Object
from tests.support.logged import START_TIMEOUT
from tests.support.postgres import Server
from tests.support.scheduling_stack import PODS, Scheduler, Stack, pod, stack
from tests.support.volcano import LEASES, volcano
from tests.support.waiting import wait_until


class Running(NamedTuple):
    """A scheduler that leads, and what is around it."""

    stack: Stack
    scheduler: Scheduler


@pytest.fixture(scope="module")
def running(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    url = postgres.make_database("scheduler_service", template="template")
    with stack(tmp_path_factory.mktemp("scheduler"), url, "--nodes=2") as made:
        scheduler = made.scheduler(HEKLA_SCHEDULER_LEASE_TTL="1s").wait_ready().wait_to_lead()
        yield Running(made, scheduler)


@pytest.fixture(autouse=True)
def _empty(running: Running) -> Iterator[None]:
    """Leave the cluster empty for the next test."""
    yield
    for item in running.stack.all_pods():
        running.stack.cluster.call("DELETE", f"{PODS}/{item['metadata']['name']}")
    wait_until(lambda: running.scheduler.status().pods == 0, what="the pods to be gone")


def told(item: Object) -> str:
    """What a pod is told about why it waits."""
    conditions = item["status"].get("conditions") or []
    return next((it["message"] for it in conditions if it["type"] == "PodScheduled"), "")


def allow_connections(postgres: Server, database: str, *, allowed: bool) -> None:
    """Let a database come back, or be away and cut every connection to it."""
    name = postgres.name(database)
    with psycopg.connect(postgres.direct_url("postgres"), autocommit=True) as connection:
        connection.execute(
            f"alter database {name} with allow_connections {str(allowed).lower()}".encode()
        )
        if not allowed:
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s",
                [name],
            )


def touch_all(made: Stack, group: str) -> bool:
    """Change every pod of a group in a way that nobody cares about."""
    for item in made.all_pods(group):
        patch = {"metadata": {"labels": {"touched": item["metadata"]["resourceVersion"]}}}
        assert made.cluster.merge(f"{PODS}/{item['metadata']['name']}", patch).code == 200
    return True


def test_a_gang_is_let_in_bound_and_told_of(running: Running) -> None:
    made = running.stack
    group = made.group("whole", 3)
    wait_until(lambda: made.phase("whole") == "Inqueue", what="the group to be let in")

    made.pods(group, 3)

    made.wait_bound("whole", 3)
    wait_until(lambda: made.phase("whole") == "Running", what="the group to run")
    with made.controller.database.transaction() as session:
        wait_until(lambda: not binds.open_records(session), what="the binds to be settled")
    status = running.scheduler.status()
    assert status.leading
    assert status.epoch == 1
    assert status.nodes == 2
    assert status.queues == 2


def test_nothing_of_a_gang_is_bound_that_does_not_fit_and_all_once_it_does(
    running: Running,
) -> None:
    made = running.stack
    first = made.gang("first", 2, cpu="12")
    made.wait_bound("first", 2)

    made.gang("second", 3, cpu="8")

    wait_until(
        lambda: all("Insufficient cpu" in told(it) for it in made.all_pods("second")),
        what="all pods to be told why they wait",
    )
    assert not made.bound("second")
    made.delete(first)
    made.wait_bound("second", 3)


def test_a_pod_of_another_scheduler_takes_room_and_is_left_alone(running: Running) -> None:
    made = running.stack
    for index, node in enumerate(["node-0", "node-1", ""]):
        foreign = pod(made.group(f"foreign-{index}", 1), 0, cpu="10")
        foreign["spec"] |= {"schedulerName": "other", "nodeName": node}
        made.cluster.make(PODS, foreign)

    made.gang("ours", 2, cpu="8")

    wait_until(
        lambda: all("Insufficient cpu" in told(it) for it in made.all_pods("ours")),
        what="our pods to be told why they wait",
    )
    assert not made.bound("ours")
    assert not made.bound("foreign-2")


def test_a_pod_without_a_group_waits_and_is_counted(running: Running) -> None:
    made = running.stack
    lonely = pod(made.group("none", 1), 0)
    del lonely["metadata"]["annotations"][names.GROUP_NAME]
    made.cluster.make(PODS, lonely)

    def counted() -> str:
        return ask(running.scheduler.http, "/metrics")[1]

    wait_until(lambda: "hekla_pods_without_group 1.0" in counted(), what="it to be counted")
    line = running.scheduler.log.wait_for("pod belongs to no group and waits")
    assert line["pod"] == "default/none-0"


def test_an_event_from_before_a_bind_does_not_undo_it(running: Running) -> None:
    made = running.stack
    group = made.group("late", 2)
    wait_until(lambda: made.phase("late") == "Inqueue", what="the group to be let in")
    made.delay_watches(0.6)
    try:
        made.pods(group, 2, cpu="10")
        # Each change made before the bind is told of only after it.
        wait_until(lambda: touch_all(made, "late") and made.bound("late"), what="the binds")
        made.wait_bound("late", 2)
        # Both nodes are full, though no watch says so yet: this one must wait.
        made.gang("later", 1, cpu="8")
        wait_until(
            lambda: "Insufficient cpu" in told(made.cluster.pod("later-0")),
            timeout=40,  # another wording of the same refusal is told after 10 s at least
            what="the later pod to be refused",
        )
    finally:
        made.delay_watches(0)
    assert made.overfull() == {}
    refused = [line["pod"] for line in running.scheduler.log.lines("bind refused")]
    assert not [pod for pod in refused if pod.startswith(("default/late-", "default/later-"))]


def test_nothing_is_bound_while_the_controller_is_away_and_all_after(running: Running) -> None:
    made, scheduler = running
    group = made.group("away", 2)
    wait_until(lambda: made.phase("away") == "Inqueue", what="the group to be let in")
    made.controller.stop()
    try:
        wait_until(lambda: scheduler.probe("/readyz") == 503, what="it to notice")
        before = scheduler.status()
        made.pods(group, 2)
        wait_until(
            lambda: scheduler.status().pods == before.pods + 2, what="it to see the pods"
        )
        assert scheduler.status().sessions == before.sessions
        assert scheduler.probe("/healthz") == 200
        assert not made.bound("away")
    finally:
        made.controller.start()

    made.wait_bound("away", 2)
    scheduler.wait_ready()


def test_nothing_is_bound_while_postgres_is_away_and_all_after(
    running: Running, postgres: Server
) -> None:
    made, scheduler = running
    group = made.group("dark", 2)
    wait_until(lambda: made.phase("dark") == "Inqueue", what="the group to be let in")
    allow_connections(postgres, "scheduler_service", allowed=False)
    try:
        made.pods(group, 2)
        wait_until(lambda: not scheduler.leads(), timeout=30, what="it to lead no more")
        assert scheduler.probe("/healthz") == 200
        assert not made.bound("dark")
    finally:
        allow_connections(postgres, "scheduler_service", allowed=True)

    made.wait_bound("dark", 2)
    assert scheduler.leads()


def test_what_is_not_served_yet_says_so(running: Running) -> None:
    with connect(running.scheduler.address) as channel:
        stub = SchedulerServiceStub(channel)
        refused = pytest.raises(NotServedError, match="ExplainJob is not yet served")
        with refused, translated():
            stub.ExplainJob(messages.ExplainJobRequest(name="j"), timeout=10)


def test_it_starts_beside_no_living_volcano_and_by_itself_when_that_stops(
    running: Running,
) -> None:
    cluster = running.stack.cluster
    with volcano(cluster):
        beside = running.stack.scheduler(HEKLA_SCHEDULER_LEASE_TTL="1s")
        wait_until(
            lambda: "default/volcano of vc-1 is renewed" in ask(beside.http, "/readyz")[1],
            timeout=START_TIMEOUT,
            what="it to say whom it waits for",
        )

        def said() -> bool:
            reasons = [line["reason"] for line in beside.log.lines("not starting")]
            return any("lease default/volcano of vc-1 is renewed" in it for it in reasons)

        wait_until(said, what="it to say so in its log")
    try:
        beside.wait_ready()
        beside.log.wait_for("no Volcano is at work any more: starting")
    finally:
        beside.end()
        cluster.call("DELETE", f"{LEASES}/volcano")
