"""One process of several does something: takes a lease, keeps it, and proves it in each write.

For what Postgres can fence: a write that only the holder may make calls :meth:`Election.hold`
in its transaction.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from hekla.domain.errors import DomainError
from hekla.store import leases
from hekla.store.database import Database, Session
from hekla.telemetry import metrics

log = logging.getLogger(__name__)

TTL: Final = timedelta(seconds=3)


class Election:
    """This process's claim to a lease. One thread calls ``stand`` again and again."""

    def __init__(
        self, database: Database, lease: str, *, holder: str, ttl: timedelta = TTL
    ) -> None:
        """Name the ``lease``; ``holder`` is a name that no other process ever has."""
        self._database = database
        self._lease = lease
        self._holder = holder
        self._ttl = ttl
        self._epoch: int | None = None
        self._until = float("-inf")
        metrics.lease_held.labels(lease).set(0)

    @property
    def pause(self) -> timedelta:
        """How long to wait between two calls of ``stand``."""
        return self._ttl / 3

    @property
    def leading(self) -> bool:
        """Whether the lease is held for certain; a stopped process finds that it is not."""
        return self._epoch is not None and time.monotonic() < self._until

    def stand(self) -> bool:
        """Take the lease if it is free, or keep it; return whether it is held.

        One that was lost is not taken again at once: whoever led meanwhile did what is not
        known here, and what was begun under the old lease must not go on under a new one.
        """
        before = time.monotonic()
        try:
            with self._database.transaction() as session:
                held = self._renew(session) if self._epoch else self._acquire(session)
        except DomainError as error:
            log.warning(
                "lease not looked at", extra={"lease": self._lease, "error": str(error)}
            )
            return self.leading
        if held:
            self._until = before + self._ttl.total_seconds()
        metrics.lease_held.labels(self._lease).set(held)
        return held

    def hold(self, session: Session) -> None:
        """Make sure, until the transaction ends, that this process leads.

        Raises:
            PreconditionError: it does not, or not any more.
        """
        leases.hold(session, self._lease, epoch=self._epoch or 0)

    def term(self) -> Callable[[Session], None]:
        """What proves, as :meth:`hold` does, that the lease was held from now on.

        Not so once it was lost, even if this process has it again.
        """
        epoch = self._epoch or 0
        return lambda session: leases.hold(session, self._lease, epoch=epoch)

    def resign(self) -> None:
        """Give the lease up, if it is held, so that the next one need not wait."""
        if self._epoch is None:
            return
        epoch, self._epoch = self._epoch, None
        metrics.lease_held.labels(self._lease).set(0)
        try:
            with self._database.transaction() as session:
                leases.release(session, self._lease, epoch=epoch)
        except DomainError as error:
            log.warning("lease runs out", extra={"lease": self._lease, "error": str(error)})
        else:
            log.info("lease released", extra={"lease": self._lease, "epoch": epoch})

    def _renew(self, session: Session) -> bool:
        assert self._epoch is not None
        if leases.renew(session, self._lease, epoch=self._epoch, ttl=self._ttl):
            return True
        self._lose("somebody else took it, or it had run out")
        return False

    def _acquire(self, session: Session) -> bool:
        taken = leases.acquire(session, self._lease, holder=self._holder, ttl=self._ttl)
        if taken is None:
            return False
        self._epoch = taken.epoch
        log.info("elected", extra={"lease": self._lease, "epoch": taken.epoch})
        return True

    def _lose(self, reason: str) -> None:
        log.warning(
            "lease lost", extra={"lease": self._lease, "epoch": self._epoch, "reason": reason}
        )
        self._epoch = None
