"""Says on custom resources why they are not taken: in their status, and by an event."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from hekla.domain import timestamps
from hekla.domain.names import Key
from hekla.kube.mirror import bodies
from hekla.kube.mirror.board import Board
from hekla.kube.mirror.custom import Custom
from hekla.kube.mirror.rows import Mirrored
from hekla.kube.mirror.writing import Writer
from hekla.telemetry import metrics

log = logging.getLogger(__name__)


class Complaints:
    """Says each thing once."""

    def __init__(self, kind: Mirrored, board: Board, writer: Writer) -> None:
        self._kind = kind
        self._board = board
        self._writer = writer
        self._said: dict[Key, tuple[str, str, str]] = {}

    def say(self, custom: Custom, reason: str, message: str, *, in_status: bool = True) -> None:
        """Say it, unless it was the last thing said.

        ``in_status``: whether the custom resource has no other status to show.
        """
        said = (custom.uid, reason, message)
        if self._said.get(custom.key) == said:
            return
        at = timestamps.to_text(datetime.now(UTC))
        log.warning(
            "custom resource is not taken",
            extra={
                "kind": self._kind.name,
                "key": str(custom.key),
                "reason": reason,
                "error": message,
            },
        )
        metrics.mirror_refused.labels(self._kind.name, reason).inc()
        if in_status and self._kind.complaint is not None:
            try:
                status = self._kind.complaint(custom, reason, message, at)
            except Exception:  # one item of a batch; the event below tells it too
                log.exception("complaint not shown", extra={"key": str(custom.key)})
            else:
                self._board.show(custom.key, custom.uid, status, urgent=True)
        self._writer.event(bodies.event(self._kind.resource, custom, reason, message, at))
        self._said[custom.key] = said

    def forget(self, key: Key) -> None:
        """It was taken, is gone, or may not have been told: what is said next is news."""
        self._said.pop(key, None)
