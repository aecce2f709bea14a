"""Processes that containers left behind, found by their environment and ended.

Every process of a container has ``HEKLA_HOME`` and ``HEKLA_POD_UID`` in its environment,
also one that made a session of its own or whose parents are gone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

HOME: Final = "HEKLA_HOME"
POD_UID: Final = "HEKLA_POD_UID"

_ROUNDS: Final = 100
_PAUSE: Final = 0.005
_PROC: Final = Path("/proc")


def kill_strays(home: Path) -> int:
    """Kill every process of every container under ``home``; the number of those killed."""
    wanted = os.path.realpath(home)

    def ours(environ: Mapping[str, str]) -> bool:
        found = environ.get(HOME)
        return POD_UID in environ and bool(found) and os.path.realpath(found or "") == wanted

    return kill_where(ours, looks=3)


def kill_where(ours: Callable[[Mapping[str, str]], bool], *, looks: int = 1) -> int:
    """Kill the processes, but for this one, whose environment is so.

    Looks again until it finds none, ``looks`` times in a row, for a process may start another
    while it is looked for.
    """
    killed: set[int] = set()
    clean = 0
    for _ in range(_ROUNDS):
        found = [pid for pid, environ in processes() if ours(environ)]
        # One that becomes another program at that instant shows no environment.
        clean = 0 if found else clean + 1
        if clean == looks:
            break
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed.update(found)
        time.sleep(_PAUSE)
    return len(killed)


def processes() -> Iterator[tuple[int, Mapping[str, str]]]:
    """The live processes that may be looked into and have a pod's environment."""
    own = os.getpid()
    mark = f"{POD_UID}=".encode()
    for name in os.listdir(_PROC):  # noqa: PTH208 - hundreds of entries, and names are enough
        if not name.isdigit() or int(name) == own:
            continue
        try:
            raw = Path(f"/proc/{name}/environ").read_bytes()
        except OSError:
            continue  # gone, or somebody else's
        if mark in raw:  # a zombie's is empty
            yield int(name), parsed(raw)


def parsed(raw: bytes) -> dict[str, str]:
    """An environment as the kernel shows it."""
    pairs = (item.partition(b"=") for item in raw.split(b"\0") if item)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
