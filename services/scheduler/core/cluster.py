"""One persistent world, moved by events.

Nothing is copied for a session, and an event costs what it changes. A pod that a session
placed is **assumed** there until an event names its node, or the bind is said to have
failed; events older than that, which name none, never undo it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from services.scheduler.core.adopted import Adopted
from services.scheduler.core.classes import ClassTable, PodClass
from services.scheduler.core.groups import GroupState, Hold, PodState
from services.scheduler.core.objects import Group, Node, Pod, PriorityClass, Queue
from services.scheduler.core.occupancy import Occupancy
from services.scheduler.core.priorities import Priorities
from services.scheduler.core.queues import QueueTable
from services.scheduler.core.status import ALLOCATED, ON_NODE, Status, status_of


class Cluster:
    """Nodes, pods, groups, queues and priority classes, as far as events told of them."""

    def __init__(self) -> None:
        self.occupancy = Occupancy()
        self.nodes = self.occupancy.nodes
        self.classes = ClassTable()
        self.queues = QueueTable()
        self.pods: dict[str, PodState] = {}
        self.groups: dict[str, GroupState] = {}
        self.waiting: dict[str, GroupState] = {}
        """Groups that a session has to look at, by uid: not let in, or with pods to place."""
        self.changed: dict[str, GroupState] = {}
        """Groups whose status may have changed since a session last told of it, by uid."""
        self.settled_at = -1
        """``room`` when a session last left nothing to decide; -1: something was left."""
        self.reword: dict[str, GroupState] = {}
        """Groups of which only the wording changed; told at ``reword_at``."""
        self.reword_at: datetime | None = None
        self.holding: dict[str, GroupState] = {}
        """Groups for which room is kept, by uid."""
        self.assumed: dict[str, str] = {}
        """Node by pod uid."""
        self._adopted: Adopted | None = None
        self._priorities = Priorities()
        self._named: dict[tuple[str, str], GroupState] = {}
        self._held: dict[tuple[str, str], dict[str, PodState]] = {}

    @property
    def room(self) -> int:
        """Moves whenever a group that was refused for good reason may be tried again."""
        return self.occupancy.room

    def adopt(self, plugins: Adopted) -> None:
        """Sort pods by what these plugins read, and keep their trackers."""
        if plugins is self._adopted:
            return
        self._adopted = plugins
        if self.classes.read(plugins.reads, plugins.reads_labels):
            for state in list(self.pods.values()):
                self._remove(state)
                state.klass = self._class_of(state.pod)
                self._add(state)
            for group in self.holding.values():
                for uid, hold in group.holds.items():
                    self.occupancy.release(uid)
                    group.holds[uid] = Hold(hold.node, self.pods[uid].klass)
                    self.occupancy.hold(uid, group.holds[uid])
        self.occupancy.track(plugins.trackers)
        for klass in self.classes:
            klass.cache = None
        self.occupancy.room += 1

    # Nodes.

    def upsert_node(self, node: Node) -> None:
        """A node is there, or changed."""
        if self.occupancy.upsert_node(node):
            self.occupancy.measure(self.classes)

    def remove_node(self, name: str) -> None:
        """A node is gone."""
        self.occupancy.remove_node(name)

    # Pods.

    def upsert_pod(self, pod: Pod) -> None:
        """A pod is there, or changed."""
        state = self.pods.get(pod.uid)
        if state is None:
            if pod.ours or pod.node:
                state = PodState(pod, self._class_of(pod), status_of(pod))
                self.pods[pod.uid] = state
                self._confirm(state)
                self._add(state)
        elif pod != state.pod:
            self._change_pod(state, pod)

    def remove_pod(self, uid: str) -> None:
        """A pod is gone."""
        self.assumed.pop(uid, None)
        state = self.pods.pop(uid, None)
        if state is not None:
            self._unhold(state)
            self._remove(state)
            self.classes.leave(state.klass)

    def assume(self, pod_uid: str, node: str) -> None:
        """Count a pod as placed, though no event has said so yet.

        The pod need not be known yet. One that an event has placed stays where it is.
        """
        state = self.pods.get(pod_uid)
        if state is not None and state.status is not Status.PENDING:
            return
        self.assumed[pod_uid] = node
        if state is not None:
            self._unhold(state)
            self._remove(state)
            self._confirm(state)
            self._add(state)

    def forget(self, pod_uid: str) -> None:
        """The bind of an assumed pod failed, or was never sent: it is pending again.

        If that cuts its gang, the room is kept for it, unless no member is left.
        """
        node = self.assumed.pop(pod_uid, None)
        state = self.pods.get(pod_uid)
        if node is None or state is None or state.status is not Status.BINDING:
            return
        group = state.group
        self._remove(state)
        state.status, state.node = status_of(state.pod), ""
        self._add(state)
        if group is None:
            return
        if group.ready_members == 0:
            self.release(group)
        elif self._adopted is not None and not self._adopted.job_ready(group):
            group.holds[pod_uid] = Hold(node, state.klass)
            self.occupancy.hold(pod_uid, group.holds[pod_uid])
            self.holding[group.uid] = group

    def follow(self) -> None:
        """Believe nothing but events again: another scheduler decides now."""
        for uid in list(self.assumed):
            self.forget(uid)
        for group in list(self.holding.values()):
            self.release(group)
        for group in self.groups.values():
            group.decided = False
            group.follow()
            self.revise(group)

    # Groups.

    def upsert_group(self, group: Group) -> None:
        """A pod group is there, or changed."""
        state = self.groups.get(group.uid)
        if state is None:
            state = self.groups[group.uid] = GroupState(group)
            self._enter_queue(state)
        elif state.takes_back(group):
            return
        else:
            self._leave_queue(state)
            state.group = group
            state.tried_anew()
            if not state.decided:
                state.follow()
            self._enter_queue(state)
        state.priority = self._priorities.value(group.priority_class)
        self._named[group.namespace, group.name] = state
        for pod in list(self._held.get((group.namespace, group.name), {}).values()):
            if _belongs(pod.pod, group):
                self._part(pod)
                self._join(pod)
        self.revise(state)

    def remove_group(self, uid: str) -> None:
        """A pod group is gone; its pods are not placed until they have one again."""
        state = self.groups.pop(uid, None)
        if state is None:
            return
        self.release(state)
        key = (state.group.namespace, state.group.name)
        if self._named.get(key) is state:
            del self._named[key]
        for pod in list(state.members.values()):
            self._part(pod)
            self._join(pod)
        self._leave_queue(state)
        self.waiting.pop(uid, None)
        self.changed.pop(uid, None)
        self.reword.pop(uid, None)

    def release(self, group: GroupState) -> None:
        """Keep no room for a group any longer."""
        for uid in group.holds:
            self.occupancy.release(uid)
        group.holds.clear()
        group.held_since = None
        self.holding.pop(group.uid, None)

    def revise(self, group: GroupState) -> None:
        """Something of a group changed: sessions look at it again."""
        self.changed[group.uid] = group
        if group.waits_in_line or group.pending:
            self.waiting[group.uid] = group
        else:
            self.waiting.pop(group.uid, None)

    # Queues and priority classes.

    def upsert_queue(self, queue: Queue) -> None:
        """A queue is there, or changed."""
        self.queues.get(queue.name).queue = queue
        self.occupancy.room += 1

    def remove_queue(self, name: str) -> None:
        """A queue is gone."""
        self.queues.get(name).queue = None
        self.queues.drop_unused(name)
        self.occupancy.room += 1

    def upsert_priority_class(self, priority_class: PriorityClass) -> None:
        """A priority class is there, or changed."""
        self._priorities.upsert(priority_class)
        self._resolve_priorities()

    def remove_priority_class(self, name: str) -> None:
        """A priority class is gone."""
        self._priorities.remove(name)
        self._resolve_priorities()

    # What a session decided.

    def place(self, group: GroupState, states: Sequence[PodState], rows: Sequence[int]) -> None:
        """A session has placed pods and counted them on these rows: assume them there.

        Args:
            group: whose members they all are.
            states: pending pods of one class.
            rows: the row of each.
        """
        klass = states[0].klass
        names = {row: self.nodes.name(row) for row in set(rows)}
        for state, row in zip(states, rows, strict=True):
            state.status = Status.BINDING
            state.row = row
            state.node = self.assumed[state.pod.uid] = names[row]
        self.occupancy.settle(states)
        group.count_placed(klass, states)
        self.queues.get(group.group.queue).count(klass, len(states))
        self.revise(group)

    # Inside.

    def _add(self, state: PodState) -> None:
        if state.status in ON_NODE and state.node:
            self.occupancy.put(state)
        self._join(state)

    def _remove(self, state: PodState) -> None:
        self._part(state)
        if state.status in ON_NODE and state.node:
            self.occupancy.take(state)

    def _change_pod(self, state: PodState, pod: Pod) -> None:
        before = state.pod
        if _group_of(pod) != _group_of(before) or status_of(pod) is not Status.PENDING:
            self._unhold(state)
        status = status_of(pod)
        stays = pod.node == state.node and {status, state.status} <= ON_NODE
        same_class = pod.spec == before.spec and pod.labels == before.labels
        if stays and same_class and _group_of(pod) == _group_of(before):
            self.assumed.pop(pod.uid, None)
            self._change_status(state, pod, status)
            return
        self._remove(state)
        if not same_class:
            klass = self._class_of(pod)
            self.classes.leave(state.klass)
            state.klass = klass
        state.become(pod)
        state.status, state.node = status, pod.node
        self._confirm(state)
        self._add(state)

    def _change_status(self, state: PodState, pod: Pod, status: Status) -> None:
        """A pod stays on its node, but stands elsewhere in its life."""
        if Status.RELEASING in {status, state.status} and status is not state.status:
            self.occupancy.set_releasing(state, releasing=status is Status.RELEASING)
        group = state.group
        if group is None:
            state.become(pod)
            state.status = status
            return
        used = state.status in ALLOCATED
        if used and status not in ALLOCATED:
            self._count_use(state, -1)
        group.count(state, state.status, -1)
        state.become(pod)
        state.status = status
        group.count(state, status, 1)
        if not used:
            self._count_use(state, 1)
        self.revise(group)

    def _confirm(self, state: PodState) -> None:
        """Settle what is assumed of a pod with what its object says."""
        node = self.assumed.get(state.pod.uid)
        if node is None:
            return
        if state.status is Status.PENDING:
            state.status, state.node = Status.BINDING, node
        else:
            del self.assumed[state.pod.uid]

    def _join(self, state: PodState) -> None:
        pod = state.pod
        if not pod.ours or not pod.group:
            return
        group = self.groups.get(pod.group_uid) or self._named.get((pod.namespace, pod.group))
        if group is None or not _belongs(pod, group.group):
            self._held.setdefault((pod.namespace, pod.group), {})[pod.uid] = state
            return
        group.add(state)
        self._count_use(state, 1)
        self.revise(group)

    def _part(self, state: PodState) -> None:
        pod = state.pod
        group = state.group
        if group is not None:
            self._count_use(state, -1)
            group.drop(state)
            self.revise(group)
        elif (held := self._held.get((pod.namespace, pod.group))) is not None:
            held.pop(pod.uid, None)
            if not held:
                del self._held[pod.namespace, pod.group]

    def _unhold(self, state: PodState) -> None:
        group = state.group
        if group is not None and group.holds.pop(state.pod.uid, None) is not None:
            self.occupancy.release(state.pod.uid)
            if not group.holds:
                self.release(group)

    def _count_use(self, state: PodState, by: int) -> None:
        group = state.group
        if group is not None and state.status in ALLOCATED:
            group.count_allocated(state.klass, by)
            self.queues.get(group.group.queue).count(state.klass, by)
            if by < 0:
                self.occupancy.room += 1

    def _enter_queue(self, group: GroupState) -> None:
        queue = self.queues.get(group.group.queue)
        queue.groups.add(group.uid)
        for klass, pods in group.allocated.items():
            queue.count(klass, pods)

    def _leave_queue(self, group: GroupState) -> None:
        queue = self.queues.get(group.group.queue)
        queue.groups.discard(group.uid)
        for klass, pods in group.allocated.items():
            queue.count(klass, -pods)
            self.occupancy.room += 1
        self.queues.drop_unused(queue.name)

    def _class_of(self, pod: Pod) -> PodClass:
        klass, new = self.classes.join(pod)
        if new:
            klass.measure(self.nodes.columns)
            klass.priority = self._priorities.of_pods(klass)
        return klass

    def _resolve_priorities(self) -> None:
        for klass in self.classes:
            klass.priority = self._priorities.of_pods(klass)
        for group in self.groups.values():
            group.priority = self._priorities.value(group.group.priority_class)
        self.occupancy.room += 1


def _group_of(pod: Pod) -> tuple[str, str, str, int, str, bool]:
    return (
        pod.namespace,
        pod.group,
        pod.group_uid,
        pod.group_generation,
        pod.task,
        pod.ours,
    )


def _belongs(pod: Pod, group: Group) -> bool:
    if (pod.namespace, pod.group) != (group.namespace, group.name):
        return False
    return pod.group_uid in {"", group.uid} and group.generation >= pod.group_generation
