"""Which objects are due for a look, each once, and when. Not safe for threads."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Final

from hekla.domain.names import Key

FIRST_BACKOFF: Final = 0.25
LONGEST_BACKOFF: Final = 10.0


class Marks:
    """Names with the instant they are due at; marking again keeps the earlier one."""

    def __init__(self) -> None:
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []
        self._failures: dict[Key, int] = {}

    def __len__(self) -> int:
        return len(self._due)

    def mark(self, keys: Iterable[Key], at: float) -> None:
        """Have these looked at, at ``at`` or before."""
        for key in keys:
            known = self._due.get(key)
            if known is None or at < known:
                self._due[key] = at
                heapq.heappush(self._heap, (at, key))

    def put_off(self, key: Key, now: float) -> None:
        """Have it looked at after a while, longer each time, unless it is marked meanwhile."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.mark([key], now + min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(failures, 16)))

    def settled(self, keys: Iterable[Key]) -> None:
        """Forget that these failed."""
        for key in keys:
            self._failures.pop(key, None)

    def take(self, now: float, most: int) -> Sequence[Key]:
        """Those that are due, longest due first; they are marked no more."""
        taken: list[Key] = []
        while self._heap and len(taken) < most and self._heap[0][0] <= now:
            at, key = heapq.heappop(self._heap)
            if self._due.get(key) == at:
                del self._due[key]
                taken.append(key)
        return taken

    def next_at(self) -> float | None:
        """When the next one is due."""
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
