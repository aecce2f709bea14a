"""What tests have the I/O process do: projections and companions, found by name there."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from hekla.kube.fence import Fence, Progress, Stopping


def name_and_phase(item: dict[str, Any]) -> tuple[str, str | None] | None:
    """Small; leaves out ``hidden``; cannot take an object without a status."""
    name = item["metadata"]["name"]
    return None if name == "hidden" else (name, item["status"].get("phase"))


def process_id(item: dict[str, Any]) -> int:
    """Where the projection runs."""
    return os.getpid()


def renewal(stop: Stopping, fence: Fence, progress: Progress) -> None:
    """Keep the fence up as long as the other process moves."""
    while not stop.is_set():
        if progress.age() < 0.3:
            fence.extend(time.monotonic() + 0.2)
        stop.wait(0.02)


class Stumbling:
    """A companion that fails the first time, and says where it runs the second."""

    def __init__(self, notes: Path) -> None:
        self._notes = notes

    def __call__(self, stop: Stopping, fence: Fence, progress: Progress) -> None:
        first = not self._notes.exists()
        self._notes.write_text(str(os.getpid()))
        if first:
            raise RuntimeError("stumbled")
        fence.extend(time.monotonic() + 60)
        stop.wait()
