"""A hint between processes that something changed, so that nobody waits for the next poll.

Only a shortcut: who misses it finds the change by polling. ``NOTIFY`` is never sent in the
transaction that makes a change, since it serialises commits; one thread a process sends it
afterwards, at most once in 10 ms.

A process that hears its own voice may poll seldom, see :attr:`Nudge.patience`; one that does
not, because a pooling proxy is in between or the listening connection broke, polls often.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from hekla.store.database import CONNECT

log = logging.getLogger(__name__)

CHANNEL: Final = "hekla_change"
"""Hints of changes that the controller makes, who writes most of all."""
FLOW_CHANNEL: Final = "hekla_change_flow"
"""Hints of changes that the flow service makes, so that those of jobs do not wake it."""
LEAST_GAP_SECONDS: Final = 0.01
RECONNECT_SECONDS: Final = 1.0
BEAT: Final = "beat"
"""What is sent now and then, to be heard by the sender; it is no hint."""
BEAT_SECONDS: Final = 5.0
DEAF_AFTER_SECONDS: Final = 2.5 * BEAT_SECONDS
POLL_SECONDS: Final = 0.1
SELDOM_SECONDS: Final = 1.0


class Nudge:
    """Sends and receives hints. ``url`` is a direct one, past any pooling proxy.

    All who change the same kinds, and nobody else, share a channel.
    """

    def __init__(self, url: str, channel: str = CHANNEL) -> None:
        self._channel = channel
        self._url = url.replace("postgresql+psycopg://", "postgresql://")
        self._stop = threading.Event()
        self._to_send = threading.Event()
        self._heard = threading.Condition()
        self._count = 0
        self._sender = 0
        self._heard_self_at = float("-inf")
        self._hurried = False

    def poke(self) -> None:
        """Tell everybody, this process at once and the others soon."""
        self._to_send.set()
        self._tell()

    @property
    def count(self) -> int:
        """How many hints there have been; pass it to :meth:`wait`."""
        return self._count

    @property
    def patience(self) -> float:
        """For how many seconds a reader may wait for a hint before it looks by itself."""
        deaf = time.monotonic() - self._heard_self_at > DEAF_AFTER_SECONDS
        return POLL_SECONDS if deaf or self._hurried else SELDOM_SECONDS

    def hurry(self) -> None:
        """Let nobody wait for long any more: the process is to end."""
        self._hurried = True
        self._tell()

    def wait(self, seen: int, timeout: float) -> int:
        """Wait until there are more than ``seen`` hints, at most ``timeout`` seconds."""
        with self._heard:
            self._heard.wait_for(lambda: self._count > seen, timeout)
            return self._count

    def _tell(self) -> None:
        with self._heard:
            self._count += 1
            self._heard.notify_all()

    @contextmanager
    def running(self) -> Iterator[Nudge]:
        """Send and listen until the block ends."""
        threads = [
            threading.Thread(target=self._send, name="nudge-send", daemon=True),
            threading.Thread(target=self._listen, name="nudge-listen", daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._to_send.set()
            self._tell()
            for thread in threads:
                thread.join(timeout=5)

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self._url, autocommit=True, **CONNECT)

    def _send(self) -> None:
        while not self._stop.is_set():
            try:
                with self._connect() as connection:
                    self._sender = connection.info.backend_pid
                    while not self._stop.is_set():
                        hint = self._to_send.wait(BEAT_SECONDS)
                        self._to_send.clear()
                        payload = "" if hint else f", '{BEAT}'"
                        connection.execute(f"notify {self._channel}{payload}".encode())
                        self._stop.wait(LEAST_GAP_SECONDS)
            except psycopg.Error:
                log.debug("hints are not sent; others will poll", exc_info=True)
                self._to_send.set()
                self._stop.wait(RECONNECT_SECONDS)

    def _listen(self) -> None:
        while not self._stop.is_set():
            try:
                with self._connect() as connection:
                    connection.execute(f"listen {self._channel}".encode())
                    self._to_send.set()  # to be heard by ourselves
                    while not self._stop.is_set():
                        for hint in connection.notifies(timeout=1, stop_after=1):
                            if hint.pid == self._sender:
                                self._heard_self_at = time.monotonic()
                            if hint.payload != BEAT:
                                self._tell()
            except psycopg.Error:
                self._heard_self_at = float("-inf")
                log.debug("hints are not heard; this process polls", exc_info=True)
                self._stop.wait(RECONNECT_SECONDS)
