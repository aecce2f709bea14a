"""Streams to clients: how many there may be, and how each ends.

A stream holds a thread for as long as it lasts, so streams have threads of their own and never
take those of other calls. One ends when its method is done, when its client goes or does not
read, or when the server closes; a method learns of the last three by the callback it gave to
``context.add_callback`` and by ``context.is_active()``, which is no different from a client
that went. A client is told ``UNAVAILABLE`` by a server that closes, and resumes elsewhere.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, Final, cast

import grpc

from hekla.domain.errors import ExhaustedError, UnavailableError
from hekla.telemetry import metrics

RETRY_AFTER: Final = timedelta(seconds=5)
SERVICE_PERMITS: Final = 64
"""Streams that our own services may have open beside those of all others."""
_REFUSING: Final = 8  # threads beyond the permits, which tell callers that there are no more

log = logging.getLogger(__name__)


class StreamContext:
    """A call's context, which also ends when the server closes its streams."""

    def __init__(
        self, context: grpc.ServicerContext, method: str, *, to_service: bool = False
    ) -> None:
        self._context = context
        self._callbacks: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self.method = method
        self.to_service = to_service
        self.closing = False
        self.sending_since: float | None = None
        """When the message under way was handed to gRPC, on the monotonic clock."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def is_active(self) -> bool:
        """Whether the client still wants more, and the server still gives it."""
        return not self.closing and self._context.is_active()

    def add_callback(self, callback: Callable[[], None]) -> bool:
        """Call ``callback`` when the stream ends for whatever reason; False if it has."""
        once = _Once(callback)
        with self._lock:
            if self.closing:
                return False
            self._callbacks.append(once)
        return self._context.add_callback(once)

    def close(self) -> None:
        """Tell the method to end."""
        with self._lock:
            self.closing = True
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback()


class _Once:
    """A callback that whoever comes first calls."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback
        self._free = threading.Lock()

    def __call__(self) -> None:
        if self._free.acquire(blocking=False):
            self._callback()


def on_threads(behaviour: Callable[..., Any], threads: ThreadPoolExecutor) -> None:
    """Have gRPC run ``behaviour`` on ``threads`` instead of the server's."""
    cast("Any", behaviour).experimental_thread_pool = threads


class Streams:
    """The streams of one server."""

    def __init__(self, permits: int, stall_timeout: timedelta) -> None:
        self._permits = permits
        self._stall_timeout = stall_timeout
        self.threads = ThreadPoolExecutor(
            permits + SERVICE_PERMITS + _REFUSING, thread_name_prefix="stream"
        )
        self._changed = threading.Condition()
        self._open: set[StreamContext] = set()
        self._closing = False

    def run(
        self,
        behaviour: Callable[[Any, grpc.ServicerContext], Iterator[Any]],
        request: Any,
        context: grpc.ServicerContext,
        method: str,
        *,
        to_service: bool = False,
    ) -> Iterator[Any]:
        """Run one stream to its end, whoever ends it.

        One ``to_service`` takes a permit of those that only our own services have.

        Raises:
            ExhaustedError: as many are open as may be.
            UnavailableError: the server is closing.
        """
        stream = self._admit(StreamContext(context, method, to_service=to_service))
        metrics.rpc_streams.labels(method).inc()
        try:
            for message in behaviour(request, cast("grpc.ServicerContext", stream)):
                stream.sending_since = time.monotonic()
                yield message
                stream.sending_since = None
                if not stream.is_active():
                    break
            if stream.closing:
                raise UnavailableError("the service is closing; resume from the last cursor")
        finally:
            metrics.rpc_streams.labels(method).dec()
            with self._changed:
                self._open.discard(stream)
                self._changed.notify_all()

    def close(self, timeout: timedelta) -> None:
        """End every stream and take no more; cancel those that do not end in time."""
        with self._changed:
            self._closing = True
            streams = list(self._open)
        for stream in streams:
            stream.close()
        with self._changed:
            self._changed.wait_for(lambda: not self._open, timeout.total_seconds())
            left = list(self._open)
        for stream in left:
            log.warning("stream does not end", extra={"method": stream.method})
            stream.cancel()

    def cancel_stalled(self) -> bool:
        """Cancel the streams whose clients have not read for too long; always idle after."""
        before = time.monotonic() - self._stall_timeout.total_seconds()
        with self._changed:
            streams = list(self._open)
        for stream in streams:
            since = stream.sending_since
            if since is not None and since < before:
                metrics.rpc_streams_stalled.labels(stream.method).inc()
                log.warning("client does not read", extra={"method": stream.method})
                stream.cancel()
        return False

    def _admit(self, stream: StreamContext) -> StreamContext:
        permits = SERVICE_PERMITS if stream.to_service else self._permits
        with self._changed:
            if self._closing:
                raise UnavailableError("the service is closing")
            if sum(one.to_service is stream.to_service for one in self._open) >= permits:
                raise ExhaustedError(
                    f"{permits} streams are open, as many as this service may have",
                    retry_after=RETRY_AFTER,
                )
            self._open.add(stream)
        return stream
