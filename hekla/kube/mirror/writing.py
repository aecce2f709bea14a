"""Writes custom resources, in batches: what comes of each, and when it is tried again."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

from hekla import failpoint
from hekla.domain.names import Key
from hekla.kube.client import KubeClient
from hekla.kube.mirror import bodies
from hekla.kube.mirror.board import Board
from hekla.kube.mirror.custom import Custom, read
from hekla.kube.mirror.deciding import Create, Delete, Rewrite
from hekla.kube.mirror.rows import Mirrored
from hekla.kube.requests import Patch, Reply
from hekla.kube.resources import EVENTS
from hekla.telemetry import metrics

log = logging.getLogger(__name__)

TIMEOUT: Final = 10.0
"""Seconds for a batch of requests."""
NOT_FOUND: Final = "NotFound"
_PASSED: Final = frozenset({HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND})
"""Answers that say that we were late: the watch tells of what there is."""


class Writer:
    """Writes for one kind."""

    def __init__(self, kind: Mirrored, kube: KubeClient, board: Board) -> None:
        self._kind = kind
        self._kube = kube
        self._board = board

    def create(self, steps: Sequence[Create]) -> set[Key]:
        """Make custom resources; return the names of those that were not made."""
        kind = self._kind
        made = [
            bodies.creation(kind.resource, step.row, status_apart=kind.status_apart)
            for step in steps
        ]
        replies = self._kube.create_many(kind.resource, made, timeout=TIMEOUT)
        failed = set()
        for step, reply in zip(steps, replies, strict=True):
            key = step.row.key
            self._hear(reply)  # also of the one that has the name already
            if self._settle("create", key, reply):
                self._board.mark([key])
            else:
                failed.add(key)
        return failed

    def rewrite(self, steps: Sequence[Rewrite]) -> set[Key]:
        """Bring custom resources up to their rows; return the names of those that are not."""
        patches = [bodies.rewrite(self._kind.resource, step.custom, step.row) for step in steps]
        replies = self._kube.patch_many(patches, timeout=TIMEOUT)
        failed = set()
        for step, reply in zip(steps, replies, strict=True):
            if self._settle("rewrite", step.row.key, reply):
                self._hear(reply)
            else:
                failed.add(step.row.key)
        return failed

    def delete(self, steps: Sequence[Delete]) -> set[Key]:
        """Delete custom resources; return the names of those that stay."""
        deletions = [bodies.deletion(self._kind.resource, step.custom) for step in steps]
        replies = self._kube.delete_many(deletions, timeout=TIMEOUT)
        return {
            step.custom.key
            for step, reply in zip(steps, replies, strict=True)
            if not (reply.status in _PASSED or self._settle("delete", step.custom.key, reply))
        }

    def statuses(self, patches: Sequence[tuple[Key, Patch]]) -> set[Key]:
        """Write statuses; return the names of those that were not written."""
        replies = self._kube.patch_many([patch for _, patch in patches], timeout=TIMEOUT)
        failpoint.hit("mirror.shown")
        failed = set()
        for (key, _), reply in zip(patches, replies, strict=True):
            if self._settle("status", key, reply):
                self._hear(reply)
            else:
                failed.add(key)
        return failed

    def event(self, body: dict[str, Any]) -> None:
        """Have something said of an object; it does not matter if it is said already."""
        self._kube.create_many(EVENTS, [body], timeout=TIMEOUT)

    def find(self, key: Key) -> tuple[bool, Custom | None]:
        """Whether it is known what has a name now, and that."""
        reply = self._kube.get(
            self._kind.resource, key.namespace or None, key.name, timeout=TIMEOUT
        )
        if reply.status == HTTPStatus.NOT_FOUND:
            # Not any 404: a proxy, or a server that does not serve the kind, knows nothing.
            return reply.reason == NOT_FOUND, None
        custom = self._hear(reply) if reply.ok else None
        return custom is not None, custom

    def _settle(self, verb: str, key: Key, reply: Reply) -> bool:
        """Count what came of a request; have what failed tried again."""
        result = "ok" if reply.ok else "refused" if reply.status else "unknown"
        metrics.mirror_writes.labels(self._kind.name, verb, result).inc()
        if reply.ok:
            return True
        if reply.status not in _PASSED:
            log.warning(
                "custom resource not written",
                extra={
                    "kind": self._kind.name,
                    "verb": verb,
                    "key": str(key),
                    "status": reply.status,
                    "error": reply.message or reply.reason,
                },
            )
        self._board.put_off([key])
        return False

    def _hear(self, reply: Reply) -> Custom | None:
        if reply.object is None:
            return None
        try:
            custom = read(self._kind.resource, reply.object)
        except ValueError:
            return None  # a Status, as deletions may answer
        self._board.hear(custom)
        return custom
