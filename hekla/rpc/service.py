"""What the ``__main__`` of every service has in common: its start and the order of its stop.

SIGTERM makes the service not ready; then its streams are closed, calls under way finish, the
loops end their pass, and what they stand on is closed: the reverse of how it was started.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, TypeVar
from urllib.parse import urlsplit

import grpc

from hekla import config, failpoint, lifecycle
from hekla.config import ConfigError, setting
from hekla.domain.errors import DomainError
from hekla.rpc.callers import CallerLimits
from hekla.rpc.http import Check, probes
from hekla.rpc.listen import ListenError, require_local
from hekla.rpc.server import Server, serving
from hekla.telemetry import configure_logging

DATABASE_SCHEMES: Final = frozenset({"postgresql", "postgres", "postgresql+psycopg"})
STUCK_AFTER: Final = timedelta(seconds=1)
LEAST_GARBAGE: Final = 50_000
"""New objects before a look for cycles: requests make many objects, and next to no cycles."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceConfig:
    """Settings that all services have; each says where it listens."""

    listen: str
    """Where the gRPC server listens: host:port, or unix:/path. Port 0 takes any."""

    http_listen: str
    """Where /healthz, /readyz and /metrics are served: host:port."""

    database_url: str = setting(env="HEKLA_DATABASE_URL", secret=True)
    """Where Postgres is: postgresql://…"""

    rpc_threads: int = setting(default=16, minimum=1)
    """Calls answered at once; streams are counted apart."""

    stream_permits: int = setting(default=256, minimum=0)
    """Streams open at once; each holds a thread for as long as it lasts."""

    caller_calls_per_second: int = setting(default=2_000, minimum=0)
    """How often one caller may call, twice that for a moment; 0 sets no limit."""

    caller_streams: int = setting(default=256, minimum=0)
    """Streams that one caller may have open; 0 sets no limit but that of all."""

    drain_timeout: timedelta = timedelta(seconds=10)
    """How long calls under way may take to finish when the process is told to stop."""

    insecure_listen: bool = setting(default=False, env="HEKLA_INSECURE_LISTEN")
    """Allow addresses that other machines reach, though there is neither TLS nor login."""

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = setting(
        default="INFO", env="HEKLA_LOG_LEVEL"
    )
    """The least important lines that are written."""

    def __post_init__(self) -> None:
        if not _is_postgres(self.database_url):
            raise ConfigError(
                ["HEKLA_DATABASE_URL is not postgresql://user@host:port/database"]
            )


Settings = TypeVar("Settings", bound=ServiceConfig)


def run(name: str, cls: type[Settings], main: Callable[[Settings], None]) -> None:
    """Run the service ``name`` with the settings of this process, and exit.

    What a user can mend (a setting, a port in use, a schema that is not migrated) is one line
    on stderr and exit code 1.
    """
    try:
        settings = config.load(cls, f"HEKLA_{name.upper()}", os.environ, sys.argv[1:])
        configure_logging(name, settings.log_level)
        _check_failpoints()
        require_local(settings.listen, settings.http_listen, insecure=settings.insecure_listen)
        gc.set_threshold(LEAST_GARBAGE)
        log.info("starting", extra={"settings": config.describe(settings)})
        main(settings)
    except (ConfigError, ListenError, DomainError) as error:
        line = " ".join(str(error).split())
        sys.stderr.write(f"hekla {name}: {line}\n")
        raise SystemExit(1) from None
    log.info("stopped")
    _leave()


@contextmanager
def listening(
    settings: ServiceConfig,
    termination: lifecycle.Termination,
    *,
    register: Callable[[grpc.Server], None],
    services: Sequence[str],
    ready: Mapping[str, Check],
) -> Iterator[Server]:
    """Serve gRPC and probes until the block ends; enter it last, it is left first."""
    checks = {
        "termination": lambda: "shutting down" if termination.is_set() else None,
        **ready,
    }
    with ExitStack() as running:
        http = running.enter_context(probes(settings.http_listen, ready=checks))
        server = running.enter_context(
            serving(
                register,
                listen=settings.listen,
                threads=settings.rpc_threads,
                services=services,
                drain_timeout=settings.drain_timeout,
                stream_permits=settings.stream_permits,
                caller_limits=CallerLimits(
                    settings.caller_calls_per_second, settings.caller_streams
                ),
            )
        )
        log.info("serving", extra={"listen": server.address, "http_listen": http.address})
        yield server


def _is_postgres(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in DATABASE_SCHEMES and parts.port != 0
    except ValueError:  # a port that is no number
        return False


def _leave() -> None:
    """Exit even if a call that was cut off blocks its thread: it would be waited for."""
    deadline = time.monotonic() + STUCK_AFTER.total_seconds()
    for thread in threading.enumerate():
        if thread.daemon or thread is threading.current_thread():
            continue
        thread.join(max(0, deadline - time.monotonic()))
        if thread.is_alive():
            log.warning("thread is stuck", extra={"thread": thread.name})
            logging.shutdown()
            os._exit(0)


def _check_failpoints() -> None:
    try:
        points = failpoint.parse(os.environ.get(failpoint.VARIABLE, ""))
    except ValueError as error:
        raise ConfigError([f"{failpoint.VARIABLE}: {error}"]) from None
    if points:
        log.warning("failpoints are armed", extra={"failpoints": sorted(points)})
