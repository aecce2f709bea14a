"""The world over many sessions: events late, repeated and missing, binds that fail.

After each session the invariants hold, the decisions are the oracle's, and the arrays are
what a cluster built anew from the same objects would have.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random

import numpy as np
from hypothesis import given, settings, strategies as st

from hekla.domain.phases import PodPhase
from services.scheduler.core.cluster import Cluster
from services.scheduler.core.load import Load
from services.scheduler.core.objects import (
    EPOCH,
    Bind,
    Node,
    Pod,
    PodSpec,
    PriorityClass,
    amounts,
    limits,
)
from services.scheduler.core.session import Session
from services.scheduler.core.status import Status
from services.scheduler.framework import Framework
from services.scheduler.plugins.nodeorder import UNASKED, Unasked
from tests.support.oracle import Oracle
from tests.support.oracle_nodes import Rules, World, request
from tests.support.scheduling import (
    add_random_group,
    cluster_of,
    load_policy,
    policy_of,
    random_node,
    random_world,
)

RULES = Rules()
ANOTHER = load_policy(RULES).framework
"""The same, for a cluster that exists beside another: plugins keep what is on nodes."""


class Model:
    """What is true, and a cluster that hears of it."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.world = random_world(random)
        self.pods = {pod.uid: pod for pod in self.world.pods}
        self.in_flight: dict[str, str] = {}
        self.cluster = cluster_of(self.world, random)
        self.framework = policy_of(RULES).framework
        self.sessions = 0
        self.made = len(self.world.groups)

    # Events.

    def step(self) -> None:
        events = [
            self.confirm,
            self.confirm,
            self.confirm,
            self.fail_bind,
            self.fail_bind,
            self.hear_of_the_past,
            self.move_on,
            self.move_on,
            self.delete_pod,
            self.replace_pod,
            self.lose_or_gain_node,
            self.change_node,
            self.place_behind_our_back,
            self.new_group,
            self.change_group,
            self.remove_group,
            self.change_queue,
            self.change_priority_class,
        ]
        self.random.choice(events)()

    def tell(self, pod: Pod) -> None:
        self.pods[pod.uid] = pod
        self.cluster.upsert_pod(pod)

    def some_pod(self) -> Pod | None:
        return self.random.choice(list(self.pods.values())) if self.pods else None

    def confirm(self) -> None:
        """The binding is seen; it may be said to have failed before, or after."""
        for uid in self.random.sample(sorted(self.in_flight), min(2, len(self.in_flight))):
            node = self.in_flight.pop(uid)
            self.tell(replace(self.pods[uid], node=node))
            if self.random.random() < 0.2:
                self.cluster.forget(uid)

    def fail_bind(self) -> None:
        if self.in_flight:
            uid = self.random.choice(sorted(self.in_flight))
            del self.in_flight[uid]
            self.cluster.forget(uid)

    def hear_of_the_past(self) -> None:
        """An event older than the bind, from a slow watch: something else changed."""
        for uid in self.in_flight:
            self.tell(replace(self.pods[uid], labels={"at": str(self.random.random())}))

    def move_on(self) -> None:
        pod = self.some_pod()
        if pod is None or not pod.node:
            return
        if pod.phase is PodPhase.PENDING:
            self.tell(replace(pod, phase=PodPhase.RUNNING))
        elif pod.phase is PodPhase.RUNNING:
            phase = self.random.choice([PodPhase.SUCCEEDED, PodPhase.FAILED])
            self.tell(replace(pod, phase=phase))

    def delete_pod(self) -> None:
        pod = self.some_pod()
        if pod is None:
            return
        if pod.terminating or self.random.random() < 0.3:
            self.forget_pod(pod.uid)
        else:
            self.in_flight.pop(pod.uid, None)
            self.tell(replace(pod, terminating=True))

    def forget_pod(self, uid: str) -> None:
        del self.pods[uid]
        self.in_flight.pop(uid, None)
        self.cluster.remove_pod(uid)

    def replace_pod(self) -> None:
        """The controller makes a pod anew."""
        pod = self.some_pod()
        if pod is not None and pod.ours:
            self.forget_pod(pod.uid)
            self.tell(
                replace(
                    pod,
                    uid=f"{pod.uid}+",
                    node="",
                    phase=PodPhase.PENDING,
                    terminating=False,
                )
            )

    def lose_or_gain_node(self) -> None:
        nodes = {node.name: node for node in self.world.nodes}
        name = f"n{self.random.randint(0, 5)}"
        if nodes.pop(name, None):
            self.cluster.remove_node(name)
        else:
            nodes[name] = random_node(self.random, name)
            self.cluster.upsert_node(nodes[name])
        self.world.nodes = list(nodes.values())

    def change_node(self) -> None:
        if self.world.nodes:
            at = self.random.randrange(len(self.world.nodes))
            changed = random_node(self.random, self.world.nodes[at].name)
            self.world.nodes[at] = changed
            self.cluster.upsert_node(changed)

    def place_behind_our_back(self) -> None:
        if self.world.nodes:
            uid = f"foreign{self.random.random()}"
            node = self.random.choice(self.world.nodes).name
            request = {"cpu": self.random.randint(1, 3), "gpu": self.random.randint(0, 1)}
            self.tell(Pod(uid, "other", uid, PodSpec.of(request), node=node, ours=False))

    def new_group(self) -> None:
        world = World(nodes=self.world.nodes or [Node("n0", {})], queues=self.world.queues)
        add_random_group(self.random, world, self.made)
        self.made += 1
        pods = world.pods
        if self.random.random() < 0.5:
            generation = 1
            pods = [replace(pod, group_generation=generation) for pod in pods]
            world.groups = [replace(it, generation=generation) for it in world.groups]
        for pod in pods:
            self.tell(pod)
        for group in world.groups:
            self.world.groups.append(group)
            self.cluster.upsert_group(group)

    def change_group(self) -> None:
        if not self.world.groups:
            return
        at = self.random.randrange(len(self.world.groups))
        group = self.world.groups[at]
        changed = replace(
            group,
            min_member=max(0, group.min_member + self.random.choice([-1, 1])),
            queue=self.random.choice(self.world.queues).name,
            min_resources=amounts({"cpu": self.random.randint(1, 4)}),
        )
        self.world.groups[at] = changed
        self.cluster.upsert_group(changed)

    def remove_group(self) -> None:
        if self.world.groups and self.random.random() < 0.3:
            group = self.world.groups.pop(self.random.randrange(len(self.world.groups)))
            self.cluster.remove_group(group.uid)

    def change_queue(self) -> None:
        at = self.random.randrange(len(self.world.queues))
        capability = limits({"cpu": self.random.randint(2, 14)})
        queue = replace(self.world.queues[at], capability=capability)
        self.world.queues[at] = queue
        self.cluster.upsert_queue(queue)

    def change_priority_class(self) -> None:
        changed = PriorityClass("high", self.random.randint(0, 20))
        classes = [it for it in self.world.priority_classes if it.name != changed.name]
        self.world.priority_classes = [*classes, changed]
        self.cluster.upsert_priority_class(changed)

    # Sessions.

    def truth(self) -> World:
        """The objects, with what is in flight counted as there."""
        pods = [
            replace(it, node=self.in_flight.get(it.uid, it.node)) for it in self.pods.values()
        ]
        known = self.cluster.groups
        return World(
            nodes=self.world.nodes,
            queues=self.world.queues,
            priority_classes=self.world.priority_classes,
            pods=pods,
            groups=[replace(it, phase=known[it.uid].phase) for it in self.world.groups],
            held={
                uid: [
                    (hold.node, Pod("", "", "", hold.klass.spec)) for hold in it.holds.values()
                ]
                for uid, it in known.items()
                if it.holds and not self.framework.job_ready(it)
            },
            refused={uid for uid, it in known.items() if it.refusal is not None},
            deserted={uid for uid, it in known.items() if it.had_members and not it.members},
        )

    def session(self) -> None:
        self.sessions += 1
        before = self.truth()
        expected = Oracle(before, RULES).run()
        now = EPOCH + timedelta(seconds=self.sessions)

        decisions = Session(self.cluster, self.framework, now).run()

        assert not decisions.failures
        assert [(bind.pod_uid, bind.node) for bind in decisions.binds] == expected
        self.in_flight |= dict(decisions.binds)
        self.check_gangs(decisions.binds)
        self.check_nodes(before, decisions.binds)
        self.check_queues(before)
        self.check_arrays()
        if decisions.again_in != timedelta():
            again = Session(self.cluster, self.framework, now).run()
            assert not again.binds, "nothing changed, so nothing is left to decide"

    def check_gangs(self, binds: list[Bind]) -> None:
        """I1: a group that got a bind has its minimum."""
        after = Oracle(self.truth(), RULES)
        for bind in binds:
            for group in self.world.groups:
                if any(it.uid == bind.pod_uid for it in after.members(group.uid)):
                    assert after.ready(group.uid)

    def check_nodes(self, before: World, binds: list[Bind]) -> None:
        """I2: a node that got a pod has no more than it offers."""
        after = Oracle(self.truth(), RULES)
        for node in before.nodes:
            placed = [self.pods[bind.pod_uid] for bind in binds if bind.node == node.name]
            for name in {name for pod in placed for name in request(pod)}:
                assert after.used(node)[name] <= node.allocatable.get(name, 0)

    def check_queues(self, before: World) -> None:
        """I3: nothing that was lifted is above its limit, in any queue upwards."""
        earlier, after = Oracle(before, RULES), Oracle(self.truth(), RULES)
        for queue in self.world.queues:
            use, was = after.use_of(queue.name), earlier.use_of(queue.name)
            for name, limit in queue.capability:
                lifted = use.get(name, 0) > was.get(name, 0)
                assert not lifted or use[name] <= limit

    def check_arrays(self) -> None:
        """Moved by events or built anew: the same amounts and counts."""
        fresh = cluster_of(replace(self.truth(), pods=list(self.pods.values())))
        fresh.adopt(ANOTHER)
        for uid, node in self.in_flight.items():
            fresh.assume(uid, node)
        assert _amounts(self.cluster) == _amounts(fresh)
        assert _counts(self.cluster) == _counts(fresh)
        assert _unasked(self.cluster, self.framework) == _unasked(fresh, ANOTHER)


def _amounts(cluster: Cluster) -> object:
    nodes = cluster.nodes
    held: dict[str, dict[str, int]] = {}
    for group in cluster.groups.values():
        for hold in group.holds.values():
            if hold.node in nodes.rows:
                for name, amount in [*hold.klass.spec.request, ("pods", 1)]:
                    room = held.setdefault(hold.node, {})
                    room[name] = room.get(name, 0) + amount
    for name, row in nodes.rows.items():
        promised = {
            each: int(nodes.pipelined[row, column])
            for each, column in nodes.columns.items()
            if nodes.pipelined[row, column]
        }
        wanted = {k: v for k, v in held.get(name, {}).items() if v and k in nodes.columns}
        assert promised == wanted
    return {
        (name, each): (
            int(nodes.used[row, column]),
            int(nodes.releasing[row, column]),
            int(nodes.allocatable[row, column]),
        )
        for name, row in nodes.rows.items()
        for each, column in nodes.columns.items()
        # A resource that no node has any more, or had yet, is of no account.
        if nodes.total[column]
    }


def _unasked(cluster: Cluster, framework: Framework) -> object:
    [tracker] = framework.trackers
    assert isinstance(tracker, Unasked)
    load = Load(cluster.nodes, cluster.nodes.in_order)
    return [np.broadcast_to(tracker.of(load, it, 0), len(load.rows)).tolist() for it in UNASKED]


def _counts(cluster: Cluster) -> object:
    groups = {
        uid: (
            group.counts,
            {task: counts for task, counts in group.tasks.items() if any(counts)},
            sorted((t, it) for (t, _), bucket in group.pending.items() for it in bucket),
            sorted((klass.spec.request, pods) for klass, pods in group.allocated.items()),
        )
        for uid, group in cluster.groups.items()
    }
    queues = {
        queue.name: sorted((klass.spec.request, pods) for klass, pods in queue.counts.items())
        for queue in cluster.queues
    }
    classes = sum(klass.pods for klass in cluster.classes)
    known = {uid for uid, state in cluster.pods.items()}
    return groups, queues, classes, known


@given(seed=st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_sessions_over_changing_worlds_keep_every_promise(seed: int) -> None:
    model = Model(Random(seed))
    for _ in range(6):
        model.session()
        for _ in range(model.random.randint(0, 8)):
            model.step()
    model.session()


@given(seed=st.integers(0, 2**32))
@settings(max_examples=8, deadline=None)
def test_who_follows_again_believes_events_alone(seed: int) -> None:
    model = Model(Random(seed))
    model.session()
    model.step()
    model.session()

    model.cluster.follow()

    assert not model.cluster.assumed
    assert not model.cluster.holding
    assert all(it.status is not Status.BINDING for it in model.cluster.pods.values())
    model.in_flight.clear()
    model.check_arrays()
