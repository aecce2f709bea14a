"""A gRPC server with what every service has: errors, figures, health, reflection, draining."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from hekla import lifecycle
from hekla.rpc.callers import NO_LIMITS, CallerLimits, Callers
from hekla.rpc.interceptors import Surround
from hekla.rpc.listen import UNIX, ListenError, require_free
from hekla.rpc.streams import Streams

LARGEST_MESSAGE: Final = 16 * 2**20
STREAM_PERMITS: Final = 256
STALL_TIMEOUT: Final = timedelta(seconds=60)
CLOSE_TIMEOUT: Final = timedelta(seconds=2)

_OPTIONS: Final = (
    ("grpc.so_reuseport", 0),  # else a second process shares the port, and half the calls
    ("grpc.max_receive_message_length", LARGEST_MESSAGE),
    ("grpc.max_send_message_length", LARGEST_MESSAGE),
    # A client that vanished without a word is found within a minute, and its streams freed.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.http2.max_ping_strikes", 0),
)


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs."""

    address: str
    """Where clients find it: with the port that was bound, if any was asked for."""
    port: int
    """0 on a Unix socket."""


@contextmanager
def serving(
    register: Callable[[grpc.Server], None],
    *,
    listen: str,
    threads: int,
    services: Sequence[str],
    drain_timeout: timedelta = timedelta(0),
    stream_permits: int = STREAM_PERMITS,
    stall_timeout: timedelta = STALL_TIMEOUT,
    caller_limits: CallerLimits = NO_LIMITS,
) -> Iterator[Server]:
    """Serve until the block ends.

    ``threads`` calls are answered at once, and ``stream_permits`` streams beside them.
    ``services`` are the full names of what ``register`` adds, for health and reflection. On the
    way out the server says that it is not serving, closes its streams, and lets the other
    calls under way finish for up to ``drain_timeout``.

    Raises:
        ListenError: nothing can listen on ``listen``.
    """
    streams = Streams(stream_permits, stall_timeout)
    surround = Surround(streams, Callers(caller_limits))
    server = grpc.server(
        ThreadPoolExecutor(threads, thread_name_prefix="rpc"),
        interceptors=[surround],
        options=_OPTIONS,
    )
    status = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(status, server)
    reflection.enable_server_reflection(
        [*services, health.SERVICE_NAME, reflection.SERVICE_NAME], server
    )
    register(server)
    running = _bind(server, listen)
    server.start()
    for service in ("", *services):
        status.set(service, health_pb2.HealthCheckResponse.SERVING)
    with lifecycle.repeating("stalled-streams", streams.cancel_stalled, idle=stall_timeout / 8):
        try:
            yield running
        finally:
            status.enter_graceful_shutdown()
            streams.close(CLOSE_TIMEOUT)
            server.stop(drain_timeout.total_seconds()).wait()
            surround.shutdown()


def _bind(server: grpc.Server, listen: str) -> Server:
    if not listen.startswith(UNIX):
        require_free(listen)
    try:
        port = server.add_insecure_port(listen)
    except RuntimeError as error:
        raise ListenError(f"cannot listen on {listen}") from error
    if listen.startswith(UNIX):
        return Server(address=listen, port=0)
    return Server(address=f"{listen.rpartition(':')[0]}:{port}", port=port)
