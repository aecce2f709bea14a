"""Statuses that wait to be written: the newest of each object, at a bounded pace.

An object's status is written once a second at most, over time: a new phase need not wait for
that, but borrows from the seconds that follow. All objects share a rate, and new phases come
first. Not safe for threads.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hekla.domain.names import Key

SPACING: Final = 1.0
"""Seconds between two statuses of an object."""
BORROWED: Final = 3.0
"""Seconds that new phases may be ahead of their time."""
FLOODED: Final = 0.1
"""Seconds between two looks while more waits than the rate lets pass."""


@dataclass(slots=True)
class Waiting:
    """One status that is to be written."""

    key: Key
    uid: str
    """Of the custom resource."""
    status: Mapping[str, Any]
    urgent: bool
    """Whether the phase is a new one."""
    since: float


class Showing:
    """What waits, and what was written when."""

    def __init__(self, rate: float) -> None:
        """Let ``rate`` statuses a second pass, and as many at once after a quiet time."""
        self._rate = rate
        self._tokens = rate
        self._filled = float("-inf")
        self._waiting: dict[Key, Waiting] = {}
        self._free_at: dict[Key, float] = {}
        """When an object's next status is in time; only what lies ahead is kept."""

    def __len__(self) -> int:
        return len(self._waiting)

    def want(
        self, key: Key, uid: str, status: Mapping[str, Any], now: float, *, urgent: bool
    ) -> None:
        """Have this status written, in place of the one that waits."""
        before = self._waiting.get(key)
        same = before is not None and before.uid == uid
        self._waiting[key] = Waiting(
            key,
            uid,
            status,
            urgent or (same and before is not None and before.urgent),
            before.since if same and before is not None else now,
        )

    def drop(self, key: Key) -> None:
        """There is nothing to write of this object."""
        self._waiting.pop(key, None)

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self._waiting.pop(key, None)
        self._free_at.pop(key, None)

    def take(self, now: float, most: int) -> Sequence[Waiting]:
        """Those whose turn it is; they wait no more, and count as written."""
        self._fill(now)
        room = min(most, int(self._tokens))
        if room <= 0 or not self._waiting:
            return []
        ready = (one for one in self._waiting.values() if self._ready_at(one) <= now)
        taken = heapq.nsmallest(room, ready, key=lambda one: (not one.urgent, one.since))
        for one in taken:
            del self._waiting[one.key]
            self._free_at[one.key] = max(now, self._free_at.get(one.key, now)) + SPACING
        self._tokens -= len(taken)
        return taken

    def next_at(self, now: float) -> float | None:
        """When something may be taken, if nothing else happens."""
        if not self._waiting:
            return None
        self._fill(now)
        # Under a flood a look takes as many as come in a while, or looking would be all.
        wanted = min(float(len(self._waiting)), max(1.0, self._rate * FLOODED))
        if self._tokens >= 1:
            wanted = min(wanted, self._tokens)
        refilled = now + max(0.0, wanted - self._tokens) / self._rate
        return max(refilled, min(self._ready_at(one) for one in self._waiting.values()))

    def _ready_at(self, one: Waiting) -> float:
        free = self._free_at.get(one.key)
        if free is None:
            return float("-inf")
        return free - BORROWED if one.urgent else free

    def _fill(self, now: float) -> None:
        if self._filled == float("-inf"):
            self._filled = now
        self._tokens = min(self._rate, self._tokens + (now - self._filled) * self._rate)
        self._filled = now
        for key in list(self._over(now)):
            del self._free_at[key]

    def _over(self, now: float) -> Iterator[Key]:
        if len(self._free_at) > 2 * len(self._waiting) + 1000:
            yield from (key for key, at in self._free_at.items() if at <= now)
