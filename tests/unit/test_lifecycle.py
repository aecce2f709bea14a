"""Loops run, rest, are woken, back off and end; a process learns that it is to stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from hekla import lifecycle
from hekla.lifecycle import BACKOFF_FIRST, BACKOFF_LONGEST, backoff, repeating
from tests.support.waiting import wait_until

LONG = timedelta(hours=1)


class Work:
    """Counts how often it is done; does as the test says."""

    def __init__(self, *, busy: int = 0, failing: bool = False) -> None:
        self.times: list[float] = []
        self.failing = failing
        self._busy = busy

    def __call__(self) -> bool:
        self.times.append(time.monotonic())
        if self.failing:
            raise ValueError("it broke")
        return len(self.times) <= self._busy

    def reaches(self, count: int) -> None:
        wait_until(lambda: len(self.times) >= count, what=f"{count} passes")


def test_work_that_was_found_is_followed_at_once_by_more() -> None:
    work = Work(busy=3)

    with repeating("w", work, idle=LONG):
        work.reaches(4)

    assert len(work.times) == 4, "the fourth found nothing, so it rested"


def test_a_wake_cuts_the_rest_short() -> None:
    work = Work()
    with repeating("w", work, idle=LONG) as loop:
        work.reaches(1)
        loop.wake()
        work.reaches(2)


def test_a_wake_by_a_shared_event_cuts_the_rest_short() -> None:
    work, wake = Work(), threading.Event()
    with repeating("w", work, idle=LONG, wake=wake):
        work.reaches(1)
        wake.set()
        work.reaches(2)


def test_a_wake_during_the_work_is_not_lost() -> None:
    entered, leave = threading.Semaphore(0), threading.Semaphore(0)

    def work() -> bool:
        entered.release()
        leave.acquire(timeout=10)
        return False

    with repeating("w", work, idle=LONG) as loop:
        assert entered.acquire(timeout=5)
        loop.wake()
        leave.release()

        assert entered.acquire(timeout=5), "it looks again"
        leave.release()


def test_a_loop_rests_its_idle_time() -> None:
    work = Work()

    with repeating("w", work, idle=timedelta(seconds=0.05)):
        work.reaches(3)

    assert work.times[2] - work.times[0] >= 0.1


def test_a_failing_loop_backs_off_whoever_wakes_it() -> None:
    work = Work(failing=True)
    with repeating("w", work, idle=timedelta(), wake=threading.Event()) as loop:
        started = time.monotonic()
        while time.monotonic() < started + 0.35:
            loop.wake()
            os.sched_yield()

    assert 2 <= len(work.times) <= 3, "at 0, 0.1 and 0.3 s"


def test_a_loop_says_why_it_does_no_work_until_it_does() -> None:
    work = Work(failing=True)
    with repeating("w", work, idle=timedelta(seconds=0.01)) as loop:
        assert loop.problem() is None
        wait_until(loop.problem, what="a problem")
        assert "it broke" in str(loop.problem())

        work.failing = False
        wait_until(lambda: loop.problem() is None, what="the problem to be over")


def test_a_loop_ends_when_another_event_says_so() -> None:
    work, stop = Work(busy=10**9), threading.Event()
    with repeating("w", work, idle=timedelta(), stop=stop):
        work.reaches(5)
        stop.set()
        after = wait_until(lambda: _still(work), what="the loop to end")

    assert len(work.times) == after


def _still(work: Work) -> int | None:
    before = len(work.times)
    threading.Event().wait(0.05)
    return before if before == len(work.times) else None


def test_leaving_the_block_waits_for_the_pass_under_way() -> None:
    entered, done = threading.Event(), threading.Event()

    def work() -> bool:
        entered.set()
        threading.Event().wait(0.1)
        done.set()
        return False

    with repeating("w", work, idle=LONG):
        assert entered.wait(5)

    assert done.is_set()


@given(st.integers(min_value=1, max_value=10**9))
def test_back_off_grows_to_a_bound(failures: int) -> None:
    assert BACKOFF_FIRST <= backoff(failures) <= backoff(failures + 1) <= BACKOFF_LONGEST


PROGRAM = """
import sys
from hekla.lifecycle import Termination
told = Termination.by_signal()
print("ready", flush=True)
told.wait()
print("told", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_learns_that_it_is_to_stop(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

        process.send_signal(number)

        assert process.stdout.readline() == "told\n"
        process.send_signal(signal.SIGTERM)  # a supervisor's, after the terminal's
        process.communicate("")
        assert process.returncode == 0


ELSEWHERE = """
import signal, threading
from hekla.lifecycle import Termination
told = Termination.by_signal()
def take():
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    threading.Event().wait()
threading.Timer(0.1, take).start()
told.wait()
print("told", flush=True)
import os; os._exit(0)
"""


def test_a_signal_that_another_thread_takes_is_not_lost() -> None:
    """Its handler waits for the main thread, which would sleep until something else comes."""
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE],
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )

    assert done.stdout == "told\n"


def test_who_interrupts_twice_does_not_wait() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "told\n"

        process.send_signal(signal.SIGINT)

        assert process.wait(10) == 128 + signal.SIGINT


def test_the_first_back_off_is_the_shortest() -> None:
    assert lifecycle.backoff(1) == BACKOFF_FIRST
