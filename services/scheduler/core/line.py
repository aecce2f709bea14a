"""Who is served next: queues by their order, the jobs of a queue by theirs.

Both are asked again after every step. That is affordable, because only what was served
has moved: its own place is worked out anew, and places of queues only ever get worse.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from services.scheduler.core.groups import GroupState
from services.scheduler.core.queues import QueueState
from services.scheduler.framework import Framework


class Line:
    """Jobs with something left to do, the first to serve first."""

    def __init__(
        self, framework: Framework, total: list[int], queue_of: Callable[[str], QueueState]
    ) -> None:
        self._framework = framework
        self._total = total
        self._queue_of = queue_of
        self._jobs: dict[str, list[tuple[Any, GroupState]]] = {}
        self._queues: list[tuple[Any, str]] = []

    def add(self, group: GroupState) -> None:
        """Let a job stand in line."""
        order = self._framework.job_order(group)
        self._jobs.setdefault(group.group.queue, []).append((order, group))

    def open(self) -> None:
        """All that are to stand in line do."""
        for name, jobs in self._jobs.items():
            jobs.sort(key=_order)
            self._queues.append((self._queue_order(name), name))
        heapq.heapify(self._queues)

    def next(self) -> tuple[QueueState, GroupState] | None:
        """The queue and the job to serve now; it ``stay``s or ``leave``s then."""
        self._settle()
        if not self._queues:
            return None
        name = self._queues[0][1]
        return self._queue_of(name), self._jobs[name][0][1]

    def stay(self) -> None:
        """The next job was served, and stands in line again."""
        jobs = self._jobs[self._queues[0][1]]
        group = jobs[0][1]
        heapq.heapreplace(jobs, (self._framework.job_order(group), group))

    def leave(self) -> None:
        """Nothing more is to be done for the next job."""
        jobs = self._jobs[self._queues[0][1]]
        heapq.heappop(jobs)
        if not jobs:
            self.close()

    def close(self) -> list[GroupState]:
        """No job of the next queue is served any more.

        Returns:
            Those that still stood in line.
        """
        _, name = heapq.heappop(self._queues)
        return [group for _, group in self._jobs.pop(name)]

    def turn(self, allocated: Callable[[int], list[int]], at_most: int) -> int:
        """How many pods the next queue may place, at most, until another goes before it.

        Args:
            allocated: its use after so many pods, by column.
            at_most: no more than these, 1 or more.
        """
        if self._framework.order_moves:
            return 1
        name = self._queues[0][1]
        queue = self._queue_of(name)
        rival = self._rival()

        def still_first(placed: int) -> bool:
            use = allocated(placed)
            if self._framework.overused(queue, use):
                return False
            order = self._framework.queue_order(queue, use, self._total)
            return rival is None or bool(order < rival)

        return last_true(still_first, 0, at_most - 1) + 1

    def _rival(self) -> Any:
        """The order of the queue that comes second; None where there is none."""
        first = heapq.heappop(self._queues)
        self._settle()
        rival = self._queues[0][0] if self._queues else None
        heapq.heappush(self._queues, first)
        return rival

    def _settle(self) -> None:
        while self._queues:
            order, name = self._queues[0]
            now = self._queue_order(name)
            if now == order:
                return
            heapq.heapreplace(self._queues, (now, name))

    def _queue_order(self, name: str) -> Any:
        queue = self._queue_of(name)
        return self._framework.queue_order(queue, queue.allocated, self._total)


def last_true(holds: Callable[[int], bool], known: int, at_most: int) -> int:
    """The largest number up to ``at_most`` for which ``holds``.

    Args:
        holds: once false, it stays so for all larger numbers.
        known: a number for which it holds.
        at_most: not below ``known``.
    """
    low, high = known, at_most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _order(job: tuple[Any, GroupState]) -> Any:
    return job[0]
