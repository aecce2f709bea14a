"""How many pod groups each queue has in each phase: an aggregate, at most once a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
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

    def _newest(self) -> Mapping[str, Mapping[str, int]]:
        with self._lock:
            if time.monotonic() - self._at > LIFETIME_SECONDS:
                with self._database.transaction() as session:
                    self._counts = pod_groups.counts_by_queue(session)
                self._at = time.monotonic()
            return self._counts
