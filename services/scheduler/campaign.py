"""Who leads: takes the lease when it is free, and gives it back when told to.

The scheduling thread alone decides that a term is over; then the lease is released here, once
nothing of that term is under way any more.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from enum import Enum, auto
from typing import Final
from uuid import uuid4

from hekla.domain.errors import DomainError
from hekla.kube.fence import Fence
from hekla.store import binds, leases
from hekla.store.database import Database
from services.scheduler.cache import WATCH_LAG
from services.scheduler.events import Elected
from services.scheduler.inbox import Inbox

LEASE: Final = "scheduler"

log = logging.getLogger(__name__)


def new_holder() -> str:
    """A name for this process that no other ever has."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4()}"


class _Stand(Enum):
    RUNNING = auto()
    """For the lease."""
    HOLDING = auto()
    LEAVING = auto()
    RETIRED = auto()


class Campaign:
    """This process's claim to lead."""

    def __init__(
        self,
        database: Database,
        inbox: Inbox,
        fence: Fence,
        *,
        holder: str,
        ttl: timedelta,
        takeover_pause: timedelta,
        hindrance: Callable[[], str | None],
        at_rest: Callable[[], bool],
    ) -> None:
        """See the class.

        Args:
            database: where the lease is.
            inbox: is told of an election.
            fence: is raised by it.
            holder: names this process.
            ttl: how long the lease lasts without being renewed.
            takeover_pause: how long to wait after a leader that vanished.
            hindrance: why this process should not lead now, or None.
            at_rest: whether nothing of an earlier term is under way any more.
        """
        self._database = database
        self._inbox = inbox
        self._fence = fence
        self._holder = holder
        self._ttl = ttl
        self._takeover_pause = takeover_pause
        self._hindrance = hindrance
        self._at_rest = at_rest
        self._lock = threading.Lock()
        self._stand = _Stand.RUNNING
        self._retiring = False
        self._epoch = 0
        self._failed = False
        self.leader = ""
        """Who held the lease when it was last looked at."""
        self.leader_epoch = 0

    def step_down(self, epoch: int) -> None:
        """The term is over: release the lease as soon as nothing of it is under way."""
        with self._lock:
            if self._stand is _Stand.HOLDING and self._epoch == epoch:
                self._stand = _Stand.LEAVING

    def retire(self) -> None:
        """As ``step_down``, and do not run again."""
        with self._lock:
            self._retiring = True
            if self._stand is _Stand.HOLDING:
                self._stand = _Stand.LEAVING
            elif self._stand is _Stand.RUNNING:
                self._stand = _Stand.RETIRED

    @property
    def retired(self) -> bool:
        """Whether no lease is held, nor will be."""
        return self._stand is _Stand.RETIRED

    def look(self) -> bool:
        """Take or release the lease if it is time to; return whether to look again at once."""
        with self._lock:
            stand = self._stand
        try:
            match stand:
                case _Stand.RUNNING if self._hindrance() is None:
                    self._run()
                case _Stand.LEAVING if self._at_rest():
                    self._leave()
                    return True
        except DomainError as error:
            if not self._failed:
                log.warning("lease not looked at", extra={"reason": str(error)})
            self._failed = True
        else:
            self._failed = False
        return False

    def _run(self) -> None:
        before = time.monotonic()
        with self._database.transaction() as session:
            found = leases.get(session, LEASE)
            if found is not None and found.holder == self._holder and not found.released:
                # Ours, but from a term that never began or ended without a release.
                leases.release(session, LEASE, epoch=found.epoch)
            taken = leases.acquire(session, LEASE, holder=self._holder, ttl=self._ttl)
        if taken is None:
            if found is not None:
                self.leader, self.leader_epoch = found.holder, found.epoch
            return
        self._fence.extend(before + self._ttl.total_seconds())
        with self._lock:
            self._stand, self._epoch = _Stand.HOLDING, taken.epoch
            if self._retiring:
                self._stand = _Stand.LEAVING
                return
        self.leader, self.leader_epoch = self._holder, taken.epoch
        # Whatever earlier leaders recorded was committed before the lease could be taken.
        try:
            with self._database.transaction() as session:
                unsettled = binds.open_records(session)
                recent = binds.recent_records(session, within=WATCH_LAG)
        except DomainError:
            self.step_down(taken.epoch)
            raise
        pause = timedelta() if taken.clean else self._takeover_pause
        log.info(
            "elected",
            extra={"epoch": taken.epoch, "clean": taken.clean, "open_binds": len(unsettled)},
        )
        self._inbox.put(Elected(taken.epoch, pause, unsettled, recent))

    def _leave(self) -> None:
        self._fence.drop()
        with self._database.transaction() as session:
            leases.release(session, LEASE, epoch=self._epoch)
        with self._lock:
            self._stand = _Stand.RETIRED if self._retiring else _Stand.RUNNING
        log.info("lease released", extra={"epoch": self._epoch})
