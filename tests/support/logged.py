"""What a process of ours has logged: JSON lines, the last of which may be half written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.support.waiting import wait_until

START_TIMEOUT: Final = 60.0
"""Seconds for a process to start, also on a machine with much else to do."""

Line = dict[str, Any]


class Logged:
    """The log of one process."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def text(self) -> str:
        """All of it."""
        return self.path.read_text()

    def lines(self, message: str | None = None) -> Sequence[Line]:
        """All lines so far, or those with that message."""
        whole = self.text().rpartition("\n")[0]
        # gRPC's own lines are no JSON.
        lines = [json.loads(line) for line in whole.splitlines() if line.startswith("{")]
        return [line for line in lines if message in (None, line["message"])]

    def wait_for(self, message: str, *, timeout: float = START_TIMEOUT) -> Line:
        """The first line with that message, once it is there.

        What a process does and what it logs of it can be seen in either order.
        """

        def found() -> Line | None:
            return next(iter(self.lines(message)), None)

        return wait_until(found, timeout=timeout, what=f"the line {message!r}")
