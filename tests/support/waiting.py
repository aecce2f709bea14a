"""Waiting for a condition, with a deadline and a reason."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_LOOK = 0.01  # seconds between looks at first; they grow further apart
_LONGEST = 0.1
_EFFORT = 3
"""How many times longer than a look the pause after it is, for looks that are costly."""


def wait_until(
    predicate: Callable[[], T | None], *, timeout: float = 20, what: str = "it"
) -> T:
    """Call ``predicate`` until it answers something true, and return that.

    What is asked for is what is returned: whoever looks once more may see the next thing.

    Raises:
        AssertionError: it did not within ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    pause = _LOOK
    while True:
        began = time.monotonic()
        answer = predicate()
        if answer:
            return answer
        now = time.monotonic()
        if now >= deadline:
            raise AssertionError(f"waited {timeout:g} s for {what}; last answer: {answer!r}")
        time.sleep(min(max(pause, _EFFORT * (now - began)), 2 * _LONGEST))
        pause = min(pause * 1.3, _LONGEST)
