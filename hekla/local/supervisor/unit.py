"""When to start a process, when to stop it, when to wait. No clock and no I/O.

A unit that dies is started again after a time that doubles with every death from 1 s to 10 s;
a minute of life makes it start at 1 s again. Times are seconds on one monotonic clock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

SHORTEST_BACKOFF: Final = 1.0
LONGEST_BACKOFF: Final = 10.0
STABLE_AFTER: Final = 60.0
HOPELESS: Final = 78
"""Exit code of a process that will fail again, whenever it is started: EX_CONFIG."""


@dataclass(frozen=True, slots=True)
class UnitSpec:
    """What to run, and how."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    """Units that must have ended well (``once``) or be running before this one starts."""
    once: bool = False
    """It is to end by itself, with exit code 0, and is not started again then."""
    stop_signal: str = "SIGTERM"
    stop_timeout: float = 10.0
    """Seconds from the signal to SIGKILL."""
    rank: int = 0
    """At the end units stop in the order of their ranks, those of one rank together."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> UnitSpec:
        """What :meth:`to_dict` gave, after a trip through JSON."""
        tuples = {name: tuple(content[name]) for name in ("argv", "after")}
        return cls(**{**content, **tuples})


class Step(StrEnum):
    """What to do with a unit now."""

    NOTHING = "nothing"
    START = "start"
    SIGNAL = "signal"
    KILL = "kill"


class State(StrEnum):
    """A unit in one word, for people."""

    WAITING = "WAITING"
    RUNNING = "RUNNING"
    BACKOFF = "BACKOFF"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    DONE = "DONE"


@dataclass(frozen=True, slots=True)
class Unit:
    """What is known of a unit."""

    wanted: bool = True
    pid: int | None = None
    started: float = 0.0
    not_before: float = 0.0
    failures: int = 0
    """Deaths in a row, none of them after a stable minute."""
    restarts: int = 0
    done: bool = False
    signalled: float | None = None
    killed: bool = False
    last_exit: str = ""
    """How the last process ended."""


def backoff(failures: int) -> float:
    """Seconds to wait after so many deaths in a row."""
    return min(LONGEST_BACKOFF, SHORTEST_BACKOFF * 2.0 ** min(failures - 1, 10))


def step(spec: UnitSpec, unit: Unit, *, ready: bool, now: float) -> Step:
    """What to do now. ``ready``: all it comes after are there."""
    if unit.pid is None:
        due = unit.wanted and not unit.done and ready and now >= unit.not_before
        return Step.START if due else Step.NOTHING
    if unit.signalled is None:
        return Step.NOTHING if unit.wanted else Step.SIGNAL
    if not unit.killed and now >= unit.signalled + spec.stop_timeout:
        return Step.KILL
    return Step.NOTHING


def wake_at(spec: UnitSpec, unit: Unit) -> float | None:
    """When to look again though nothing happens."""
    if unit.pid is None:
        return unit.not_before if unit.wanted and not unit.done else None
    if unit.signalled is not None and not unit.killed:
        return unit.signalled + spec.stop_timeout
    return None


def started(unit: Unit, pid: int, now: float) -> Unit:
    """A process was started."""
    return replace(unit, pid=pid, started=now, signalled=None, killed=False)


def exited(spec: UnitSpec, unit: Unit, how: str, *, well: bool, now: float) -> Unit:
    """The process ended; ``well`` with exit code 0."""
    gone = replace(unit, pid=None, signalled=None, killed=False, last_exit=how)
    if not unit.wanted:
        return gone
    if unit.signalled is not None:  # wanted again while it stopped
        return replace(gone, not_before=now)
    if spec.once and well:
        return replace(gone, done=True, failures=0)
    failures = 1 if now - unit.started >= STABLE_AFTER else unit.failures + 1
    return replace(
        gone,
        failures=failures,
        restarts=unit.restarts + 1,
        not_before=now + backoff(failures),
    )


def want(unit: Unit) -> Unit:
    """Someone asks for it to run: at once, whatever failed before."""
    return replace(unit, wanted=True, not_before=0.0, failures=0)


def unwant(unit: Unit) -> Unit:
    """Someone asks for it to stop."""
    return replace(unit, wanted=False)


def signalled(unit: Unit, now: float) -> Unit:
    """It was told to stop."""
    return replace(unit, signalled=now)


def killed(unit: Unit) -> Unit:
    """It was killed."""
    return replace(unit, killed=True)


def state(unit: Unit, now: float) -> State:
    """The unit in one word."""
    if unit.pid is not None:
        return State.RUNNING if unit.wanted else State.STOPPING
    if unit.done:
        return State.DONE
    if not unit.wanted:
        return State.STOPPED
    return State.BACKOFF if now < unit.not_before else State.WAITING


def ready(spec: UnitSpec, specs: Mapping[str, UnitSpec], units: Mapping[str, Unit]) -> bool:
    """Whether all that ``spec`` comes after are there."""
    return all(
        units[name].done if specs[name].once else units[name].pid is not None
        for name in spec.after
    )


def named(asked: str, names: Collection[str]) -> list[str]:
    """The units that a name means: itself, and its replicas ``name-2``, ``name-3``, …."""
    return [
        name
        for name in names
        if name == asked or (name.startswith(f"{asked}-") and name[len(asked) + 1 :].isdigit())
    ]
