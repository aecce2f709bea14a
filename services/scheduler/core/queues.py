"""Queues as the cluster keeps them, and what they may still take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hekla.domain.names import ROOT_QUEUE
from hekla.domain.phases import QueueState as State
from services.scheduler.core.classes import PodClass
from services.scheduler.core.objects import Queue

Limits = tuple[tuple[int, int], ...]
"""(column, limit), for each resource that is limited."""


class QueueState:
    """One queue: its object where there is one, and what its own groups use."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.queue: Queue | None = None
        """None: groups name it, but it does not exist."""
        self.counts: dict[PodClass, int] = {}
        """Pods that count as use of it, by class, without those of queues below."""
        self.groups: set[str] = set()
        """Uids of the groups that are in it."""
        self.allocated: list[int] = []
        """Use by column, queues below included; brought up to date when a session opens."""
        self.inqueue: list[int] = []
        """Promised by column to groups let in but not placed; as ``allocated``."""
        self.limits: Limits = ()
        """The capability, by column; as ``allocated``."""

    @property
    def open(self) -> bool:
        """Whether it takes new groups."""
        return self.queue is not None and self.queue.state is State.OPEN

    def count(self, klass: PodClass, by: int) -> None:
        """Count ``by`` pods of a class as use."""
        left = self.counts.get(klass, 0) + by
        if left:
            self.counts[klass] = left
        else:
            del self.counts[klass]


class QueueTable:
    """Every queue that exists or is named by a group."""

    def __init__(self) -> None:
        self._queues: dict[str, QueueState] = {}

    def __iter__(self) -> Iterator[QueueState]:
        return iter(self._queues.values())

    def get(self, name: str) -> QueueState:
        """The queue of that name; one that does not exist has no object."""
        found = self._queues.get(name)
        if found is None:
            found = self._queues[name] = QueueState(name)
        return found

    def drop_unused(self, name: str) -> None:
        """Forget a queue that neither exists nor is named by a group."""
        state = self._queues.get(name)
        if state is not None and state.queue is None and not state.groups:
            del self._queues[name]

    def line(self, queue: QueueState) -> list[QueueState]:
        """The queue and its ancestors, upwards, each once, as far as they exist."""
        line = [queue]
        while (above := self._parent(line[-1])) is not None and above not in line:
            line.append(above)
        return line

    def add_up(self, columns: Mapping[str, int]) -> None:
        """Bring every queue's ``allocated`` and ``limits`` up to date; none is promised."""
        width = len(columns)
        for state in self._queues.values():
            state.allocated = [0] * width
            state.inqueue = [0] * width
            wanted = state.queue.capability if state.queue is not None else ()
            state.limits = tuple(
                (columns[name], limit) for name, limit in wanted if name in columns
            )
        for state in self._queues.values():
            if state.counts:
                own = [0] * width
                for klass, pods in state.counts.items():
                    for column, amount in klass.columns:
                        own[column] += pods * amount
                for above in self.line(state):
                    add(above.allocated, own)

    def _parent(self, state: QueueState) -> QueueState | None:
        if state.queue is None or state.name == ROOT_QUEUE:
            return None
        parent = self._queues.get(state.queue.parent or ROOT_QUEUE)
        return parent if parent is not None and parent.queue is not None else None


def add(to: list[int], amounts: Sequence[int]) -> None:
    """Add amounts by column."""
    for column, amount in enumerate(amounts):
        to[column] += amount
