"""The world as Postgres has it, for the rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, Protocol

from hekla.api.queue import Queue
from hekla.domain.resources import Resources
from hekla.store import pod_groups, queues
from hekla.store.database import Database
from services.webhook.rules.defaults import HIERARCHY


class Cluster(Protocol):
    """What Kubernetes knows and Postgres does not."""

    def namespace_annotations(self, name: str) -> Mapping[str, str]:
        """The annotations of a namespace; none if it is not known."""

    def nodes(self) -> Iterable[Resources]:
        """What nodes have for pods, each shape once; none if no node is known."""

    def queue(self, name: str) -> Queue | None:
        """The queue of that name, if there is a custom resource of it."""

    def has_lost(self, queue: str, uid: str) -> bool:
        """Whether the custom resource of a queue is known to be gone, or going."""


class UnknownCluster:
    """No Kubernetes: nothing is known."""

    def namespace_annotations(self, name: str) -> Mapping[str, str]:
        """Nothing."""
        return {}

    def nodes(self) -> Iterable[Resources]:
        """Nothing."""
        return ()

    def queue(self, name: str) -> Queue | None:
        """Nothing."""
        return None

    def has_lost(self, queue: str, uid: str) -> bool:
        """Nothing is known to be gone."""
        return False


UNKNOWN: Final = UnknownCluster()
MOST_NAMED: Final = 10
"""Queues below another that are looked for one by one."""


class StoredWorld:
    """What one call sees. Each queue is asked for once, and its children with it.

    A queue that is not stored may have been made just now, with the object that names it in one
    file: then there is a custom resource of it, which is on its way to the store.

    There is no transaction around: what is admitted may be out of date by the time it is
    stored in any case.
    """

    def __init__(self, database: Database, cluster: Cluster = UNKNOWN) -> None:
        self._database = database
        self._cluster = cluster
        self._queues: dict[str, Queue | None] = {}
        self._children: dict[str, Sequence[str]] = {}

    def queue(self, name: str) -> Queue | None:
        """The queue of that name, if there is one."""
        if name not in self._queues:
            self._look(name)
        return self._queues[name]

    def child_queues(self, name: str) -> Sequence[str]:
        """Names of the queues directly below ``name``."""
        if name not in self._children:
            self._look(name)
        return self._children[name]

    def staying_queues(self, name: str) -> Sequence[str]:
        """Those of the queues directly below ``name`` that are not on their way out."""
        with self._database.transaction() as session:
            rows = queues.mirrored(session, self.child_queues(name))
        staying = (
            row.queue.metadata.name
            for row in rows
            if row.cr_uid is None
            or not self._cluster.has_lost(row.queue.metadata.name, str(row.cr_uid))
        )
        return sorted(islice(staying, MOST_NAMED))

    def _look(self, name: str) -> None:
        named, below = queues.named(name), queues.below(name)
        self._database.ask(named, below)
        self._queues[name] = named.answer or self._cluster.queue(name)
        self._queues.update({queue.metadata.name: queue for queue in below.answer})
        self._children[name] = [queue.metadata.name for queue in below.answer]

    def hierarchies(self) -> Mapping[str, str]:
        """Queues that have the annotation ``volcano.sh/hierarchy``, with its value."""
        with self._database.transaction() as session:
            return queues.annotated(session, HIERARCHY)

    def running_pods(self, queue: str) -> int:
        """How many pods run in a queue."""
        with self._database.transaction() as session:
            return pod_groups.running_pods(session, queue)

    def namespace_annotations(self, name: str) -> Mapping[str, str]:
        """The annotations of a namespace; none if it is not known."""
        return self._cluster.namespace_annotations(name)

    def nodes(self) -> Iterable[Resources]:
        """What nodes have for pods, each shape once; none if no node is known."""
        return self._cluster.nodes()
