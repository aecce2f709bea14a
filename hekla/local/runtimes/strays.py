"""Processes that containers left behind, found by what marks them and ended.

Every process of a container has ``HEKLA_HOME`` and ``HEKLA_POD_UID`` in its environment, also
one that made a session of its own or whose parents are gone. One that has cleared its
environment is found by its parents, or since it writes to the log of a container.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

HOME: Final = "HEKLA_HOME"
POD_UID: Final = "HEKLA_POD_UID"

_ROUNDS: Final = 100
_PAUSE: Final = 0.005
_PROC: Final = Path("/proc")
_LOG: Final = re.compile(r"(cluster/)?pods/[^/]+/[^/]+/launch-\d+/log( \(deleted\))?")
"""The log of a container, below the home of a stack or of a local cluster alone."""


def kill_strays(home: Path) -> int:
    """Kill every process of every container under ``home``; the number of those killed."""
    wanted = os.path.realpath(home)

    def ours(pid: int, environ: Mapping[str, str]) -> bool:
        found = environ.get(HOME, "")
        if POD_UID in environ:
            return bool(found) and os.path.realpath(found) == wanted
        return _writes_below(pid, wanted)

    return kill_where(ours, looks=3)


def kill_where(ours: Callable[[int, Mapping[str, str]], bool], *, looks: int = 1) -> int:
    """Kill the processes, but for this one, that are so, and all that descend from them.

    Looks again until it finds none, ``looks`` times in a row, for a process may start another
    while it is looked for.
    """
    killed: set[int] = set()
    clean = 0
    for _ in range(_ROUNDS):
        found = {pid for pid, environ in _all() if ours(pid, environ)}
        # One that becomes another program at that instant shows no environment.
        clean = 0 if found else clean + 1
        if clean == looks:
            break
        found |= _descendants(found)
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= found
        time.sleep(_PAUSE)
    return len(killed)


def processes() -> Iterator[tuple[int, Mapping[str, str]]]:
    """The live processes that may be looked into and have a pod's environment."""
    for pid, environ in _all():
        if environ:
            yield pid, environ


def parsed(raw: bytes) -> dict[str, str]:
    """An environment as the kernel shows it."""
    pairs = (item.partition(b"=") for item in raw.split(b"\0") if item)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def _all() -> Iterator[tuple[int, Mapping[str, str]]]:
    """Every process that may be looked into, but for this one, with its pod's environment.

    The environment of one that has no pod's is empty.
    """
    own = os.getpid()
    mark = f"{POD_UID}=".encode()
    for pid in _pids():
        if pid == own:
            continue
        try:
            raw = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue  # gone, or somebody else's
        yield pid, parsed(raw) if mark in raw else {}  # a zombie's is empty


def _pids() -> Iterator[int]:
    for name in os.listdir(_PROC):  # noqa: PTH208 - hundreds of entries, and names are enough
        if name.isdigit():
            yield int(name)


def _descendants(pids: Collection[int]) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid in _pids() if pids else ():
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
            children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(pid)
    found: set[int] = set()
    left = list(pids)
    while left:
        fresh = set(children.get(left.pop(), ())) - found - {os.getpid()}
        found |= fresh
        left += fresh
    return found


def _writes_below(pid: int, home: str) -> bool:
    """Whether what it writes is the log of a container below ``home``."""
    for number in (1, 2):
        try:
            path = os.readlink(f"/proc/{pid}/fd/{number}")  # noqa: PTH115 - may be no path
        except OSError:
            continue
        if path.startswith(f"{home}/") and _LOG.fullmatch(path[len(home) + 1 :]):
            return True
    return False
