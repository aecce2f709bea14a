"""Connections to services: how they are kept, and what is tried again."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar, cast

import grpc

from hekla.domain.errors import UnavailableError
from hekla.rpc.callers import CALLER, SERVICE
from hekla.rpc.server import LARGEST_MESSAGE

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 1.0

_OPTIONS: Final = (
    # gRPC's own retries can lose a call for good: a stream that a stopping server refused, and
    # that was tried again as the connection went away, neither ended nor could be cancelled.
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),  # a proxy for the web does not lead to our services
    ("grpc.max_receive_message_length", LARGEST_MESSAGE),
    ("grpc.max_send_message_length", LARGEST_MESSAGE),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # A service that was started again is found within a second, not within two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)

Answer = TypeVar("Answer")


def connect(address: str, *, service: str | None = None) -> grpc.Channel:
    """A channel to ``host:port`` or ``unix:/path``; it connects when it is first used.

    No call is tried again by itself (see :func:`patiently`), and every call names a deadline.
    ``service`` is which of our own services calls, for it has streams of its own there.
    """
    channel = grpc.insecure_channel(address, options=_OPTIONS)
    return channel if service is None else cast("grpc.Channel", _Named(channel, service))


class _Named:
    """A channel whose calls say who calls. An interceptor would cost a tenth of each call."""

    def __init__(self, channel: grpc.Channel, service: str) -> None:
        self._channel = channel
        self._metadata = ((CALLER, f"{SERVICE}{service}"),)

    def unary_unary(self, *args: Any, **options: Any) -> Callable[..., Any]:
        """A method that answers once."""
        return partial(self._channel.unary_unary(*args, **options), metadata=self._metadata)

    def unary_stream(self, *args: Any, **options: Any) -> Callable[..., Any]:
        """A method that streams."""
        return partial(self._channel.unary_stream(*args, **options), metadata=self._metadata)

    def close(self) -> None:
        """Close the channel; calls under way end."""
        self._channel.close()


def patiently(
    call: Callable[[], Answer],
    *,
    patience: float,
    going: Callable[[], bool] = lambda: True,
) -> Answer:
    """Call, and call again for ``patience`` seconds while the service cannot be reached.

    For calls that answer once: reads are safe to repeat, and writes carry a request id. Who
    reads a stream opens it again from where it was.

    Raises:
        UnavailableError: it still cannot be reached, or ``going`` says that it is over.
    """
    until = time.monotonic() + patience
    pause = FIRST_PAUSE
    while True:
        try:
            return call()
        except UnavailableError:
            if not going() or time.monotonic() + pause > until:
                raise
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
