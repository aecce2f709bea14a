"""The thread of a process that reads the feed for its watchers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from hekla.lifecycle import repeating
from hekla.store.hub import Hub
from hekla.store.nudge import Nudge

GAP: Final = timedelta(milliseconds=20)
"""Changes that come closer together are read at once."""
RESTS: Final = 5
"""How many times as long as reading the feed took it is not read again."""
LONGEST_REST_SECONDS: Final = 0.08
LAG_LIMIT_SECONDS: Final = 5.0


@contextmanager
def reading(hub: Hub, nudge: Nudge, *, stop: threading.Event) -> Iterator[None]:
    """Have ``hub`` read what is hinted at, until the block ends; ``stop`` ends its rests."""
    heard = -1

    def read() -> bool:
        nonlocal heard
        heard = nudge.wait(heard, nudge.patience)
        began = time.monotonic()
        hub.read_once()
        rest = RESTS * (time.monotonic() - began) - GAP.total_seconds()
        stop.wait(min(max(rest, 0.0), LONGEST_REST_SECONDS))
        return False

    with repeating("feed", read, idle=GAP):
        yield


def lag(hub: Hub) -> str | None:
    """Why what watchers are told may be old, or None: a readiness check."""
    behind = hub.seconds_behind
    return f"the feed is {behind:.0f} s behind" if behind > LAG_LIMIT_SECONDS else None
