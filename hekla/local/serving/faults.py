"""The fault mode: how the API misbehaves, on purpose, for tests.

Set at start by flags and at run time by ``POST /hekla/faults`` with the fields to change.
"""

from __future__ import annotations

from typing import Any

from hekla.domain.errors import Violation


class Faults:
    """What goes wrong now."""

    def __init__(self, watch_delay_seconds: float = 0.0) -> None:
        self.watch_delay_seconds = watch_delay_seconds
        """How much later than the write a watcher hears of it."""

    def describe(self) -> dict[str, Any]:
        """All settings, as they are posted."""
        return {"watchDelaySeconds": self.watch_delay_seconds}

    def change(self, wanted: object) -> list[Violation]:
        """Take over the fields of ``wanted``, or change nothing and say what is wrong."""
        if not isinstance(wanted, dict):
            return [Violation("", "must be an object")]
        unknown = sorted(set(wanted) - set(self.describe()))
        if unknown:
            return [Violation(str(key), "unknown field") for key in unknown]
        delay = wanted.get("watchDelaySeconds", self.watch_delay_seconds)
        if (
            isinstance(delay, bool)
            or not isinstance(delay, int | float)
            or not 0 <= delay <= 600
        ):
            return [Violation("watchDelaySeconds", f"must be from 0 to 600, is {delay!r}")]
        self.watch_delay_seconds = float(delay)
        return []
