"""What Kubernetes knows beside what is judged: namespaces and the size of nodes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from hekla.domain import resources
from hekla.domain.errors import DomainError
from hekla.domain.resources import Resources
from hekla.kube.client import KubeClient
from hekla.kube.resources import NAMESPACES, NODES

NODES_KEPT: Final = timedelta(minutes=5)
TIMEOUT: Final = 2.0
"""Seconds. What is asked for here only completes and warns: a review does not wait for it."""

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


def _shapes(nodes: Sequence[Mapping[str, Any]]) -> Sequence[Resources]:
    shapes: dict[tuple[tuple[str, str], ...], Resources] = {}
    for node in nodes:
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        shape = tuple(sorted(allocatable.items()))
        if shape and shape not in shapes:
            shapes[shape] = resources.parse_list(allocatable)
    return list(shapes.values())
