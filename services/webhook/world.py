"""The world as Postgres has it, for the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hekla.api.queue import Queue
from hekla.domain.errors import NotFoundError
from hekla.domain.resources import Resources
from hekla.store import queues
from hekla.store.database import Session
from services.webhook.rules.defaults import HIERARCHY


class StoredWorld:
    """What one transaction sees; each question is asked of Postgres once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._queues: dict[str, Queue | None] = {}
        self._children: dict[str, Sequence[str]] = {}

    def queue(self, name: str) -> Queue | None:
        """The queue of that name, if there is one."""
        if name not in self._queues:
            try:
                self._queues[name] = queues.get(self._session, name)
            except NotFoundError:
                self._queues[name] = None
        return self._queues[name]

    def child_queues(self, name: str) -> Sequence[str]:
        """Names of the queues directly below ``name``."""
        if name not in self._children:
            below = queues.below(self._session, name)
            self._queues.update({queue.metadata.name: queue for queue in below})
            self._children[name] = [queue.metadata.name for queue in below]
        return self._children[name]

    def hierarchies(self) -> Mapping[str, str]:
        """Queues that have the annotation ``volcano.sh/hierarchy``, with its value."""
        return queues.annotated(self._session, HIERARCHY)

    def namespace_annotations(self, name: str) -> Mapping[str, str]:
        """Nothing: Postgres knows no namespaces."""
        return {}

    def nodes(self) -> Sequence[Resources]:
        """Nothing: Postgres knows no nodes."""
        return ()
