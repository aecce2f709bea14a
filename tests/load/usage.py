"""What each part of the stack costs while it runs: processor time and memory, by sample."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TICKS: Final = os.sysconf("SC_CLK_TCK")
PAGE: Final = os.sysconf("SC_PAGE_SIZE")
EVERY: Final = 1.0
"""Seconds between samples."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One part of the stack at one moment."""

    at: float
    cpu: float
    """Seconds of processor time so far, of its processes and those that ended."""
    memory: int
    """Bytes in memory that are its own, of its processes."""


class Meter(threading.Thread):
    """Samples parts, each a main process and what it started."""

    def __init__(self, parts: Callable[[], Mapping[str, Iterable[int]]]) -> None:
        """See the class; ``parts`` tells the main processes by part, looked up anew."""
        super().__init__(daemon=True)
        self._parts = parts
        self._over = threading.Event()
        self._used: dict[str, dict[int, float]] = {}
        self.samples: dict[str, list[Sample]] = {}

    def run(self) -> None:
        self.sample()
        while not self._over.wait(EVERY):
            self.sample()

    def stop(self) -> None:
        """Sample a last time, and no more."""
        self._over.set()
        self.join()
        self.sample()

    def sample(self) -> None:
        """Look once."""
        now = time.time()
        for part, pids in self._parts().items():
            used = self._used.setdefault(part, {})
            memory = 0
            for pid in with_children(pids):
                try:
                    used[pid] = max(used.get(pid, 0.0), processor_seconds(pid))
                    memory += own_memory(pid)
                except (OSError, IndexError):
                    continue
            # Processes that ended keep what they had used.
            self.samples.setdefault(part, []).append(Sample(now, sum(used.values()), memory))


def with_children(pids: Iterable[int]) -> list[int]:
    """Processes, and all that they started, and these."""
    found: list[int] = []
    waiting = list(pids)
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        for listed in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                waiting += [int(one) for one in listed.read_text().split()]
            except OSError:
                continue
    return found


def processor_seconds(pid: int) -> float:
    """Processor time that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def own_memory(pid: int) -> int:
    """Bytes in memory that the process does not share through files."""
    resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[1:3]
    return (int(resident) - int(shared)) * PAGE


def machine() -> dict[str, object]:
    """Where the figures were taken."""
    memory = os.sysconf("SC_PHYS_PAGES") * PAGE
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory / (1 << 30), 1),
        "processor": model,
        "load_before": [round(each, 2) for each in os.getloadavg()],
    }
