"""What the oracle knows, and its nodes: where a pod fits, and is best. See ``oracle``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isqrt

from hekla.domain.phases import PodPhase
from hekla.domain.selector import Requirement
from services.scheduler.core.objects import (
    Group,
    Node,
    NodeTerm,
    Pod,
    PriorityClass,
    Queue,
    Taint,
)

UNIT = 1 << 20
CORDON = Taint("node.kubernetes.io/unschedulable")


@dataclass
class World:
    """Everything there is; ``Pod.node`` also names nodes that are only assumed."""

    nodes: list[Node] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    queues: list[Queue] = field(default_factory=list)
    priority_classes: list[PriorityClass] = field(default_factory=list)
    held: dict[str, list[tuple[str, Pod]]] = field(default_factory=dict)
    """By group uid: nodes on which room is kept for a pod."""
    refused: set[str] = field(default_factory=set)
    """Uids of groups that found no room: let in, they keep nobody else out."""
    deserted: set[str] = field(default_factory=set)
    """Uids of groups whose pods have all gone again: neither do they."""


@dataclass(frozen=True)
class Rules:
    """The configuration, as far as the oracle knows it."""

    actions: tuple[str, ...] = ("enqueue", "allocate", "backfill")
    plugins: tuple[str, ...] = ("priority", "gang", "predicates", "nodeorder", "binpack")
    binpack: int = 1
    weights: tuple[tuple[str, int], ...] = (("cpu", 1), ("memory", 1))
    nodeorder: tuple[tuple[str, int], ...] = (
        ("nodeaffinity", 2),
        ("leastrequested", 1),
        ("mostrequested", 0),
        ("balancedresource", 1),
        ("tainttoleration", 3),
    )


class Room:
    """Which nodes a pod may have, and which of them is the best."""

    def __init__(self, world: World, rules: Rules) -> None:
        self.rules = rules
        self.nodes = sorted(world.nodes, key=lambda node: node.name)
        self.pods = {pod.uid: pod for pod in world.pods}
        self.held = {uid: list(kept) for uid, kept in world.held.items()}
        self.at: dict[str, str] = {}
        self.use: dict[str, dict[str, int]] = {}
        for pod in world.pods:
            if pod.node and pod.phase not in (PodPhase.SUCCEEDED, PodPhase.FAILED):
                self.put(pod, pod.node)
        self.total: dict[str, int] = {}
        for node in self.nodes:
            self.total = plus(self.total, node.allocatable)

    def used(self, node: Node) -> dict[str, int]:
        return self.use.get(node.name, {})

    def put(self, pod: Pod, node: str) -> None:
        self.at[pod.uid] = node
        self.use[node] = plus(self.use.get(node, {}), request(pod))

    def take(self, pod: Pod) -> None:
        node = self.at.pop(pod.uid)
        self.use[node] = plus(self.use[node], {r: -n for r, n in request(pod).items()})

    def best(self, pod: Pod) -> Node | None:
        ranked = self.ranked(pod)
        return ranked[0] if ranked else None

    def ranked(self, pod: Pod) -> list[Node]:
        fitting = [node for node in self.nodes if self.fits(pod, node)]
        scores = {node.name: self.score(pod, node, fitting) for node in fitting}
        return sorted(fitting, key=lambda node: (-scores[node.name], node.name))

    def fits(self, pod: Pod, node: Node) -> bool:
        if pod.spec.features:
            return False
        taken = self.used(node)
        for kept in self.held.values():
            for name, other in kept:
                if name == node.name:
                    taken = plus(taken, request(other))
        room = all(
            taken.get(name, 0) + amount <= node.allocatable.get(name, 0)
            for name, amount in request(pod).items()
        )
        return room and ("predicates" not in self.rules.plugins or self.allowed(pod, node))

    def allowed(self, pod: Pod, node: Node) -> bool:
        if not node.ready or (node.unschedulable and not self.tolerates(pod, CORDON)):
            return False
        if any(node.labels.get(key) != value for key, value in pod.spec.node_selector):
            return False
        terms = pod.spec.node_terms
        if terms and not any(meets(node, term) for term in terms):
            return False
        return all(
            taint.effect == "PreferNoSchedule" or self.tolerates(pod, taint)
            for taint in node.taints
        )

    def tolerates(self, pod: Pod, taint: Taint) -> bool:
        for it in pod.spec.tolerations:
            if it.effect and it.effect != taint.effect:
                continue
            if it.operator == "Exists" and it.key in ("", taint.key):
                return True
            if it.operator == "Equal" and (it.key, it.value) == (taint.key, taint.value):
                return True
            numbers = it.value.isdigit() and taint.value.isdigit() and it.key == taint.key
            if it.operator == "Lt" and numbers and int(taint.value) < int(it.value):
                return True
            if it.operator == "Gt" and numbers and int(taint.value) > int(it.value):
                return True
        return False

    def score(self, pod: Pod, node: Node, fitting: list[Node]) -> int:
        total = 0
        if "binpack" in self.rules.plugins:
            total += self.binpack(pod, node)
        if "nodeorder" in self.rules.plugins:
            parts = {
                "nodeaffinity": self.preferred(pod, node, fitting),
                "leastrequested": self.requested(pod, node, most=False),
                "mostrequested": self.requested(pod, node, most=True),
                "balancedresource": self.balance(pod, node),
                "tainttoleration": self.taints(pod, node, fitting),
            }
            total += sum(weight * parts[part] for part, weight in self.rules.nodeorder) * UNIT
        return total

    def binpack(self, pod: Pod, node: Node) -> int:
        used = self.used(node)
        full, weights = 0, 0
        for name, weight in self.rules.weights:
            wanted, have = dict(pod.spec.request).get(name, 0), node.allocatable.get(name, 0)
            if wanted and (name in self.total or name in ("cpu", "memory")):
                weights += weight
                if used.get(name, 0) + wanted > have:
                    return 0
                full += weight * int((used.get(name, 0) + wanted) / have * UNIT)
        return full // weights * 100 * self.rules.binpack if weights else 0

    def preferred(self, pod: Pod, node: Node, fitting: list[Node]) -> int:
        def raw(each: Node) -> int:
            return sum(w for w, term in pod.spec.node_preferences if meets(each, term))

        return raw(node) * 100 // (max(map(raw, fitting)) or 1)

    def taints(self, pod: Pod, node: Node, fitting: list[Node]) -> int:
        def raw(each: Node) -> int:
            soft = [taint for taint in each.taints if taint.effect == "PreferNoSchedule"]
            return sum(not self.tolerates(pod, taint) for taint in soft)

        return 100 - raw(node) * 100 // (max(map(raw, fitting)) or 1)

    def requested(self, pod: Pod, node: Node, *, most: bool) -> int:
        """The mean over cores and memory; who asks for none counts as taking a little."""
        everyone = [pod, *(self.pods[uid] for uid, at in self.at.items() if at == node.name)]
        rates = []
        for name, unasked in (("cpu", 100), ("memory", 200 << 20)):
            have = node.allocatable.get(name, 0)
            if have > 0:
                wanted = sum(dict(it.spec.request).get(name, unasked) for it in everyone)
                wanted = min(wanted, have)
                rates.append((wanted if most else have - wanted) * 100 // have)
        return sum(rates) // len(rates) if rates else 0

    def balance(self, pod: Pod, node: Node) -> int:
        wanted = dict(pod.spec.request)
        names = ["cpu", "memory", *(["nvidia.com/gpu"] if "nvidia.com/gpu" in wanted else [])]
        if not any(name in wanted for name in names):
            return 0
        parts = []
        for name in names:
            have = node.allocatable.get(name, 0)
            if have > 0:
                use = self.used(node).get(name, 0) + wanted.get(name, 0)
                parts.append(int(min(use, have) / have * UNIT))
        if not parts:
            return 100
        spread = isqrt(len(parts) * sum(it * it for it in parts) - sum(parts) ** 2)
        return (len(parts) * UNIT - spread) * 100 // (len(parts) * UNIT)


def meets(node: Node, term: NodeTerm) -> bool:
    """Whether a node matches all that a term asks for, and it asks for something."""
    asked = [(it, node.labels.get(it.key)) for it in term.expressions]
    asked += [(it, node.name) for it in term.fields]
    return bool(asked) and all(holds(it, value) for it, value in asked)


def holds(requirement: Requirement, value: str | None) -> bool:
    """One condition on one value."""
    match requirement.operator.value:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case operator:
            if value is None or not value.isdigit():
                return False
            bound = int(min(requirement.values))
            return int(value) > bound if operator == "Gt" else int(value) < bound


def request(pod: Pod) -> dict[str, int]:
    """What a pod takes of its node and queue."""
    return {**dict(pod.spec.request), "pods": 1}


def plus(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """The sum, resource by resource."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in {*one, *other}}
