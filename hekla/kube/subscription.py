"""The consumer's end of a stream: batches wait here until they are taken.

Taking a batch gives the engine credit for another, so a consumer that is busy holds back the
stream at its source and no more than ``WINDOW`` batches wait for it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

from hekla.domain.errors import DomainError, UnavailableError
from hekla.kube.errors import error_for
from hekla.kube.events import RELISTED, Objects, WatchEvent, decode_lines, decode_page
from hekla.kube.link import Link
from hekla.kube.replies import read_outcome
from hekla.kube.wire import (
    Batch,
    Close,
    Credit,
    Ended,
    FromEngine,
    Logs,
    Open,
    Outcome,
    Page,
    Relisted,
    Watch,
)

WINDOW: Final = 4


class _Full(NamedTuple):
    """All pages of a full list."""

    pages: list[Page]


class Stream(Protocol):
    """What the client needs of either kind of stream."""

    number: int
    lasting: bool
    """Whether it goes on with another engine when its own dies."""

    def opening(self) -> Open:
        """The message that begins it."""

    def receive(self, message: FromEngine) -> None:
        """Take what the engine sent; must not block."""

    def lost(self) -> None:
        """The engine died."""

    def closed(self) -> None:
        """The client is closed."""


class Subscription:
    """A watch. Iterating over it waits for batches, until it is closed."""

    lasting = True

    def __init__(
        self, number: int, watch: Watch, link: Link, forget: Callable[[int], None]
    ) -> None:
        self.number = number
        self._watch = watch
        self._link = link
        self._forget = forget
        self._ready: queue.SimpleQueue[list[Any] | _Full | DomainError | None] = (
            queue.SimpleQueue()
        )
        self._pages: list[Page] = []
        self._listed = threading.Event()
        self._ended = False

    def __iter__(self) -> Iterator[list[WatchEvent]]:
        while True:
            batch = self.take(None)
            if not batch:
                return
            yield batch

    def take(self, timeout: float | None) -> list[WatchEvent]:
        """The next batch; empty if there is none within ``timeout`` seconds, or ever more.

        Raises:
            UnavailableError: the watch can never work, as there is no such projection.
        """
        if self._ended:
            return []
        try:
            taken = self._ready.get(timeout=timeout)
        except queue.Empty:
            return []
        if taken is None or isinstance(taken, DomainError):
            self._ended = True
            self._forget(self.number)
            if taken is None:
                return []
            raise taken
        with suppress(UnavailableError):
            self._link.send(Credit(self.number, 1), 0)
        return self._decoded(taken)

    @property
    def listed(self) -> bool:
        """Whether the first full list has come: before that nothing is known."""
        return self._listed.is_set()

    @property
    def waiting(self) -> int:
        """How many batches are there to be taken: what a busy consumer is behind by."""
        return self._ready.qsize()

    @property
    def ended(self) -> bool:
        """Whether nothing will come any more."""
        return self._ended

    def close(self) -> None:
        """End it; whoever waits for a batch is let go."""
        self._forget(self.number)
        with suppress(UnavailableError):
            self._link.send(Close(self.number), 0)
        self.closed()

    # Called by the client.

    def opening(self) -> Open:
        """The message that begins it, also anew."""
        return Open(self.number, self._watch, max(0, WINDOW - self._ready.qsize()))

    def receive(self, message: FromEngine) -> None:
        """Take what the engine sent."""
        match message:
            case Batch():
                self._ready.put(message.items)
            case Page():
                self._pages = [message] if message.first else [*self._pages, message]
            case Relisted():
                self._ready.put(_Full(self._pages))
                self._pages = []
                self._listed.set()
            case Ended(_, outcome):
                self._ready.put(_error(outcome))

    def lost(self) -> None:
        """The engine died; another will list anew."""
        self._pages = []

    def closed(self) -> None:
        """No more batches."""
        self._ready.put(None)

    def _decoded(self, taken: list[Any] | _Full) -> list[WatchEvent]:
        projected = self._watch.project is not None
        if isinstance(taken, _Full):
            length = sum(page.length for page in taken.pages)
            pages = [page.page for page in taken.pages]
            objects = Objects(pages, length, list if projected else decode_page)
            return [WatchEvent(RELISTED, objects)]
        if projected:
            return [WatchEvent(kind, item) for kind, item in taken]
        return decode_lines(taken)


class LogStream:
    """An iterator over pieces of a log."""

    lasting = False

    def __init__(
        self, number: int, logs: Logs, link: Link, forget: Callable[[int], None]
    ) -> None:
        self.number = number
        self._logs = logs
        self._link = link
        self._forget = forget
        self._ready: queue.SimpleQueue[list[bytes] | DomainError | None] = queue.SimpleQueue()
        self._over = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._over:
            raise StopIteration
        taken = self._ready.get()
        if isinstance(taken, list):
            with suppress(UnavailableError):
                self._link.send(Credit(self.number, 1), 0)
            return b"".join(taken)
        self._over = True
        self._forget(self.number)
        if taken is None:
            raise StopIteration
        raise taken

    def close(self) -> None:
        """End it; whoever waits for a piece is let go."""
        self._forget(self.number)
        with suppress(UnavailableError):
            self._link.send(Close(self.number), 0)
        self.closed()

    # Called by the client.

    def opening(self) -> Open:
        """The message that begins it."""
        return Open(self.number, self._logs, WINDOW)

    def receive(self, message: FromEngine) -> None:
        """Take what the engine sent."""
        match message:
            case Batch():
                self._ready.put(message.items)
            case Ended(_, outcome):
                self._ready.put(None if outcome.status == 200 else _error(outcome))

    def lost(self) -> None:
        """The engine died: where it was in the log is not known."""
        self._ready.put(UnavailableError("the Kubernetes I/O process died"))

    def closed(self) -> None:
        """No more pieces."""
        self._ready.put(None)


def _error(outcome: Outcome) -> DomainError:
    reply = read_outcome(outcome)
    return error_for(reply.status, reply.reason, reply.message)
