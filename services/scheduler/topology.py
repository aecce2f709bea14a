"""Keeps ``status.nodeCount`` of hypernodes: they are read where they are, and have no row."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from hekla.domain.errors import DomainError, NotFoundError
from hekla.kube.client import KubeClient
from hekla.kube.events import DELETED, RELISTED, WatchEvent
from hekla.kube.requests import Patch
from hekla.kube.resources import HYPERNODES
from hekla.kube.subscription import Subscription
from services.scheduler.core.objects import Node
from services.scheduler.core.topology import HyperNode, Labels, node_counts
from services.scheduler.events import Batch, Event, Full, Kind

LOOK_EVERY: Final = timedelta(seconds=1)
UNSERVED_LOOK: Final = 60.0
"""Seconds between looks at whether hypernodes are served by now."""
TIMEOUT: Final = 10.0

log = logging.getLogger(__name__)


class Topology:
    """Hypernodes and the nodes in them."""

    def __init__(self, client: KubeClient, leads: Callable[[], bool]) -> None:
        """See the class; ``leads`` tells whether it is on us to write."""
        self._client = client
        self._leads = leads
        self._lock = threading.Lock()
        self._nodes: dict[str, Labels] = {}
        self._hyper_nodes: dict[str, HyperNode] = {}
        self._stale = False
        """Whether the counts may be others than those told."""
        self._watched: Subscription | None = None
        self._look_at = 0.0

    def before(self, put: Callable[[Event], None]) -> Callable[[Event], None]:
        """Hands events on, and takes note of what happens to nodes."""

        def both(event: Event) -> None:
            self._see(event)
            put(event)

        return both

    def _see(self, event: Event) -> None:
        match event:
            case Full(Kind.NODE, found):
                nodes: dict[str, Labels] = {node.name: node.labels for node in found}
                with self._lock:
                    self._stale |= nodes != self._nodes
                    self._nodes = nodes
            case Batch(Kind.NODE, changes):
                with self._lock:
                    for change in changes:
                        self._see_node(change.type, change.object)

    def _see_node(self, type_: str, node: Node) -> None:
        if type_ == DELETED:
            self._stale |= self._nodes.pop(node.name, None) is not None
        elif self._nodes.get(node.name) != node.labels:
            self._nodes[node.name] = node.labels
            self._stale = True

    def look(self) -> bool:
        """Tell the counts that changed, if we lead. Repeat it."""
        if self._watched is None and not self._begin():
            return False
        assert self._watched is not None
        while batch := self._watched.take(0):
            with self._lock:
                self._take(batch)
        if self._stale and self._leads() and self._watched.listed:
            with self._lock:
                self._stale = False
                nodes = dict(self._nodes)
            self._tell(node_counts(self._hyper_nodes.values(), nodes))
        return False

    def close(self) -> None:
        """Watch no more."""
        if self._watched is not None:
            self._watched.close()

    def _begin(self) -> bool:
        """Watch hypernodes if the server has such a kind."""
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + UNSERVED_LOOK
        try:
            self._client.list(HYPERNODES, timeout=TIMEOUT)
        except NotFoundError:
            return False
        except DomainError as error:
            log.info("hypernodes not read", extra={"error": str(error)})
            return False
        project = "services.scheduler.projection:hyper_node"
        self._watched = self._client.watch(HYPERNODES, project=project)
        return True

    def _take(self, batch: list[WatchEvent]) -> None:
        self._stale = True
        for type_, found in batch:
            if type_ == RELISTED:
                self._hyper_nodes = {one.name: one for one in found}
            elif type_ == DELETED:
                self._hyper_nodes.pop(found.name, None)
            else:
                self._hyper_nodes[found.name] = found

    def _tell(self, counts: Mapping[str, int]) -> None:
        patches = [
            Patch(HYPERNODES, None, name, {"status": {"nodeCount": count}}, "status")
            for name, count in counts.items()
            if self._hyper_nodes[name].told != count
        ]
        replies = self._client.patch_many(patches, timeout=TIMEOUT, fenced=True)
        for patch, reply in zip(patches, replies, strict=True):
            if not reply.ok and reply.status != 404:
                with self._lock:
                    self._stale = True
                log.info(
                    "hypernode not told",
                    extra={"hypernode": patch.name, "reason": reply.reason or reply.message},
                )
