"""Keeps the lease while the scheduling process gets on. Runs in the I/O process.

There it sees what that process cannot see of itself: that it has stopped. The fence that it
moves is the one that binds are sent under, in the same process.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import timedelta

from hekla.domain.errors import DomainError
from hekla.kube.fence import Fence, Progress, Stopping
from hekla.store import leases
from hekla.store.database import Database

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Renewal:
    """A companion of the Kubernetes client."""

    database_url: str
    lease: str
    holder: str
    ttl: timedelta
    stall_timeout: timedelta

    def __call__(self, stop: Stopping, fence: Fence, progress: Progress) -> None:
        """Renew whatever lease is the holder's, until ``stop`` is set."""
        pause = self.ttl.total_seconds() / 3
        database = Database(
            self.database_url, pool_size=1, statement_timeout=f"{int(pause * 1000)}ms"
        )
        keeper = _Keeper(self, database, fence, progress)
        try:
            while not stop.is_set():
                stop.wait(0 if keeper.look() else pause)
        finally:
            fence.drop()
            database.close()


class _Keeper:
    """What is known of the lease between two looks."""

    def __init__(
        self, renewal: Renewal, database: Database, fence: Fence, progress: Progress
    ) -> None:
        self._renewal = renewal
        self._database = database
        self._fence = fence
        self._progress = progress
        self._epoch: int | None = None
        self._failed = False

    def look(self) -> bool:
        """Renew the lease once; return whether to look again at once."""
        stalled = self._progress.age() > self._renewal.stall_timeout.total_seconds()
        if stalled:
            if self._epoch is not None:
                self._lose("the scheduling process has stopped moving")
            return False
        before = time.monotonic()
        try:
            held = self._renew()
        except DomainError as error:
            # The fence comes down by itself when the lease has run out.
            if not self._failed:
                log.warning("lease not renewed", extra={"reason": str(error)})
            self._failed = True
            return False
        self._failed = False
        if held:
            self._fence.extend(before + self._renewal.ttl.total_seconds())
            return False
        if self._epoch is None:
            return False
        self._lose("somebody else took it, or it had run out")
        return True

    def _renew(self) -> bool:
        name, ttl = self._renewal.lease, self._renewal.ttl
        with self._database.transaction() as session:
            if self._epoch is None:
                found = leases.get(session, name)
                if found is None or found.holder != self._renewal.holder:
                    return False
                if found.released or found.remaining <= timedelta():
                    return False
                self._epoch = found.epoch
            return leases.renew(session, name, epoch=self._epoch, ttl=ttl)

    def _lose(self, reason: str) -> None:
        self._fence.drop()
        log.warning("lease lost", extra={"epoch": self._epoch, "reason": reason})
        self._epoch = None
