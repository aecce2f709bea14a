"""Worlds for the rules of admission."""

from __future__ import annotations

from collections.abc import Sequence

from hekla.api.queue import Queue
from hekla.domain.names import DEFAULT_QUEUE, ROOT_QUEUE
from tests.support.objects import make_queue


class FixedWorld:
    """The queues named, beside those that are always there."""

    def __init__(self, *queues: Queue) -> None:
        always = (make_queue(ROOT_QUEUE), make_queue(DEFAULT_QUEUE, parent=ROOT_QUEUE))
        self._queues = {queue.metadata.name: queue for queue in (*always, *queues)}

    def queue(self, name: str) -> Queue | None:
        return self._queues.get(name)

    def child_queues(self, name: str) -> Sequence[str]:
        return sorted(
            queue.metadata.name
            for queue in self._queues.values()
            if queue.metadata.name != ROOT_QUEUE and (queue.spec.parent or ROOT_QUEUE) == name
        )
