"""The one way to the scheduling thread: a queue of events."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

from services.scheduler.events import Batch, Event, Full

LONGEST: Final = 256
"""Batches of changes that may wait; then whoever brings more has to wait too."""


class Inbox:
    """Events in the order in which they came."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._changed = threading.Condition()
        self._first_at = 0.0
        self._closed = False

    def put(self, event: Event) -> None:
        """Add an event; waits while too many changes are there. Nobody else ever waits."""
        with self._changed:
            if isinstance(event, Batch | Full):
                self._changed.wait_for(lambda: self._closed or len(self._events) < LONGEST)
            if not self._events:
                self._first_at = time.monotonic()
            self._events.append(event)
            self._changed.notify_all()

    def wait(self, timeout: float) -> float | None:
        """Wait for an event; when the first of those that are there came, or None."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._events, timeout)
            return self._first_at if self._events else None

    def drain(self) -> Sequence[Event]:
        """Take all events."""
        with self._changed:
            events = list(self._events)
            self._events.clear()
            self._changed.notify_all()
        return events

    def close(self) -> None:
        """Let everybody go who waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
