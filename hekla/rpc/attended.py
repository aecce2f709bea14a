"""A stream of a server is given up when it says nothing, and opened anew by who reads it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

News = TypeVar("News")

LONGEST_SILENCE: Final = 30.0
"""Seconds after which a stream that says nothing, not even bookmarks, is opened anew."""

log = logging.getLogger(__name__)


@contextmanager
def attended(
    call: Any, news: Iterator[News], *, silence: float = LONGEST_SILENCE
) -> Iterator[Iterator[News]]:
    """The news of a call that is given up when nothing came for ``silence`` seconds.

    A server sends bookmarks all the time: one that says nothing is stuck, or is not there any
    more and nobody was told. The call ends in any case when the block does.
    """
    over = threading.Event()
    heard_at = time.monotonic()

    def heard() -> Iterator[News]:
        nonlocal heard_at
        for one in news:
            heard_at = time.monotonic()
            yield one
            heard_at = time.monotonic()  # what the reader took is not the server's silence

    def watch() -> None:
        while not over.wait(silence / 10):
            if time.monotonic() - heard_at > silence:
                log.warning("stream given up", extra={"silence": silence})
                call.cancel()
                return

    watcher = threading.Thread(target=watch, name="stream-silence", daemon=True)
    watcher.start()
    try:
        yield heard()
    finally:
        over.set()
        call.cancel()
