"""Hubs that read all the time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hekla.store.hub import Hub


@contextmanager
def reading(*hubs: Hub) -> Iterator[None]:
    """Read all the time, until the block ends."""
    stop = threading.Event()

    def read(hub: Hub) -> None:
        while not stop.is_set():
            if not hub.read_once():
                stop.wait(0.005)

    threads = [threading.Thread(target=read, args=(hub,)) for hub in hubs]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
