"""What measurements mean: a finding each, and what to do where it is not well. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hekla.store.health import Health

GIB: Final = 2**30


class State(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    """It works now, and may not for long."""
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check."""

    check: str
    state: State
    found: str
    todo: str = ""


@dataclass(frozen=True, slots=True)
class Bounds:
    """From where on a measure is a warning, and from where on a failure."""

    warn: float
    fail: float

    def state(self, value: float) -> State:
        """How ``value`` is, if less is better."""
        return (
            State.FAIL if value >= self.fail else State.WARN if value >= self.warn else State.OK
        )


OLDEST_POSTGRES: Final = 140000
"""As Postgres counts. The oldest that the PostgreSQL project still looks after."""
CONNECTIONS: Final = Bounds(0.8, 0.95)
"""Of those that clients may have."""
OLDEST_SECONDS: Final = Bounds(60, 600)
SKEW_SECONDS: Final = Bounds(1, 30)
FEED_LAG_SECONDS: Final = Bounds(3, 5)
"""Readers that hear hints look by themselves about once a second."""
WORK_SECONDS: Final = Bounds(30, 300)
FREE_WARN, FREE_FAIL = 2 * GIB, GIB // 2
KUBERNETES_SECONDS: Final = Bounds(1, 10)


def versions(found: Mapping[str, str]) -> Finding:
    """What runs here."""
    return Finding("versions", State.OK, ", ".join(f"{k} {v}" for k, v in found.items()))


def postgres(health: Health) -> Iterator[Finding]:
    """The server and its settings."""
    if health.version_number < OLDEST_POSTGRES:
        yield Finding(
            "postgres", State.FAIL, f"version {health.version}",
            f"upgrade to {OLDEST_POSTGRES // 10000} or newer",
        )  # fmt: skip
    elif health.replica:
        yield Finding(
            "postgres", State.FAIL, f"version {health.version}, a replica that takes no writes",
            "let HEKLA_DATABASE_URL name the primary",
        )  # fmt: skip
    else:
        yield Finding("postgres", State.OK, f"version {health.version}, reachable")
    off = [name for name, value in health.settings.items() if value == "off"]
    yield Finding(
        "postgres settings",
        State.WARN if off else State.OK,
        ", ".join(f"{name}={value}" for name, value in health.settings.items()),
        f"turn on {', '.join(off)}, else what was answered may be lost or tables swell"
        if off
        else "",
    )
    yield _connections(health)
    yield _oldest(health)
    yield Finding(
        "database size", State.OK, f"{_size(health.database_bytes)} in {health.database}"
    )


def _connections(health: Health) -> Finding:
    share = health.connections / max(1, health.most_connections)
    state = CONNECTIONS.state(share)
    return Finding(
        "connections",
        state,
        f"{health.connections} of {health.most_connections} used, {health.ours} by Hekla here",
        "" if state is State.OK else "raise max_connections, or lower HEKLA_…_POOL_SIZE",
    )


def _oldest(health: Health) -> Finding:
    oldest = health.oldest
    if oldest is None:
        return Finding("oldest transaction", State.OK, "none is open")
    state = OLDEST_SECONDS.state(oldest.seconds)
    todo = (
        f"end it: select pg_terminate_backend({oldest.pid})"
        if oldest.pid is not None
        else "commit or roll it back: nothing behind it is cleaned up"
    )
    return Finding(
        "oldest transaction",
        state,
        f"{oldest.seconds:.0f} s: {oldest.who}",
        "" if state is State.OK else todo,
    )


def schema(current: str | None, head: str, problem: str | None) -> Finding:
    """Whether the database has the schema this code knows."""
    if problem is None:
        return Finding("schema", State.OK, f"at {head}")
    found = f"at {current}, this version needs {head}" if current else "none"
    known = "newer" not in problem
    todo = (
        "run 'hekla migrate'" if known else "run the version that migrated it, or a newer one"
    )
    return Finding("schema", State.FAIL, found, todo)


def skew(seconds: float, uncertain: float) -> Finding:
    """How far this machine's clock is from Postgres', give or take ``uncertain``."""
    state = SKEW_SECONDS.state(max(0.0, abs(seconds) - uncertain))
    return Finding(
        "clock",
        state,
        f"{abs(seconds):.3f} s {'ahead of' if seconds > 0 else 'behind'} Postgres"
        f" (± {uncertain:.3f} s)",
        "" if state is State.OK else "keep the clocks of both machines by NTP",
    )


def work(due: int, oldest_seconds: float) -> Finding:
    """Whether jobs that want a look get one."""
    state = WORK_SECONDS.state(oldest_seconds)
    return Finding(
        "work",
        state,
        f"{due} jobs want a look, the oldest for {oldest_seconds:.0f} s",
        "" if state is State.OK else "see that a controller runs, and what its log says",
    )


def leader(holder: str | None, remaining_seconds: float) -> Finding:
    """Whether a scheduler leads."""
    if holder is None or remaining_seconds <= 0:
        return Finding(
            "scheduler leads", State.FAIL, "nobody does",
            "see that a scheduler runs, and what its log says",
        )  # fmt: skip
    return Finding("scheduler leads", State.OK, f"{holder} does")


def service(name: str, where: str, reasons: Sequence[str] | None, problem: str) -> Finding:
    """Whether a service is ready: ``reasons`` why not, or None if it does not answer."""
    check = f"service {name}"
    if reasons is None:
        todo = f"see that it runs and listens at {where}, and what its log says"
        return Finding(check, State.FAIL, f"does not answer at {where}: {problem}", todo)
    if reasons:
        todo = "mend what it names; its log says more"
        return Finding(check, State.FAIL, f"not ready: {'; '.join(reasons)}", todo)
    return Finding(check, State.OK, f"ready at {where}")


def no_services() -> Finding:
    """Nobody said where services are."""
    return Finding(
        "services", State.WARN, "not looked at: nobody said where they serve /readyz",
        "name them: --probe controller=HOST:PORT",
    )  # fmt: skip


def feed_lag(name: str, seconds: float) -> Finding:
    """How far a service's reading of the change feed is behind."""
    state = FEED_LAG_SECONDS.state(seconds)
    return Finding(
        f"feed of {name}",
        state,
        f"read {seconds:.2f} s ago",
        "" if state is State.OK else "see that Postgres answers and the process has CPU",
    )


def disk(where: str, free: int, total: int) -> Finding:
    """Room for data, logs and pods of a local stack."""
    state = State.FAIL if free < FREE_FAIL else State.WARN if free < FREE_WARN else State.OK
    return Finding(
        "disk",
        state,
        f"{_size(free)} of {_size(total)} free at {where}",
        "" if state is State.OK else "make room: without it Postgres stops",
    )


def kubernetes(version: str | None, seconds: float, problem: str) -> Finding:
    """Whether the API server answers."""
    if version is None:
        return Finding(
            "kubernetes", State.FAIL, problem,
            "see that KUBECONFIG names the cluster and it lets us in",
        )  # fmt: skip
    state = KUBERNETES_SECONDS.state(seconds)
    return Finding(
        "kubernetes",
        state,
        f"version {version}, answered in {seconds * 1000:.0f} ms",
        "" if state is State.OK else "it is slow: see the API server's load",
    )


def unreachable(check: str, problem: str, todo: str) -> Finding:
    """What keeps a check from being made."""
    return Finding(check, State.FAIL, problem, todo)


def _size(size: int) -> str:
    value = float(size)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
