"""The world as Postgres has it, for the rules."""

from __future__ import annotations

from collections.abc import Sequence

from hekla.api.queue import Queue
from hekla.domain.errors import NotFoundError
from hekla.store import queues
from hekla.store.database import Session


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
            self._children[name] = queues.children(self._session, name)
        return self._children[name]
