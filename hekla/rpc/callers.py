"""How much one caller may ask for, so that none takes what is there for all.

A caller is who the metadata ``x-hekla-caller`` says, else the address of its machine. That is a
matter of fairness and not of security: until callers log in, anyone may say anything. Our own
services say who they are, for users who open many streams must not keep them from theirs.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, cast

import grpc

from hekla.domain.errors import ExhaustedError
from hekla.telemetry import metrics

CALLER: Final = "x-hekla-caller"
LONGEST_NAME: Final = 128
SERVICE: Final = "hekla-"
"""What the names that our services give begin with."""
MOST_KNOWN: Final = 10_000
"""Callers whose calls are counted at once; who called longest ago is forgotten first."""
BURST_SECONDS: Final = 2.0
"""For so long a caller that was quiet may call twice as often."""
STREAMS_RETRY: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class CallerLimits:
    """What one caller may do; 0 sets no limit."""

    calls_per_second: float = 0
    streams: int = 0
    """Open at once."""


NO_LIMITS: Final = CallerLimits()


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class Callers:
    """Counts what callers do. ``clock`` is a monotonic one."""

    def __init__(
        self, limits: CallerLimits, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._streams: Counter[str] = Counter()

    def take(self, caller: str) -> None:
        """Count one call.

        Raises:
            ExhaustedError: it came too soon; it says when to come again.
        """
        rate = self._limits.calls_per_second
        if not rate:
            return
        most = max(1.0, rate * BURST_SECONDS)
        with self._lock:
            now = self._clock()
            bucket = self._buckets.pop(caller, None) or _Bucket(most, now)
            self._buckets[caller] = bucket
            if len(self._buckets) > MOST_KNOWN:
                self._buckets.popitem(last=False)
            bucket.left = min(most, bucket.left + max(0.0, now - bucket.at) * rate)
            bucket.at = now
            if bucket.left >= 1:
                bucket.left -= 1
                return
            wait = (1 - bucket.left) / rate
        metrics.rpc_limited.labels("calls").inc()
        raise ExhaustedError(
            f"{caller} calls more often than {rate:g} times a second; call again later",
            retry_after=timedelta(seconds=wait),
        )

    @contextmanager
    def streaming(self, caller: str) -> Iterator[None]:
        """Count a stream until the block ends.

        Raises:
            ExhaustedError: the caller has as many as it may.
        """
        most = self._limits.streams
        with self._lock:
            refused = bool(most) and self._streams[caller] >= most
            if not refused:
                self._streams[caller] += 1
        if refused:
            metrics.rpc_limited.labels("streams").inc()
            raise ExhaustedError(
                f"{caller} has {most} streams open, as many as one caller may have",
                retry_after=STREAMS_RETRY,
            )
        try:
            yield
        finally:
            with self._lock:
                self._streams[caller] -= 1
                if not self._streams[caller]:
                    del self._streams[caller]


def caller_of(context: grpc.ServicerContext) -> str:
    """Who calls: by the metadata, else by the machine that the call came from."""
    metadata = cast("Any", context).invocation_metadata() or ()
    for name, value in metadata:
        if name == CALLER and isinstance(value, str) and value:
            given = value[:LONGEST_NAME]
            # Replicas of a service have one name, and each may do as much as any other caller.
            return f"{given} at {_machine(context)}" if is_service(given) else given
    return _machine(context)


def is_service(caller: str) -> bool:
    """Whether a caller is one of our own services."""
    return caller.startswith(SERVICE)


def _machine(context: grpc.ServicerContext) -> str:
    peer: str = context.peer() or "unknown"
    # ipv4:10.0.0.1:51234, ipv6:[::1]:51234, unix:/path
    return peer.rpartition(":")[0] if peer.startswith("ip") else peer.partition(":")[0]
