"""The scheduling policy written naively: one pod at a time, everything asked anew.

Plain lists, dicts and integers; no arrays, no classes worked out at once, nothing kept
from one pod to the next. It shares no code with the core but the input objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hekla.domain.phases import PodGroupPhase, PodPhase, QueueState
from services.scheduler.core.objects import (
    Pod,
)
from tests.support.oracle_nodes import UNIT, Room, Rules, World, plus, request


class Oracle(Room):
    """Decides one session over a world."""

    def __init__(self, world: World, rules: Rules) -> None:
        super().__init__(world, rules)
        self.groups = {group.uid: group for group in world.groups}
        self.phase = {group.uid: group.phase for group in world.groups}
        self.queues = {queue.name: queue for queue in world.queues}
        self.priorities = {it.name: it for it in world.priority_classes}
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
