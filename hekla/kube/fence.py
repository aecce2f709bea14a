"""Two numbers that a computing process and its I/O child share without a lock.

Both are instants of CLOCK_MONOTONIC, which all processes of a machine read alike, in eight
aligned bytes of shared memory: a reader sees the old value or the new one, never a mixture,
and neither side can hold up the other, not even a stopped one.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import time
from typing import Final, Protocol

NEVER: Final = float("-inf")


class _Instant:
    """An instant in shared memory."""

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = _allocate() if descriptor is None else descriptor
        self._cell = memoryview(mmap.mmap(self._descriptor, 8)).cast("d")
        if descriptor is None:
            self._cell[0] = NEVER

    def fileno(self) -> int:
        """What another process needs to share it: pass it on and build one from it."""
        return self._descriptor


def _allocate() -> int:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("hekla-instant")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, 8)
    return descriptor


class Fence(_Instant):
    """Until when requests may be sent that only a leader may send.

    It is down at first. Whoever renews the lease extends it to the instant up to which the
    lease is safe: taken before the renewal was sent, plus the lease's duration.
    """

    def extend(self, until: float) -> None:
        """Let requests pass until ``until`` (``time.monotonic()``)."""
        self._cell[0] = until

    def drop(self) -> None:
        """Let nothing pass from now on."""
        self._cell[0] = NEVER

    def left(self) -> float:
        """For how many seconds requests may still be under way; 0 if the fence is down."""
        return max(0.0, self._cell[0] - time.monotonic())


class Progress(_Instant):
    """When the computing process last moved: a stopped one loses its lease by this."""

    def move(self) -> None:
        """Say that the caller is alive and getting on."""
        self._cell[0] = time.monotonic()

    def age(self) -> float:
        """For how many seconds nothing has moved; infinite before the first move."""
        return time.monotonic() - self._cell[0]


class Stopping(Protocol):
    """The part of ``threading.Event`` that a companion needs."""

    def is_set(self) -> bool:
        """Whether to return."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait to be told to return; return whether it was."""


class Companion(Protocol):
    """Work done in a thread of the I/O process, next to the requests it fences.

    It must be picklable and return soon after ``stop`` is set. If it returns or raises before,
    the I/O process ends and is started again.
    """

    def __call__(self, stop: Stopping, fence: Fence, progress: Progress) -> None:
        """Run until ``stop`` is set."""
