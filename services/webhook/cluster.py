"""What Kubernetes knows beside what is judged: namespaces, nodes, queues just made."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Final

from hekla.api import decode
from hekla.api.queue import Queue
from hekla.domain import resources
from hekla.domain.errors import DomainError, NotFoundError
from hekla.domain.resources import Resources
from hekla.kube.client import KubeClient
from hekla.kube.resources import NAMESPACES, NODES, QUEUES

NODES_KEPT: Final = timedelta(minutes=5)
TIMEOUT: Final = 2.0
"""Seconds. What is asked for here only completes and warns: a review does not wait for it."""
QUEUE_TIMEOUT: Final = 1.0
"""Seconds. A review waits for it, and only if a queue is not stored."""

log = logging.getLogger(__name__)


class KubeCluster:
    """Asks the API server; what it does not answer is not known."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube
        self._lock = threading.Lock()
        self._nodes: Sequence[Resources] = ()
        self._due = 0.0

    def namespace_annotations(self, name: str) -> Mapping[str, str]:
        """The annotations of a namespace; none if it is not known."""
        try:
            found = self._kube.get(NAMESPACES, None, name, timeout=TIMEOUT).found()
        except DomainError as error:
            log.info("namespace not read", extra={"namespace": name, "error": str(error)})
            return {}
        return found["metadata"].get("annotations") or {}

    def nodes(self) -> Sequence[Resources]:
        """What nodes have for pods, each shape once, as of some minutes ago."""
        with self._lock:
            now = time.monotonic()
            if now >= self._due:
                self._due = now + NODES_KEPT.total_seconds()
                try:
                    listed, _ = self._kube.list(NODES, timeout=TIMEOUT)
                    self._nodes = _shapes(listed)
                except DomainError as error:
                    log.info("nodes not read", extra={"error": str(error)})
            return self._nodes

    def queue(self, name: str) -> Queue | None:
        """The queue of that name, if there is a custom resource of it that stays."""
        try:
            found = self._kube.get(QUEUES, None, name, timeout=QUEUE_TIMEOUT).found()
            queue = decode.read(found)
        except NotFoundError:
            return None
        except DomainError as error:
            log.warning("queue not read", extra={"queue": name, "error": str(error)})
            return None
        assert isinstance(queue, Queue)
        return queue if queue.metadata.deletion_timestamp is None else None

    def has_lost(self, queue: str, uid: str) -> bool:
        """Whether the custom resource of a queue is known to be gone, or going."""
        try:
            reply = self._kube.get(QUEUES, None, queue, timeout=QUEUE_TIMEOUT)
        except DomainError as error:
            log.warning("queue not read", extra={"queue": queue, "error": str(error)})
            return False
        if reply.status == HTTPStatus.NOT_FOUND:
            return True
        found = (reply.object or {}).get("metadata") or {}
        return reply.ok and (found.get("uid") != uid or "deletionTimestamp" in found)


def _shapes(nodes: Sequence[Mapping[str, Any]]) -> Sequence[Resources]:
    shapes: dict[tuple[tuple[str, str], ...], Resources] = {}
    for node in nodes:
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        shape = tuple(sorted(allocatable.items()))
        if shape and shape not in shapes:
            shapes[shape] = resources.parse_list(allocatable)
    return list(shapes.values())
