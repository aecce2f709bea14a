"""How many pod groups each queue has in each phase: an aggregate, at most once a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from typing import Final

from hekla.api.queue import Queue
from hekla.domain.phases import PodGroupPhase
from hekla.store import pod_groups
from hekla.store.database import Database

LIFETIME_SECONDS: Final = 1.0


class QueueCounts:
    """The newest aggregate, shared by all calls of a process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._counts: Mapping[str, Mapping[str, int]] = {}
        self._at = float("-inf")
        self._told: Mapping[str, Mapping[str, int]] = {}

    def fill(self, queue: Queue) -> Queue:
        """The queue with its counts."""
        counts = self._newest().get(queue.metadata.name, {})
        return queue.model_copy(
            update={
                "status": queue.status.model_copy(
                    update={
                        phase.value.lower(): counts.get(phase, 0) for phase in PodGroupPhase
                    }
                )
            }
        )

    def recount(self) -> Collection[str]:
        """Count now; the names of queues whose counts changed since the last recount."""
        with self._lock:
            self._count()
            before, self._told = self._told, self._counts
            names = before.keys() | self._told.keys()
            return [name for name in names if before.get(name) != self._told.get(name)]

    def _newest(self) -> Mapping[str, Mapping[str, int]]:
        with self._lock:
            if time.monotonic() - self._at > LIFETIME_SECONDS:
                self._count()
            return self._counts

    def _count(self) -> None:
        with self._database.transaction() as session:
            self._counts = pod_groups.counts_by_queue(session)
        self._at = time.monotonic()
