"""Known cases of the policy, as users met them; the numbers are those of the case list."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import permutations

import pytest

from hekla.domain.phases import PodGroupPhase, PodPhase, QueueState
from services.scheduler import policy
from services.scheduler.core.objects import (
    EPOCH,
    Group,
    Pod,
    PodSpec,
    PriorityClass,
    Queue,
    Taint,
    Toleration,
    amounts,
    limits,
)
from services.scheduler.framework import Enabled, Framework
from tests.support.cluster import (
    add_gang,
    cluster_with,
    confirm,
    decide,
    node,
    placed,
    report_of,
)

GPU = "nvidia.com/gpu"


@pytest.mark.parametrize("nodes", list(permutations([("a", 53), ("b", 31)])))
@pytest.mark.parametrize("tasks", list(permutations([("x", 30), ("y", 50)])))
@pytest.mark.parametrize("renamed", [False, True])
def test_c60_the_order_of_placement_does_not_matter(
    nodes: list[tuple[str, int]], tasks: list[tuple[str, int]], *, renamed: bool
) -> None:
    names = {"a": "b", "b": "a"} if renamed else {"a": "a", "b": "b"}
    cluster = cluster_with(*(node(names[name], cpu) for name, cpu in nodes))
    add_gang(cluster, "g", {task: (1, {"cpu": cpu}) for task, cpu in tasks})

    decided = placed(decide(cluster))

    assert decided == {"g-x-0": names["b"], "g-y-0": names["a"]}


def test_c60_a_gang_of_four_classes_fills_its_nodes_to_the_last_core() -> None:
    """12 pods whose only arrangements leave no core free."""
    cluster = cluster_with(node("a", 31), node("b", 29), node("c", 28))
    requests = {"p": 11, "q": 9, "r": 7, "s": 2}
    assert sum(requests.values()) * 3 - 1 == 31 + 29 + 26
    add_gang(cluster, "g", {task: (3, {"cpu": cpu}) for task, cpu in requests.items()})

    used: dict[str, int] = {}
    for uid, name in placed(decide(cluster)).items():
        used[name] = used.get(name, 0) + requests[uid.split("-")[1]]

    assert sum(used.values()) == 87
    assert all(used[name] <= cpu for name, cpu in (("a", 31), ("b", 29), ("c", 28)))


@pytest.mark.parametrize(
    ("others", "message"),
    [
        pytest.param(0, "", id="found where both orders fail"),
        pytest.param(6, "no placement found, too large to search", id="beyond the bound"),
    ],
)
def test_c60_larger_gangs_are_searched_within_a_bound(others: int, message: str) -> None:
    cluster = cluster_with(node("a", 16, more={"x": 99}), node("b", 10, more={"x": 99}))
    requests = {f"t{at}": (1, {"cpu": cpu}) for at, cpu in enumerate((9, 7, 6, 4))}
    more = {f"other{at}": (2, {"x": at + 1}) for at in range(others)}
    add_gang(cluster, "g", requests | more)

    decisions = decide(cluster)

    assert len(decisions.binds) == (0 if others else 4)
    assert decisions.waiting.get("g-uid", "").startswith(message)


def test_c60_what_is_proven_impossible_is_said_to_be() -> None:
    cluster = cluster_with(node("a", 16), node("b", 10))
    requests = {f"t{at}": (1, {"cpu": cpu}) for at, cpu in enumerate((9, 8, 5, 4))}
    add_gang(cluster, "g", requests)

    waiting = decide(cluster).waiting["g-uid"]

    assert waiting.startswith("its pods fit one by one, but not all of them together; ")


def test_c62_what_no_node_can_ever_take_reserves_nothing() -> None:
    queues = (Queue("default", capability=limits({GPU: 2})),)
    cluster = cluster_with(
        node("a", 9, more={GPU: 1}), node("b", 9, more={GPU: 1}), queues=queues
    )
    for name, gpus in (("a", 2), ("b", 1)):
        add_gang(
            cluster,
            name,
            {"t": (1, {GPU: gpus})},
            phase=PodGroupPhase.PENDING,
            min_resources=amounts({GPU: gpus}),
            created=EPOCH + timedelta(seconds=gpus == 1),
        )

    first = decide(cluster)
    assert first.again_in == timedelta()
    second = decide(cluster)

    assert list(placed(second)) == ["b-t-0"]
    message = report_of(first, "a").message
    assert message.startswith("1/1 tasks in gang unschedulable: ")
    assert f"No node has 2 {GPU} (largest: 1)" in message


def test_c63_a_group_whose_pods_are_gone_keeps_nobody_out() -> None:
    queues = (Queue("default", capability=limits({"cpu": 4})),)
    cluster = cluster_with(node("a", 4), queues=queues)
    pods = add_gang(cluster, "dead", {"t": (1, {"cpu": 9})}, min_resources=amounts({"cpu": 4}))
    cluster.remove_pod(pods[0].uid)
    add_gang(
        cluster,
        "new",
        {"t": (1, {"cpu": 4})},
        phase=PodGroupPhase.PENDING,
        min_resources=amounts({"cpu": 4}),
    )

    assert placed(decide(cluster)) == {"new-t-0": "a"}


def test_c64_a_gang_that_lost_a_member_is_completed_first() -> None:
    cluster = cluster_with(node("one", 9, more={GPU: 1}), node("two", 9, more={GPU: 1}))
    add_gang(cluster, "g", {"t": (2, {GPU: 1})})
    first = decide(cluster)
    confirm(cluster, first, phase=PodPhase.RUNNING)
    add_gang(
        cluster,
        "filler",
        {"t": (1, {GPU: 1})},
        priority_class="high",
        created=EPOCH - timedelta(days=1),
    )
    cluster.upsert_priority_class(PriorityClass("high", 100))

    # Node two is drained: the controller makes the pod anew; then the node is back.
    [lost] = [uid for uid, name in placed(first).items() if name == "two"]
    cluster.upsert_node(node("two", 9, more={GPU: 1}, unschedulable=True))
    cluster.remove_pod(lost)
    cluster.upsert_pod(replace(cluster.pods[_other(lost)].pod, uid="anew", node="", phase=PEND))
    assert not decide(cluster).binds
    cluster.upsert_node(node("two", 9, more={GPU: 1}))

    assert placed(decide(cluster)) == {"anew": "two"}


PEND = PodPhase.PENDING


def _other(uid: str) -> str:
    return "g-t-0" if uid.endswith("1") else "g-t-1"


def test_c65_c66_successes_count_unless_they_are_being_deleted() -> None:
    cluster = cluster_with(node("a", 1))
    pods = add_gang(cluster, "g", {"t": (3, {"cpu": 1})})
    for pod in pods[:2]:
        done = replace(pod, node="a", phase=PodPhase.SUCCEEDED, terminating=True)
        cluster.upsert_pod(done)
    assert not decide(cluster).binds

    for pod in pods[:2]:
        cluster.upsert_pod(replace(pod, node="a", phase=PodPhase.SUCCEEDED))

    assert placed(decide(cluster)) == {"g-t-2": "a"}


@pytest.mark.parametrize(("cpu", "expected"), [(4, 6), (3, 0)])
def test_c67_best_effort_members_count_like_any_other(cpu: int, expected: int) -> None:
    cluster = cluster_with(node("a", cpu))
    add_gang(cluster, "g", {"free": (2, {}), "paid": (4, {"cpu": 1})})

    assert len(decide(cluster).binds) == expected


@pytest.mark.parametrize(
    ("minimum", "expected"),
    [
        pytest.param(4, 4, id="the sum of the tasks' minima is above: they do not count"),
        pytest.param(5, 5, id="the tasks' minima count"),
    ],
)
def test_c69_task_minima_count_unless_the_job_asks_for_less(
    minimum: int, expected: int
) -> None:
    cluster = cluster_with(node("a", expected))
    tasks = {"m": (5, {"cpu": 1}), "w": (3, {"cpu": 1})}
    add_gang(cluster, "g", tasks, minimum=minimum, min_task_member=(("m", 4), ("w", 1)))

    decided = placed(decide(cluster))

    assert len(decided) == expected
    if minimum == 5:
        assert sum(uid.startswith("g-m") for uid in decided) == 4
        assert sum(uid.startswith("g-w") for uid in decided) == 1


def test_c71_small_jobs_pass_a_blocked_one() -> None:
    cluster = cluster_with(node("a", 7))
    for name, cpu in (("j1", 4), ("j2", 4), ("j3", 1)):
        created = EPOCH + timedelta(seconds=int(name[1]))
        add_gang(cluster, name, {"t": (1, {"cpu": cpu})}, created=created)

    assert list(placed(decide(cluster))) == ["j1-t-0", "j3-t-0"]


@pytest.mark.parametrize(("ready", "gpus"), [(False, 8), (True, 0)])
def test_c87_a_node_that_comes_back_is_used_at_once(*, ready: bool, gpus: int) -> None:
    cluster = cluster_with(node("a", 9, ready=ready, more={GPU: gpus}))
    add_gang(cluster, "g", {"t": (1, {"cpu": 1, GPU: 8})})
    assert not decide(cluster).binds
    assert not decide(cluster).binds

    cluster.upsert_node(node("a", 9, more={GPU: 8}))

    assert placed(decide(cluster)) == {"g-t-0": "a"}


def test_c85_lost_devices_free_nothing_until_they_are_back() -> None:
    cluster = cluster_with(node("a", 9, more={GPU: 8}))
    held = Pod("p0", "ns", "p0", PodSpec.of({GPU: 8}), node="a", phase=PodPhase.RUNNING)
    cluster.upsert_pod(held)
    cluster.upsert_node(node("a", 9, more={GPU: 6}))
    add_gang(cluster, "one", {"t": (1, {GPU: 6})})
    add_gang(cluster, "two", {"t": (1, {"cpu": 1})})
    assert placed(decide(cluster)) == {"two-t-0": "a"}

    cluster.upsert_node(node("a", 9, more={GPU: 8}))
    cluster.upsert_pod(replace(held, phase=PodPhase.SUCCEEDED))

    assert placed(decide(cluster)) == {"one-t-0": "a"}


def test_c54_what_a_capability_does_not_name_is_not_limited() -> None:
    queues = (
        Queue("cpu", capability=limits({"cpu": 8, "memory": 20})),
        Queue("gpu", capability=limits({GPU: 4, "cpu": 5})),
        Queue("odd", capability=limits({"nobody/has": 1})),
    )
    cluster = cluster_with(node("a", 99, more={GPU: 9}), queues=queues)
    add_gang(cluster, "g1", {"t": (1, {"cpu": 2, "memory": 2, GPU: 1})}, queue="cpu")
    add_gang(cluster, "g2", {"t": (1, {"cpu": 4, "memory": 9, GPU: 3})}, queue="gpu")
    add_gang(cluster, "g3", {"t": (1, {"cpu": 1})}, queue="odd")

    assert len(decide(cluster).binds) == 3


def test_c88_odd_objects_do_not_stop_the_session() -> None:
    cluster = cluster_with(node("a", 9))
    odd = {"t": (1, {"cpu": 1})}
    add_gang(cluster, "no-queue", odd, queue="missing")
    add_gang(cluster, "no-class", odd, priority_class="missing", min_resources=None)
    add_gang(cluster, "no-device", {"t": (1, {"nobody/has": 1})})
    add_gang(cluster, "huge", {"t": (1, {"cpu": 1 << 80})})
    add_gang(cluster, "claims", odd, pod={"features": ("volumes",)})
    cluster.upsert_pod(Pod("orphan", "ns", "orphan", PodSpec.of({"cpu": 1}), group="gone"))
    cluster.upsert_group(Group("empty-uid", "ns", "empty", phase=PodGroupPhase.INQUEUE))
    add_gang(cluster, "healthy", odd)

    decisions = decide(cluster)

    assert placed(decisions) == {"healthy-t-0": "a", "no-class-t-0": "a"}
    assert decisions.waiting == {
        "no-queue-uid": "queue missing does not exist",
        "no-device-uid": "0/1 nodes are unavailable: 1 Insufficient nobody/has. "
        "No node has any nobody/has.",
        "huge-uid": decisions.waiting["huge-uid"],
        "claims-uid": "needs volumes, not supported yet",
    }
    assert "No node has" in decisions.waiting["huge-uid"]


def test_c126_taints_and_cordons_are_told_apart_from_lack_of_room() -> None:
    taint = (Taint("keep", "away"),)
    nodes = (node("n1", 9, taints=taint), node("n2", 9, unschedulable=True), node("n3", 1))
    cluster = cluster_with(*nodes)
    add_gang(cluster, "g", {"t": (2, {"cpu": 1})})

    first = decide(cluster)

    assert not first.binds
    message = report_of(first, "g").message
    assert "1 node(s) had untolerated taint(s)" in message
    assert "1 node(s) were unschedulable" in message

    tolerant = cluster_with(*nodes)
    pod = {"tolerations": (Toleration("keep", "Equal", "away"),)}
    add_gang(tolerant, "g", {"t": (2, {"cpu": 1})}, pod=pod)
    assert sorted(placed(decide(tolerant)).values()) == ["n1", "n3"]


def test_the_driver_goes_with_its_first_executors() -> None:
    """The minimum is what comes first by priority, whatever else would fit."""
    cluster = cluster_with(node("a", 6))
    cluster.upsert_priority_class(PriorityClass("master", 100))
    add_gang(cluster, "s", {"driver": (1, {"cpu": 4})}, minimum=3, pod={"priority": 100})
    for index in range(5):
        name = f"s-executor-{index}"
        spec = PodSpec.of({"cpu": 1}, priority=0)
        cluster.upsert_pod(Pod(name, "ns", name, spec, group="s", task="executor", index=index))

    assert list(placed(decide(cluster))) == ["s-driver-0", "s-executor-0", "s-executor-1"]

    small = cluster_with(node("a", 3))
    add_gang(small, "s", {"driver": (1, {"cpu": 4})}, minimum=1, pod={"priority": 100})
    spec = PodSpec.of({"cpu": 1}, priority=0)
    small.upsert_pod(Pod("e", "ns", "s-executor-0", spec, group="s", task="executor"))
    assert not decide(small).binds, "executors do not stand in for the driver"


def test_pods_beyond_the_minimum_come_after_all_gangs_of_the_same_priority() -> None:
    cluster = cluster_with(node("a", 4))
    add_gang(cluster, "one", {"t": (4, {"cpu": 1})}, minimum=1)
    add_gang(cluster, "two", {"t": (2, {"cpu": 1})}, created=EPOCH + timedelta(days=1))

    assert list(placed(decide(cluster))) == ["one-t-0", "two-t-0", "two-t-1", "one-t-1"]


def test_queues_share_by_priority_then_by_what_they_use() -> None:
    queues = (Queue("a"), Queue("b"), Queue("first", priority=1))
    cluster = cluster_with(node("n", 7), queues=queues)
    for name in ("a", "b", "first"):
        add_gang(cluster, name, {"t": (3, {"cpu": 1})}, minimum=0, queue=name)

    decided = list(placed(decide(cluster)))

    assert decided == [
        *("first-t-0", "first-t-1", "first-t-2"),
        *("a-t-0", "b-t-0", "a-t-1", "b-t-1"),
    ]


def test_no_queue_goes_above_its_capability_nor_does_an_ancestor() -> None:
    queues = (
        Queue("root"),
        Queue("top", capability=limits({"cpu": 5})),
        Queue("left", parent="top", capability=limits({"cpu": 3})),
        Queue("right", parent="top"),
    )
    cluster = cluster_with(node("n", 99), queues=queues)
    for name in ("left", "right"):
        add_gang(cluster, name, {"t": (4, {"cpu": 1})}, minimum=0, queue=name)
    decisions = decide(cluster)

    counts = [
        sum(uid.startswith(name) for uid in placed(decisions)) for name in ("left", "right")
    ]
    assert counts == [3, 2]
    assert set(decisions.waiting.values()) == {
        "queue resource quota insufficient: insufficient cpu"
    }

    cluster.upsert_queue(Queue("top", capability=limits({"cpu": 6})))
    assert len(decide(cluster).binds) == 1, "room in the queue is used at once"


def test_a_closed_queue_starts_nothing_but_completes_what_it_began() -> None:
    cluster = cluster_with(node("n", 9))
    add_gang(cluster, "old", {"t": (2, {"cpu": 1})})
    first = decide(cluster)
    cluster.upsert_queue(Queue("default", state=QueueState.CLOSING))
    add_gang(cluster, "new", {"t": (1, {"cpu": 1})})
    lost = replace(cluster.pods["old-t-1"].pod, uid="anew")
    cluster.remove_pod("old-t-1")
    cluster.upsert_pod(lost)

    decisions = decide(cluster)

    assert len(first.binds) == 2
    assert list(placed(decisions)) == ["anew"]
    assert decisions.waiting == {"new-uid": "queue default is closing"}


def test_without_enqueue_allocate_lets_groups_in_itself() -> None:
    cluster = cluster_with(node("n", 9))
    add_gang(cluster, "g", {"t": (1, {"cpu": 1})}, phase=PodGroupPhase.PENDING)
    only = policy.load('actions: "allocate"\ntiers: [{plugins: [{name: gang}]}]').framework

    assert len(decide(cluster, only).binds) == 1


def test_best_effort_pods_are_placed_though_their_queue_may_have_no_more() -> None:
    class Full:
        """A plugin by which every queue has got all it may have."""

        name = "full"

        def overused(self, queue: object, allocated: object) -> bool:
            return True

    loaded = policy.load()
    tiers = [[Enabled(Full())], [Enabled(it) for it in loaded.framework.plugins]]
    framework = Framework(tiers, loaded.framework.actions)
    cluster = cluster_with(node("n", 9))
    tasks = {"free": (1, {}), "paid": (1, {"cpu": 1})}
    add_gang(cluster, "g", tasks, minimum=0)

    decisions = decide(cluster, framework)

    assert list(placed(decisions)) == ["g-free-0"]
    assert decisions.waiting == {"g-uid": "queue default has got all it may have"}
