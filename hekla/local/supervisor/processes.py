"""Processes of the machine: start one that dies with its parent, find those of a home.

What belongs to a home is told by the environment that a process was started with, since
that survives the death of whoever started it, and a pid alone says nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hekla.client.endpoints import HOME_VARIABLE
from hekla.domain.errors import PreconditionError

UNIT_VARIABLE: Final = "HEKLA_UNIT"
"""Marks what a supervisor started, with the unit's name; a supervisor's own is empty."""
POD_VARIABLE: Final = "HEKLA_POD_UID"
"""Marks a pod's processes: they may outlive the cluster's process, which adopts them."""
_PR_SET_PDEATHSIG: Final = 1
_libc = ctypes.CDLL(None, use_errno=True)


def _dying_with(parent: int) -> Callable[[], None]:
    """To be run in the child before its program: SIGTERM once ``parent`` is gone."""

    def prepare() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it went before the call
            os._exit(1)

    return prepare


def spawn(argv: Sequence[str], *, env: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own that ends when this process does.

    Only to be called from a process with one thread: the kernel takes the end of the thread
    that called for the end of the parent, and a fork with others around can lock up.
    """
    with log.open("ab") as out:
        return subprocess.Popen(
            argv,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd="/",
            start_new_session=True,
            preexec_fn=_dying_with(os.getpid()),  # noqa: PLW1509  # one thread: see above
        )


def detach(argv: Sequence[str], *, env: Mapping[str, str], log: Path) -> None:
    """Start a process that goes on without this one, and without its terminal."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            argv,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd="/",
            start_new_session=True,
        )
    process.returncode = 0  # nobody waits for it, and that needs no warning


def rotate(log: Path, *, limit: int = 10_000_000, keep: int = 3) -> None:
    """Put a log that has grown beyond ``limit`` aside, as ``.1``, and drop the oldest."""
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size < limit:
            return
        for number in range(keep - 1, 0, -1):
            older = log.with_name(f"{log.name}.{number}")
            if older.exists():
                older.replace(log.with_name(f"{log.name}.{number + 1}"))
        log.replace(log.with_name(f"{log.name}.1"))


@dataclass(frozen=True, slots=True)
class Found:
    """A live process that a supervisor of a home started, or the supervisor itself."""

    pid: int
    unit: str


def _environment(pid: int) -> Mapping[str, str]:
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # gone, or somebody else's
        return {}
    pairs = (entry.partition(b"=") for entry in raw.split(b"\0") if b"=" in entry)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def _zombie(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[:1] in (["Z"], ["X"])


def units_of(home: Path) -> Sequence[Found]:
    """What supervisors of ``home`` started and is still alive, pods left out."""
    mine = os.getpid()
    return [found for found in _units(os.path.realpath(home)) if found.pid != mine]


def _units(home: str) -> Iterator[Found]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        pid = int(entry.name)
        env = _environment(pid)
        if (
            UNIT_VARIABLE in env
            and os.path.realpath(env.get(HOME_VARIABLE, "")) == home
            and POD_VARIABLE not in env
            and not _zombie(pid)
        ):
            yield Found(pid, env[UNIT_VARIABLE])


def send(pid: int, number: int) -> None:
    """Signal a process, if it is still there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def end_units(
    home: Path, *, stop_signals: Mapping[str, str], grace: float = 10.0, settle: float = 5.0
) -> int:
    """End what supervisors of ``home`` left behind; return how many there were.

    Each gets its unit's stop signal (SIGTERM by default), and SIGKILL after ``grace``.

    Raises:
        PreconditionError: some do not even end by that.
    """
    first = units_of(home)
    for found in first:
        send(found.pid, signal.Signals[stop_signals.get(found.unit, "SIGTERM")])
        send(found.pid, signal.SIGCONT)
    deadline = time.monotonic() + grace
    while left := units_of(home):
        if time.monotonic() >= deadline:
            for found in left:
                send(found.pid, signal.SIGKILL)
            if time.monotonic() >= deadline + settle:
                stuck = ", ".join(
                    f"{found.unit or 'supervisor'} ({found.pid})" for found in left
                )
                raise PreconditionError(f"processes of {home} do not end: {stuck}")
        time.sleep(0.05)
    return len(first)
