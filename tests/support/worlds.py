"""Worlds for the rules of admission."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hekla.api.queue import Queue
from hekla.domain.names import DEFAULT_QUEUE, ROOT_QUEUE
from hekla.domain.resources import Resources
from services.webhook.rules.defaults import HIERARCHY
from tests.support.objects import make_queue


class FixedWorld:
    """Queues, beside those that are always there; nodes, annotations of namespaces."""

    def __init__(
        self,
        *queues: Queue,
        nodes: Sequence[Resources] = (),
        namespaces: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self._nodes = nodes
        self._namespaces = namespaces or {}
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

    def staying_queues(self, name: str) -> Sequence[str]:
        return self.child_queues(name)

    def running_pods(self, queue: str) -> int:
        found = self._queues.get(queue)
        allocated = found.status.allocated if found is not None else None
        return int((allocated or {}).get("pods", 0))

    def hierarchies(self) -> Mapping[str, str]:
        return {
            name: queue.metadata.annotations[HIERARCHY]
            for name, queue in self._queues.items()
            if queue.metadata.annotations and HIERARCHY in queue.metadata.annotations
        }

    def namespace_annotations(self, name: str) -> Mapping[str, str]:
        return self._namespaces.get(name, {})

    def nodes(self) -> Sequence[Resources]:
        return self._nodes
