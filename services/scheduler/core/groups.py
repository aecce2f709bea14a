"""Pods and pod groups as the cluster keeps them: counted, and sorted by what is pending."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Final, NamedTuple

from hekla.domain.phases import PodGroupPhase
from services.scheduler.core.classes import PodClass
from services.scheduler.core.objects import Condition, Group, Pod
from services.scheduler.core.status import READY, VALID, Status

NO_INDEX: Final = 1 << 62

_INDEX: Final = attrgetter("index")
_KEY: Final = attrgetter("key")

PodKey = tuple[int, datetime, str, str]


class PodState:
    """One pod: its object, its class and where it stands."""

    __slots__ = ("group", "index", "klass", "node", "pod", "reported", "row", "status")

    def __init__(self, pod: Pod, klass: PodClass, status: Status) -> None:
        self.become(pod)
        self.klass = klass
        self.status = status
        self.node = pod.node
        """Where it is, by its object or by our decision; empty: nowhere."""
        self.row = -1
        """The node's row; -1 while the node is not known."""
        self.group: GroupState | None = None
        """Its group, once that is known and new enough."""
        self.reported = ""
        """The reason last reported of it."""

    @property
    def key(self) -> PodKey:
        """Orders the pods of one priority: by index, those without one last, then by age."""
        pod = self.pod
        return (self.index, pod.created, pod.name, pod.uid)

    def become(self, pod: Pod) -> None:
        """Take the pod's object as it is now."""
        self.pod = pod
        self.index = NO_INDEX if pod.index is None else pod.index


def by_key(states: list[PodState]) -> list[PodState]:
    """``states`` by their keys."""
    if len({state.index for state in states}) == len(states):
        return sorted(states, key=_INDEX)
    return sorted(states, key=_KEY)


class Hold(NamedTuple):
    """Room kept for a member whose bind failed."""

    node: str
    klass: PodClass


class GroupStatus(NamedTuple):
    """What the world is told of a group."""

    phase: PodGroupPhase
    conditions: tuple[Condition, ...]
    running: int
    succeeded: int
    failed: int

    @classmethod
    def of(cls, group: Group) -> GroupStatus:
        """The status that ``group`` came with."""
        return cls(group.phase, group.conditions, group.running, group.succeeded, group.failed)


class Refusal(NamedTuple):
    """Why a group was not placed."""

    reason: str
    """One word, for a condition."""
    message: str
    """The cause, in words."""
    pod: str = ""
    """The name of the pod that did not find room, where it is known."""
    schedulable: int = 0
    """How many pods of the gang would have found room."""
    proven: bool = False
    """No placement exists until room grows somewhere, or the group or its queue changes."""


class GroupState:
    """One pod group: its object, its members by status, and what was decided of it."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.members: dict[str, PodState] = {}
        self.counts: list[int] = [0] * len(Status)
        """Members by status."""
        self.tasks: dict[str, list[int]] = {}
        """Members by task and status."""
        self.pending: dict[tuple[str, PodClass], dict[str, PodState]] = {}
        """Members without a node and free to be placed, by task and class."""
        self.allocated: dict[PodClass, int] = {}
        """Members that count as use of the queue, by class."""
        self.holds: dict[str, Hold] = {}
        """Room kept for members whose bind failed, by pod uid."""
        self.held_since: datetime | None = None
        self.priority = 0
        """The value of its priority class."""
        self.phase = group.phase
        """Where it stands now."""
        self.status = GroupStatus.of(group)
        """What the world was last told of it."""
        self.decided = False
        """``status`` is our own: events no longer replace it."""
        self.reported_at: datetime | None = None
        self.refusal: Refusal | None = None
        """Why it was not placed when it was last tried; None when it was, or never was."""
        self.refused_at = -1
        """The cluster's ``room`` when it was refused for good reason; -1: try again."""
        self.had_members = False
        self.unreported = False
        """Some pending member may not have been told that it waits."""

    @property
    def uid(self) -> str:
        """The group's uid."""
        return self.group.uid

    @property
    def ready_members(self) -> int:
        """How many members count for the gang."""
        return _sum(self.counts, READY)

    @property
    def valid_members(self) -> int:
        """How many members count for the gang, or may yet."""
        return _sum(self.counts, VALID)

    @property
    def pending_members(self) -> int:
        """How many members could be placed now."""
        return self.counts[Status.PENDING]

    @property
    def started(self) -> bool:
        """Whether some member counts already, or room is kept for one."""
        return bool(self.holds) or self.ready_members > 0

    @property
    def waits_in_line(self) -> bool:
        """Whether it has not been let in yet."""
        return self.phase is PodGroupPhase.PENDING

    def task_ready(self, task: str) -> int:
        """How many members of ``task`` count for the gang."""
        counts = self.tasks.get(task)
        return _sum(counts, READY) if counts else 0

    def task_pending(self, task: str) -> int:
        """How many members of ``task`` could be placed now."""
        counts = self.tasks.get(task)
        return counts[Status.PENDING] if counts else 0

    def task_valid(self, task: str) -> int:
        """How many members of ``task`` count for the gang, or may yet."""
        counts = self.tasks.get(task)
        return _sum(counts, VALID) if counts else 0

    def takes_back(self, group: Group) -> bool:
        """Take what is nothing new: the group as it was, or our own word of it come back."""
        told, known = GroupStatus.of(group), GroupStatus.of(self.group)
        if told != known and not self.decided:
            return False
        if group != self.group and group != replace(self.group, **told._asdict()):
            return False
        self.group = group
        return True

    def follow(self) -> None:
        """Take the status that the group came with for what the world knows."""
        self.status = GroupStatus.of(self.group)
        self.phase = self.group.phase

    def add(self, state: PodState) -> None:
        """Take a member in."""
        self.members[state.pod.uid] = state
        self.had_members = True
        state.group = self
        if state.pod.task not in self.tasks:
            self.tasks[state.pod.task] = [0] * len(Status)
        self.count(state, state.status, 1)

    def drop(self, state: PodState) -> None:
        """Let a member go."""
        del self.members[state.pod.uid]
        self.count(state, state.status, -1)
        state.group = None

    def count(self, state: PodState, status: Status, by: int) -> None:
        """Count a member in (1) or out (-1) as ``status``."""
        self.counts[status] += by
        self.tasks[state.pod.task][status] += by
        self.tried_anew()
        if status is Status.PENDING:
            key = (state.pod.task, state.klass)
            if by > 0:
                self.unreported = True
                self.pending.setdefault(key, {})[state.pod.uid] = state
            else:
                bucket = self.pending[key]
                del bucket[state.pod.uid]
                if not bucket:
                    del self.pending[key]

    def count_placed(self, klass: PodClass, states: Sequence[PodState]) -> None:
        """Pending members of one class were given a node."""
        by_task: dict[str, list[PodState]] = {}
        for state in states:
            by_task.setdefault(state.pod.task, []).append(state)
        for task, placed in by_task.items():
            bucket = self.pending[task, klass]
            if len(placed) == len(bucket):
                del self.pending[task, klass]
            else:
                for state in placed:
                    del bucket[state.pod.uid]
            self.tasks[task][Status.PENDING] -= len(placed)
            self.tasks[task][Status.BINDING] += len(placed)
        self.counts[Status.PENDING] -= len(states)
        self.counts[Status.BINDING] += len(states)
        self.tried_anew()
        self.count_allocated(klass, len(states))

    def tried_anew(self) -> None:
        """Forget why it was not placed: something of it changed."""
        self.refusal = None
        self.refused_at = -1

    def count_allocated(self, klass: PodClass, by: int) -> None:
        """Count ``by`` members of a class as use of the queue."""
        left = self.allocated.get(klass, 0) + by
        if left:
            self.allocated[klass] = left
        else:
            del self.allocated[klass]


def _sum(counts: list[int], statuses: Sequence[Status]) -> int:
    # A loop: asked many times a group, and generators cost more than what they add up.
    total = 0
    for status in statuses:
        total += counts[status]
    return total
