"""How fast the scheduling core is: ``python -m tests.benchmarks.bench_core [--scale 0.1]``.

Through the same ``Session.run`` the service uses, from decoded events to decided binds;
JSON and HTTP are not in it. The same run checks the core against the per-pod oracle.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from time import perf_counter, process_time
from typing import TypeVar

from hekla.domain.phases import PodGroupPhase, PodPhase
from services.scheduler import policy
from services.scheduler.core.cluster import Cluster
from services.scheduler.core.objects import EPOCH, Group, Node, Pod, PodSpec, Queue
from services.scheduler.core.session import Session
from services.scheduler.framework import Framework
from tests.benchmarks.figures import Figure, publish
from tests.support.oracle import Oracle
from tests.support.oracle_nodes import Rules, World

Result = TypeVar("Result")

GI = 1 << 30
REPEATS = 3
"""The best of so many runs counts."""
SHAPES = ((16, 64), (32, 128), (48, 96), (64, 256), (96, 384))
"""Cores and GiB of the kinds of nodes."""


@dataclass(frozen=True)
class Work:
    """One line of the table."""

    gangs: int
    pods: int
    """A gang's."""
    classes: int
    floor: float
    """Pods a second."""
    aim: float

    @property
    def name(self) -> str:
        """As the table has it."""
        kinds = "1 class" if self.classes == 1 else f"{self.classes} classes"
        return f"place {self.gangs:,} gangs x {self.pods:,} pods, {kinds}"


WORKS = (
    Work(10, 5000, 1, 50_000, 200_000),
    Work(10, 5000, 100, 15_000, 60_000),
    Work(1000, 3, 1, 5_000, 20_000),
    Work(3, 1000, 1, 5_000, 20_000),
)
NODES = 5000
SMALLER = 50
"""The oracle's part is so much smaller."""


@dataclass(frozen=True)
class Size:
    """How much of everything."""

    nodes: int
    gangs: int
    pods: int
    """A gang's pods."""


def build(size: Size, classes: int) -> tuple[World, list[Pod]]:
    """The world before, and the pods that come.

    Ten pods of others take 30 % of each node. Every gang has pods of every class.
    """
    world = World(queues=[Queue("default")])
    for at in range(size.nodes):
        cores, memory = SHAPES[at % len(SHAPES)]
        name = f"node-{at:05d}"
        world.nodes.append(
            Node(name, {"cpu": cores * 1000, "memory": memory * GI, "pods": 110})
        )
        spec = PodSpec.of({"cpu": cores * 30, "memory": memory * GI * 3 // 100})
        for other in range(10):
            uid = f"other-{at}-{other}"
            phase = PodPhase.RUNNING
            world.pods.append(Pod(uid, "others", uid, spec, node=name, phase=phase, ours=False))
    specs = [
        PodSpec.of({"cpu": 1000 + 20 * at, "memory": 2 * GI + at % 7 * GI // 4})
        for at in range(classes)
    ]
    pods = []
    for gang in range(size.gangs):
        uid = f"gang-{gang}"
        world.groups.append(
            Group(
                uid,
                "default",
                uid,
                min_member=size.pods,
                created=EPOCH + timedelta(seconds=gang),
                phase=PodGroupPhase.INQUEUE,
            )
        )
        for at in range(size.pods):
            task, index = at % classes, at // classes
            name = f"{uid}-t{task}-{index}"
            pods.append(
                Pod(
                    f"{name}-uid",
                    "default",
                    name,
                    specs[task],
                    group=uid,
                    group_uid=uid,
                    task=f"t{task}",
                    index=index,
                    labels={"volcano.sh/task-index": str(index)},
                )
            )
    return world, pods


def cluster_of(world: World) -> Cluster:
    """The cluster before the pods come."""
    cluster = Cluster()
    for node in world.nodes:
        cluster.upsert_node(node)
    for queue in world.queues:
        cluster.upsert_queue(queue)
    for pod in world.pods:
        cluster.upsert_pod(pod)
    return cluster


def place(
    cluster: Cluster, framework: Framework, world: World, pods: list[Pod]
) -> list[tuple[str, str]]:
    """From decoded events to binds."""
    for group in world.groups:
        cluster.upsert_group(group)
    for pod in pods:
        cluster.upsert_pod(pod)
    decisions = Session(cluster, framework, EPOCH).run()
    return [(bind.pod_uid, bind.node) for bind in decisions.binds]


def timed(what: Callable[[], Result], *, collect: bool = True) -> tuple[float, Result]:
    """Seconds, and what came of it."""
    if collect:
        gc.collect()
    start = perf_counter()
    result = what()
    return perf_counter() - start, result


def later_seconds(
    cluster: Cluster, framework: Framework, pods: list[Pod], binds: list[tuple[str, str]]
) -> tuple[float, float]:
    """A session once all that was placed runs: with nothing to do, and after one event."""
    nodes = dict(binds)
    running = [replace(it, node=nodes[it.uid], phase=PodPhase.RUNNING) for it in pods]
    for pod in running:
        cluster.upsert_pod(pod)
    Session(cluster, framework, EPOCH).run()
    idle, stirred = [], []
    for pod in running[:21]:
        idle.append(timed(lambda: Session(cluster, framework, EPOCH).run(), collect=False)[0])
        cluster.upsert_pod(replace(pod, phase=PodPhase.SUCCEEDED))
        stirred.append(
            timed(lambda: Session(cluster, framework, EPOCH).run(), collect=False)[0]
        )
    return statistics.median(idle), statistics.median(stirred)


def measure(work: Work, scale: float, framework: Framework) -> list[Figure]:
    """The figures of one line; after the first also those of idle sessions."""
    size = Size(
        round(NODES * scale),
        max(1, round(work.gangs * scale)) if work.gangs > 100 else work.gangs,
        work.pods if work.pods < 100 else max(work.classes, round(work.pods * scale)),
    )
    seconds = processor = float("inf")
    for _ in range(REPEATS):
        world, pods = build(size, work.classes)
        cluster = cluster_of(world)
        Session(cluster, framework, EPOCH).run()
        before = process_time()
        once, binds = timed(partial(place, cluster, framework, world, pods))
        processor = min(processor, process_time() - before)
        seconds = min(seconds, once)
    complete = len(binds) == len(pods)
    ratio, equal = beside_the_oracle(work, framework)
    figures = [
        Figure(
            work.name,
            len(binds) / seconds,
            "pods/s",
            work.floor,
            work.aim,
            more_is_better=True,
            oracle=ratio,
            equal=equal and complete,
            processor_seconds=processor,
            note="" if complete else f"only {len(binds):,} of {len(pods):,} placed",
        )
    ]
    if work is WORKS[0]:
        idle, stirred = later_seconds(cluster, framework, pods, binds)
        figures += [
            Figure(f"idle session, {len(pods):,} pods running", idle * 1e3, "ms", 10, 2),
            Figure("session after an event there", stirred * 1e3, "ms", 10, 2),
        ]
    return figures


def beside_the_oracle(work: Work, framework: Framework) -> tuple[float, bool]:
    """How many times as fast as the oracle, and whether both decided the same."""
    few = Size(
        NODES // SMALLER,
        max(1, work.gangs // SMALLER) if work.gangs > 100 else work.gangs,
        work.pods if work.pods < 100 else max(work.classes, work.pods // SMALLER),
    )
    world, pods = build(few, work.classes)
    cluster = cluster_of(world)
    Session(cluster, framework, EPOCH).run()
    fast, got = timed(partial(place, cluster, framework, world, pods))
    world.pods += pods
    slow, want = timed(Oracle(world, Rules()).run)
    return slow / fast, got == want


def main() -> int:
    """Run all; 1 where a floor or the comparison is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="part of the full size")
    scale = parser.parse_args().scale
    loaded = policy.load()
    tiers = " | ".join(", ".join(tier) for tier in loaded.tiers)
    sys.stdout.write(f"plugins: {tiers}; {round(NODES * scale):,} nodes; no topology yet\n")
    figures = [figure for work in WORKS for figure in measure(work, scale, loaded.framework)]
    return 0 if publish("core", figures, scale=scale) else 1


if __name__ == "__main__":
    sys.exit(main())
