"""How every call is made: with a deadline, tried again, its errors in the domain's words."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, TypeVar

from google.protobuf.message import Message

from hekla.client.records import Change, ChangeType
from hekla.domain import timestamps
from hekla.domain.errors import ExhaustedError, UnavailableError
from hekla.rpc.channel import FIRST_PAUSE, LONGEST_PAUSE, patiently
from hekla.rpc.errors import translated

PAGE: Final = 500

Request_contra = TypeVar("Request_contra", bound=Message, contravariant=True)
Response_co = TypeVar("Response_co", bound=Message, covariant=True)
Item = TypeVar("Item")


class Unary(Protocol[Request_contra, Response_co]):
    """A method of a stub that answers once."""

    def __call__(
        self, request: Request_contra, /, *, timeout: float | None = None
    ) -> Response_co:
        """Call it."""
        ...


class Streaming(Protocol[Request_contra, Response_co]):
    """A method of a stub that answers with a stream."""

    def __call__(
        self, request: Request_contra, /, *, timeout: float | None = None
    ) -> Iterator[Response_co]:
        """Call it."""
        ...


class Caller:
    """Calls one service."""

    def __init__(
        self,
        peer: str,
        *,
        closed: threading.Event,
        timeout: timedelta,
        patience: timedelta,
    ) -> None:
        """Take the rules.

        Args:
            peer: what errors call the service.
            closed: set once the client has hung up.
            timeout: how long one try may take.
            patience: for how long to try again while the service cannot be reached.
        """
        self.peer = peer
        self._closed = closed
        self._timeout = timeout.total_seconds()
        self._patience = patience.total_seconds()

    def unary(
        self, method: Unary[Request_contra, Response_co], request: Request_contra
    ) -> Response_co:
        """Call, and call again while the service is away. Writes carry a request id.

        Raises:
            DomainError: what the service answered, or that it cannot be reached.
        """

        def call() -> Response_co:
            with self._translated():
                return method(request, timeout=self._timeout)

        return patiently(call, patience=self._patience, going=lambda: not self._closed.is_set())

    def stream(
        self,
        method: Streaming[Request_contra, Response_co],
        request: Request_contra,
        timeout: float | None,
    ) -> Iterator[Response_co]:
        """Call, with errors in the domain's words.

        The stream ends quietly at its deadline, and when the client hangs up.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            with self._translated():
                stream = method(request, timeout=timeout)
                try:
                    yield from stream
                finally:
                    _cancel(stream)
        except UnavailableError:
            over = deadline is not None and time.monotonic() >= deadline
            if not over and not self._closed.is_set():
                raise

    def watch(
        self,
        opened: Callable[[str, float | None], Iterator[Any]],
        item: Callable[[Any], Item | None],
        *,
        cursor: str,
        timeout: timedelta | None,
        on_outage: Callable[[UnavailableError], None] | None,
    ) -> Iterator[Change[Item]]:
        """Follow a watch, resuming where it was cut off, until ``timeout`` is over.

        ``opened(cursor, seconds)`` opens the stream. While the service is away, or has as many
        streams as it may have, ``on_outage`` is told of each failed try; without it the error
        is raised after the usual patience. A stream that was ended because we read too slowly
        is resumed like any other.

        Raises:
            CursorExpiredError: the cursor is too old: list again.
        """
        end = None if timeout is None else time.monotonic() + timeout.total_seconds()
        away_since: float | None = None
        pause = FIRST_PAUSE
        while (left := None if end is None else end - time.monotonic()) is None or left > 0:
            try:
                for message in opened(cursor, left):
                    away_since, pause = None, FIRST_PAUSE
                    cursor = message.cursor or cursor
                    yield Change(cursor, ChangeType(message.type), item(message))
            except (UnavailableError, ExhaustedError) as error:
                now = time.monotonic()
                away_since = now if away_since is None else away_since
                if on_outage is not None:
                    on_outage(UnavailableError(str(error)))
                elif now - away_since >= self._patience:
                    raise
                if isinstance(error, ExhaustedError) and error.retry_after is not None:
                    pause = max(pause, error.retry_after.total_seconds())
            if self._closed.is_set():
                return
            # The service also ends streams in peace: when it stops, and when we are slow.
            rest = pause if end is None else min(pause, max(0.0, end - time.monotonic()))
            time.sleep(rest)
            pause = min(2 * pause, max(pause, LONGEST_PAUSE))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            with translated(self.peer):
                yield
        except ValueError as error:  # what a closed channel raises
            if not self._closed.is_set():
                raise
            raise UnavailableError(f"the connection to {self.peer} is closed") from error


def _cancel(stream: Any) -> None:
    """Tell the service that nobody reads any more, so that it frees the stream."""
    stream.cancel()


def pages(
    fetch: Callable[[str, int], tuple[Sequence[Item], str, str]], limit: int | None = None
) -> tuple[Sequence[Item], str]:
    """All pages of a list, and the first one's cursor: what changed since is watched.

    ``fetch(token, size)`` gives one page's items, the next page's token and the cursor. With a
    ``limit`` no more than so many items are asked for.
    """
    size = PAGE if limit is None else max(1, min(PAGE, limit))
    items, token, cursor = fetch("", size)
    found = list(items)
    while token and (limit is None or len(found) < limit):
        following, token, _ = fetch(token, size)
        found += following
    return found[:limit], cursor


def instant(when: datetime | None) -> str:
    """A bound of a list as it is sent; empty for none."""
    return "" if when is None else timestamps.to_micro_text(when)


def request_id() -> str:
    """A name for one write, so that repeating it does it once."""
    return uuid.uuid4().hex
