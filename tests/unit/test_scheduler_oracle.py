"""The core decides what the naive, pod-by-pod oracle decides: the same pods, nodes, order."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given, settings, strategies as st

from hekla.domain.phases import PodGroupPhase
from services.scheduler import policy
from services.scheduler.core.objects import EPOCH, Decisions, Group, Node, Pod, PodSpec, Queue
from services.scheduler.core.session import Session
from services.scheduler.framework import Enabled, Framework
from tests.support.oracle import Oracle
from tests.support.oracle_nodes import Rules, World
from tests.support.scheduling import cluster_of, policy_of, random_rules, random_world

SEEDS = st.integers(0, 2**32)


def decide(world: World, rules: Rules, random: Random | None = None) -> Decisions:
    cluster = cluster_of(world, random)
    return Session(cluster, policy_of(rules).framework, EPOCH, uid="s").run()


def pairs(decisions: Decisions) -> list[tuple[str, str]]:
    assert not decisions.failures
    return [(bind.pod_uid, bind.node) for bind in decisions.binds]


@given(seed=SEEDS)
@settings(max_examples=120, deadline=None)
def test_the_core_equals_the_oracle_pod_for_pod(seed: int) -> None:
    for each in range(seed, seed + 6):
        random = Random(each)
        world, rules = random_world(random), random_rules(random)

        assert pairs(decide(world, rules, random)) == Oracle(world, rules).run(), each


@given(seed=SEEDS)
@settings(max_examples=40, deadline=None)
def test_equal_input_gives_equal_answers_in_whatever_order_it_came(seed: int) -> None:
    world = random_world(Random(seed))
    first = decide(world, Rules())
    second = decide(world, Rules(), Random(seed + 1))

    assert second.binds == first.binds
    assert sorted(second.reports, key=_uid) == sorted(first.reports, key=_uid)


def _uid(report: object) -> str:
    return str(getattr(report, "uid", ""))


@given(seed=SEEDS)
@settings(max_examples=150, deadline=None)
def test_a_gang_that_any_arrangement_places_is_placed(seed: int) -> None:
    """Nodes are cut to the size of a hidden arrangement, so that few others fit."""
    random = Random(seed)
    world = tight_world(random)

    decided = pairs(decide(world, Rules(), random))

    assert len(decided) == len(world.pods)
    assert decided == Oracle(world, Rules()).run()


def tight_world(random: Random) -> World:
    """One gang of up to 4 classes and 8 pods that fills its nodes to the last core."""
    kinds = random.randint(2, 4)
    specs = [
        PodSpec.of({"cpu": random.randint(1, 9), "memory": random.randint(1, 9)}, priority=at)
        for at in range(kinds)
    ]
    world = World(queues=[Queue("q")])
    room = [[0, 0] for _ in range(random.randint(2, 4))]
    for at in range(random.randint(kinds, 8)):
        spec = random.choice(specs)
        space = random.choice(room)
        space[0] += dict(spec.request)["cpu"]
        space[1] += dict(spec.request)["memory"]
        pod = Pod(f"u{at}", "ns", f"p{at}", spec, group="g", index=at, task=str(spec.priority))
        world.pods.append(pod)
    for at, (cpu, memory) in enumerate(room):
        spare = random.choice([0, 0, 1])
        amounts = {"cpu": cpu + spare, "memory": memory, "pods": 20}
        world.nodes.append(Node(f"n{at}", amounts))
    world.groups.append(
        Group(
            "g-uid",
            "ns",
            "g",
            queue="q",
            min_member=len(world.pods),
            phase=PodGroupPhase.INQUEUE,
        )
    )
    return world


@given(seed=SEEDS)
@settings(max_examples=50, deadline=None)
def test_pods_beyond_the_minimum_are_shared_out_among_queues_as_the_oracle_does(
    seed: int,
) -> None:
    random = Random(seed)
    world = World(
        nodes=[
            Node(f"n{at}", {"cpu": random.randint(5, 30), "memory": 40, "pods": 99})
            for at in range(random.randint(1, 4))
        ],
        queues=[
            Queue(f"q{at}", parent="q0" if at == 2 and random.random() < 0.3 else "")
            for at in range(3)
        ],
    )
    for at in range(random.randint(2, 5)):
        uid = f"g{at}"
        queue = f"q{random.randint(0, 2)}"
        least = random.randint(0, 1)
        world.groups.append(
            Group(uid, "ns", uid, queue=queue, min_member=least, phase=PodGroupPhase.INQUEUE)
        )
        spec = PodSpec.of({"cpu": random.randint(1, 3), "memory": random.randint(0, 2)})
        for index in range(random.randint(1, 12)):
            name = f"{uid}-{index}"
            world.pods.append(Pod(name, "ns", name, spec, group=uid, index=index))

    assert pairs(decide(world, Rules(), random)) == Oracle(world, Rules()).run()


@given(seed=SEEDS)
@settings(max_examples=15, deadline=None)
def test_large_gangs_go_where_the_oracle_puts_them(seed: int) -> None:
    random = Random(seed)
    world = World(queues=[Queue("q")])
    for at in range(random.randint(8, 25)):
        cpu = random.choice([8, 16, 32])
        amounts = {"cpu": cpu, "memory": cpu * random.choice([1, 2]), "pods": 30}
        world.nodes.append(Node(f"n{at:02d}", amounts))
        spec = PodSpec.of({"cpu": random.randint(1, cpu // 2), "memory": 1})
        world.pods.append(Pod(f"f{at}", "x", f"f{at}", spec, node=f"n{at:02d}", ours=False))
    for at in range(3):
        uid = f"g{at}"
        pods, kinds = random.randint(20, 60), random.randint(1, 3)
        # The oracle tries every arrangement of several kinds: only few of those, then.
        least = random.choice([pods, pods // 2]) if kinds == 1 else random.randint(0, 3)
        world.groups.append(
            Group(uid, "ns", uid, queue="q", min_member=least, phase=PodGroupPhase.INQUEUE)
        )
        specs = [
            PodSpec.of({"cpu": random.randint(1, 3), "memory": random.randint(0, 4)})
            for _ in range(kinds)
        ]
        for index in range(pods):
            name = f"{uid}-{index:02d}"
            spec = random.choice(specs)
            world.pods.append(Pod(name, "ns", name, spec, group=uid, index=index))

    assert pairs(decide(world, Rules(), random)) == Oracle(world, Rules()).run()


def test_a_task_of_5000_replicas_is_one_class() -> None:
    """Names, indices, ages and labels differ; nothing that is enabled reads them."""
    world = World(nodes=[Node("n", {"cpu": 10**7, "pods": 10**4})], queues=[Queue("default")])
    cluster = cluster_of(world)
    cluster.adopt(policy.load().framework)
    cluster.upsert_group(Group("g", "ns", "g", min_member=5000, phase=PodGroupPhase.INQUEUE))
    for index in range(5000):
        name = f"job-w-{index}"
        cluster.upsert_pod(
            Pod(
                f"{name}-uid",
                "ns",
                name,
                PodSpec.of({"cpu": 100, "memory": 1 << 20}, node_selector={}),
                group="g",
                task="w",
                index=index,
                labels={"volcano.sh/task-index": str(index), "host": name},
            )
        )

    assert len(cluster.classes) == 1


class ReadsZones:
    """A plugin that looks at one label of pods."""

    name = "reads-zones"
    reads_labels = ("zone",)


def test_only_what_enabled_plugins_read_makes_a_class() -> None:
    plain = policy.load('actions: "allocate"\ntiers:\n- plugins: [{name: gang}]').framework
    zones = Framework([[Enabled(ReadsZones())]])
    selecting = policy.load().framework
    cluster = cluster_of(World())
    base = Pod("a", "ns", "a", PodSpec.of({"cpu": 1}), labels={"zone": "1", "x": "1"})
    cluster.upsert_pod(base)
    cluster.upsert_pod(replace(base, uid="b", labels={"zone": "2", "x": "2"}))
    other = PodSpec.of({"cpu": 1}, node_selector={"disk": "ssd"})
    cluster.upsert_pod(replace(base, uid="c", spec=other))

    counts = []
    for framework in (plain, zones, selecting):
        cluster.adopt(framework)
        counts.append(len(cluster.classes))

    assert counts == [1, 2, 2]
