"""The scheduling policy written naively: one pod at a time, everything asked anew.

Plain lists, dicts and integers; no arrays, no classes worked out at once, nothing kept
from one pod to the next. It shares no code with the core but the input objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isqrt

from hekla.domain.phases import PodGroupPhase, PodPhase, QueueState
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


class Oracle:
    """Decides one session over a world."""

    def __init__(self, world: World, rules: Rules) -> None:
        self.rules = rules
        self.nodes = sorted(world.nodes, key=lambda node: node.name)
        self.pods = {pod.uid: pod for pod in world.pods}
        self.groups = {group.uid: group for group in world.groups}
        self.phase = {group.uid: group.phase for group in world.groups}
        self.queues = {queue.name: queue for queue in world.queues}
        self.priorities = {it.name: it for it in world.priority_classes}
        self.held = {uid: list(kept) for uid, kept in world.held.items()}
        self.at: dict[str, str] = {}
        self.use: dict[str, dict[str, int]] = {}
        for pod in world.pods:
            if pod.node and pod.phase not in (PodPhase.SUCCEEDED, PodPhase.FAILED):
                self.put(pod, pod.node)
        self.total: dict[str, int] = {}
        for node in self.nodes:
            self.total = plus(self.total, node.allocatable)
        self.refused = set(world.refused)
        self.deserted = world.deserted
        self.given_up: set[str] = set()
        self.binds: list[tuple[str, str]] = []

    def run(self) -> list[tuple[str, str]]:
        """(pod uid, node), in the order of the decisions."""
        for action in self.rules.actions:
            getattr(self, action)()
        return self.binds

    # Enqueue.

    def enqueue(self) -> None:
        waiting = {uid for uid, phase in self.phase.items() if phase is PodGroupPhase.PENDING}
        while waiting:
            queue = min({self.groups[uid].queue for uid in waiting}, key=self.queue_order)
            uid = min(
                (uid for uid in waiting if self.groups[uid].queue == queue), key=self.job_order
            )
            waiting.discard(uid)
            if self.queue_serves(uid) and self.may_enter(uid):
                self.phase[uid] = PodGroupPhase.INQUEUE
                self.refused.discard(uid)

    def may_enter(self, uid: str) -> bool:
        for above in self.line(self.groups[uid].queue):
            promised = self.use_of(above)
            for other, group in self.groups.items():
                let_in = self.phase[other] is PodGroupPhase.INQUEUE
                promise = let_in and other not in self.refused | self.deserted
                if promise and above in self.line(group.queue):
                    promised = plus(promised, self.still_wanted(other))
            wanted = self.still_wanted(uid)
            for name, limit in self.queues[above].capability if above in self.queues else ():
                known = name in self.total or name in ("cpu", "memory", "pods")
                if (
                    known
                    and wanted.get(name, 0)
                    and promised.get(name, 0) + wanted[name] > limit
                ):
                    return False
        return True

    def still_wanted(self, uid: str) -> dict[str, int]:
        wanted = dict(self.groups[uid].min_resources or ())
        for pod in self.members(uid):
            if self.allocated(pod):
                for name, amount in pod.spec.request:
                    if name in wanted:
                        wanted[name] -= amount
        return {name: amount for name, amount in wanted.items() if amount > 0}

    # Allocate and backfill.

    def allocate(self) -> None:
        jobs = [uid for uid in self.groups if self.can_be_placed(uid)]
        self.serve([uid for uid in jobs if self.started(uid) and not self.ready(uid)], cut=True)
        self.serve([uid for uid in jobs if uid not in self.given_up])

    def backfill(self) -> None:
        jobs = [
            uid
            for uid in self.groups
            if uid not in self.given_up and self.can_be_placed(uid) and self.ready(uid)
        ]
        self.serve(jobs, best_effort=True)

    def can_be_placed(self, uid: str) -> bool:
        let_in = self.phase[uid] is not PodGroupPhase.PENDING
        let_in = let_in or "enqueue" not in self.rules.actions
        return let_in and bool(self.pending(uid)) and self.queue_serves(uid) and self.valid(uid)

    def serve(self, jobs: list[str], *, cut: bool = False, best_effort: bool = False) -> None:
        left_out: set[str] = set()
        jobs = list(jobs)
        while jobs:
            queue = min({self.groups[uid].queue for uid in jobs}, key=self.queue_order)
            uid = min(
                (uid for uid in jobs if self.groups[uid].queue == queue), key=self.job_order
            )
            if not self.ready(uid):
                if not self.place_minimum(uid):
                    self.given_up.add(uid)
                    jobs.remove(uid)
                elif cut:
                    jobs.remove(uid)
                continue
            if cut:
                jobs.remove(uid)
                continue
            pods = [
                pod
                for pod in self.in_order(self.pending(uid))
                if pod.uid not in left_out and (not best_effort or not pod.spec.request)
            ]
            if not pods:
                jobs.remove(uid)
                continue
            pod = pods[0]
            node = self.best(pod) if self.queue_takes(uid, [pod]) else None
            if node is None:
                alike = {it.uid for it in pods if self.kind(it) == self.kind(pod)}
                left_out |= alike
            else:
                self.put(pod, node.name)
                self.binds.append((pod.uid, node.name))

    def place_minimum(self, uid: str) -> bool:
        pods = self.minimum(uid)
        if not pods or not self.queue_takes(uid, pods):
            return False
        kinds: dict[object, list[Pod]] = {}
        for pod in self.in_order(pods):
            kinds.setdefault(self.kind(pod), []).append(pod)
        kept = self.held.pop(uid, [])
        by_task = list(kinds.values())
        by_size = sorted(by_task, key=lambda kind: -self.size(kind[0]))
        placed = (
            self.one_by_one([pod for kind in by_task for pod in kind])
            or self.one_by_one([pod for kind in by_size for pod in kind])
            # Pods of one kind have no better order: what fits, the first try has found.
            or (len(kinds) > 1 and self.any_way([it for kind in by_task for it in kind], set()))
        )
        if not placed:
            if kept:
                self.held[uid] = kept
            return False
        self.binds += placed
        return True

    def one_by_one(self, pods: list[Pod]) -> list[tuple[str, str]] | None:
        placed: list[tuple[str, str]] = []
        for pod in pods:
            node = self.best(pod)
            if node is None:
                for other, _ in placed:
                    self.take(self.pods[other])
                return None
            self.put(pod, node.name)
            placed.append((pod.uid, node.name))
        return placed

    def any_way(self, pods: list[Pod], dead: set[object]) -> list[tuple[str, str]] | None:
        if not pods:
            return []
        state = (len(pods), *(tuple(sorted(self.used(it).items())) for it in self.nodes))
        if state in dead:
            return None
        pod = pods[0]
        for node in self.ranked(pod):
            self.put(pod, node.name)
            rest = self.any_way(pods[1:], dead)
            if rest is not None:
                return [(pod.uid, node.name), *rest]
            self.take(pod)
        dead.add(state)
        return None

    # Jobs.

    def members(self, uid: str) -> list[Pod]:
        group = self.groups[uid]
        return [
            pod
            for pod in self.pods.values()
            if pod.ours
            and (pod.namespace, pod.group) == (group.namespace, group.name)
            and pod.group_uid in ("", uid)
            and group.generation >= pod.group_generation
        ]

    def pending(self, uid: str) -> list[Pod]:
        return [pod for pod in self.members(uid) if self.is_pending(pod) and not pod.gated]

    def is_pending(self, pod: Pod) -> bool:
        return pod.phase is PodPhase.PENDING and pod.uid not in self.at and not pod.terminating

    def allocated(self, pod: Pod) -> bool:
        live = pod.phase in (PodPhase.PENDING, PodPhase.RUNNING)
        return live and not pod.terminating and pod.uid in self.at

    def counts(self, pod: Pod) -> bool:
        succeeded = pod.phase is PodPhase.SUCCEEDED and not pod.terminating
        return succeeded or self.allocated(pod)

    def ready_count(self, uid: str, task: str | None = None) -> int:
        return sum(self.counts(pod) for pod in self.members(uid) if task in (None, pod.task))

    def task_minimum(self, uid: str) -> dict[str, int]:
        group = self.groups[uid]
        tasks = dict(group.min_task_member)
        return tasks if group.min_member >= sum(tasks.values()) else {}

    def ready(self, uid: str) -> bool:
        if "gang" not in self.rules.plugins:
            return True
        return self.ready_count(uid) >= self.groups[uid].min_member and all(
            self.ready_count(uid, task) >= least
            for task, least in self.task_minimum(uid).items()
        )

    def valid(self, uid: str) -> bool:
        if "gang" not in self.rules.plugins:
            return True
        able = [pod for pod in self.members(uid) if self.counts(pod) or self.is_pending(pod)]
        return len(able) >= self.groups[uid].min_member and all(
            sum(pod.task == task for pod in able) >= least
            for task, least in self.task_minimum(uid).items()
        )

    def started(self, uid: str) -> bool:
        return self.ready_count(uid) > 0 or uid in self.held

    def minimum(self, uid: str) -> list[Pod]:
        lacking = self.groups[uid].min_member - self.ready_count(uid)
        pods = self.in_order(self.pending(uid))
        chosen: list[Pod] = []
        for task, least in self.task_minimum(uid).items():
            short = max(0, least - self.ready_count(uid, task))
            of_task = [pod for pod in pods if pod.task == task][:short]
            if len(of_task) < short:
                return []
            chosen += of_task
        others = [pod for pod in pods if pod not in chosen]
        more = max(0, lacking - len(chosen))
        return [] if len(others) < more else chosen + others[:more]

    # Orders.

    def job_order(self, uid: str) -> tuple[object, ...]:
        group = self.groups[uid]
        keys = {"priority": -self.priority(group.priority_class), "gang": int(self.ready(uid))}
        asked = [keys[name] for name in self.rules.plugins if name in keys]
        return (*asked, group.created, uid)

    def in_order(self, pods: Iterable[Pod]) -> list[Pod]:
        return sorted(pods, key=self.task_order)

    def task_order(self, pod: Pod) -> tuple[object, ...]:
        first: tuple[object, ...] = ()
        if "priority" in self.rules.plugins:
            named = self.priority(pod.spec.priority_class)
            first = (-(named if pod.spec.priority is None else pod.spec.priority),)
        index = (1, 0) if pod.index is None else (0, pod.index)
        return (*first, index, pod.created, pod.name, pod.uid)

    def priority(self, name: str) -> int:
        if name in self.priorities:
            return self.priorities[name].value
        return max(
            (it.value for it in self.priorities.values() if it.global_default), default=0
        )

    def queue_order(self, name: str) -> tuple[object, ...]:
        queue = self.queues.get(name)
        return (-(queue.priority if queue else 0), self.share(self.use_of(name)), name)

    def share(self, use: Mapping[str, int]) -> int:
        parts = (use.get(name, 0) * UNIT // have for name, have in self.total.items() if have)
        return max(parts, default=0)

    def size(self, pod: Pod) -> int:
        return self.share(request(pod))

    def kind(self, pod: Pod) -> object:
        spec = pod.spec
        read: list[object] = [spec.request, spec.priority, spec.priority_class, spec.features]
        if "predicates" in self.rules.plugins:
            read += [spec.node_selector, spec.node_terms, spec.tolerations]
        if "nodeorder" in self.rules.plugins:
            read += [spec.node_preferences, spec.tolerations]
        return tuple(read)

    # Queues.

    def queue_serves(self, uid: str) -> bool:
        queue = self.queues.get(self.groups[uid].queue)
        return queue is not None and (queue.state is QueueState.OPEN or self.started(uid))

    def line(self, name: str) -> list[str]:
        line: list[str] = []
        while name not in line:
            line.append(name)
            if name not in self.queues or name == "root":
                break
            above = self.queues[name].parent or "root"
            if above not in self.queues:
                break
            name = above
        return line

    def use_of(self, name: str) -> dict[str, int]:
        use: dict[str, int] = {}
        for uid, group in self.groups.items():
            if name in self.line(group.queue):
                for pod in self.members(uid):
                    if self.allocated(pod):
                        use = plus(use, request(pod))
        return use

    def queue_takes(self, uid: str, pods: list[Pod]) -> bool:
        more: dict[str, int] = {}
        for pod in pods:
            more = plus(more, request(pod))
        for name in self.line(self.groups[uid].queue):
            use = self.use_of(name)
            for resource, limit in self.queues[name].capability if name in self.queues else ():
                extra = more.get(resource, 0)
                if extra and use.get(resource, 0) + extra > limit:
                    return False
        return True

    # Nodes.

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
