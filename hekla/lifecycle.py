"""Threads that run until told to stop, and a process that waits for the telling."""

from __future__ import annotations

import logging
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import Final

BACKOFF_FIRST: Final = timedelta(milliseconds=100)
BACKOFF_LONGEST: Final = timedelta(seconds=10)
JOIN_TIMEOUT: Final = timedelta(seconds=30)
_LOOK: Final = 0.2  # seconds between looks at a stop event that somebody else sets
_LONGEST_SLEEP: Final = 1.0
"""Seconds that a signal may be left unseen, see ``Termination.wait``."""

log = logging.getLogger(__name__)


def backoff(failures: int) -> timedelta:
    """How long to wait after so many failures in a row: doubling, with a bound."""
    doublings = max(0, min(failures - 1, 20))
    return min(BACKOFF_FIRST * (1 << doublings), BACKOFF_LONGEST)


class Loop:
    """One repeating thread, as others see it."""

    def __init__(self, name: str, wake: threading.Event) -> None:
        self.name = name
        self.failures = 0
        """Errors in a row, 0 after a pass that went well."""
        self._last_error = ""
        self._wake = wake

    def wake(self) -> None:
        """Cut the present idle time short, or the next one."""
        self._wake.set()

    def problem(self) -> str | None:
        """Why the loop does no work, or None: serves as a readiness check."""
        if self.failures < 3:
            return None
        return f"{self.name} failed {self.failures} times in a row: {self._last_error}"

    def _succeeded(self) -> None:
        self.failures = 0

    def _failed(self, error: Exception) -> None:
        self._last_error = str(error) or type(error).__name__
        self.failures += 1


@contextmanager
def repeating(
    name: str,
    work_once: Callable[[], bool],
    *,
    idle: timedelta,
    wake: threading.Event | None = None,
    stop: threading.Event | None = None,
) -> Iterator[Loop]:
    """Call ``work_once`` in a thread until the block ends, or ``stop`` is set.

    ``work_once`` returns whether it found anything to do: if so it is called again at once,
    else after ``idle``, or as soon as ``wake`` is set. An error is logged and waited out, 0.1 s
    at first and 10 s in the end; a wake does not cut that short, or whoever wakes a failing
    loop would keep it spinning.
    """
    ended = threading.Event()
    woken = wake or threading.Event()
    loop = Loop(name, woken)

    def stopping() -> bool:
        return ended.is_set() or (stop is not None and stop.is_set())

    def pause(event: threading.Event, span: timedelta) -> None:
        deadline = time.monotonic() + span.total_seconds()
        while not stopping() and (left := deadline - time.monotonic()) > 0:
            if event.wait(left if stop is None else min(left, _LOOK)):
                return

    def run() -> None:
        while not stopping():
            woken.clear()  # before the work: what is announced during it counts afterwards
            try:
                busy = work_once()
            except Exception as error:
                loop._failed(error)
                log.exception("loop failed", extra={"loop": name, "failures": loop.failures})
                pause(ended, backoff(loop.failures))
            else:
                loop._succeeded()
                if not busy:
                    pause(woken, idle)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        ended.set()
        woken.set()
        thread.join(JOIN_TIMEOUT.total_seconds())
        if thread.is_alive():
            log.error("loop does not end", extra={"loop": name})


class Termination(threading.Event):
    """Set once the process is told to stop.

    A signal handler may run while its own thread holds the event's lock, so handlers only put
    the number into a queue that is safe for that, and a thread of its own sets the event.
    """

    def wait(self, timeout: float | None = None) -> bool:
        """Wait as for any event, waking now and then.

        Handlers run in the main thread, which sleeps on if another thread takes the signal.
        """
        if timeout is not None:
            return super().wait(timeout)
        while not super().wait(_LONGEST_SLEEP):
            pass
        return True

    @classmethod
    def by_signal(cls) -> Termination:
        """One that SIGTERM and SIGINT set. A second SIGINT ends the process at once."""
        told = cls()
        numbers: queue.SimpleQueue[int] = queue.SimpleQueue()
        interrupts = 0

        def handle(number: int, _frame: FrameType | None) -> None:
            nonlocal interrupts
            interrupts += number == signal.SIGINT
            if interrupts > 1:
                os._exit(128 + number)
            numbers.put(number)

        def listen() -> None:
            number = numbers.get()
            log.info("stopping", extra={"signal": signal.Signals(number).name})
            told.set()

        threading.Thread(target=listen, name="signals", daemon=True).start()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, handle)
        return told
