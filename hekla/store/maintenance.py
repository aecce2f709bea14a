"""What the store needs now and then: the ring turned, months made and dropped, old rows gone.

Every replica calls :func:`maintain_once`; who comes while another is at it leaves it alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar

from sqlalchemy import text

from hekla.domain.errors import DomainError
from hekla.store import binds, feed, history, incarnation, requests
from hekla.store.database import Database, Session

log = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_KEY: Final = 4_711_100
"""Keys of advisory locks, one a step, follow from here."""
CHUNK: Final = 5_000
MOST_CHUNKS: Final = 20
"""What is left then waits for the next time."""
REQUESTS_KEPT: Final = timedelta(hours=24)
BINDS_KEPT: Final = timedelta(hours=1)
HISTORY_KEPT: Final = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Maintained:
    """What was done."""

    restored: bool
    """The store turned out to be a restored copy."""
    turned: bool
    """A partition of the feed was emptied."""
    made: tuple[str, ...]
    """Partitions of the history that were made."""
    dropped: tuple[str, ...]
    """Partitions of the history that were dropped."""
    requests: int
    """Request ids that were forgotten."""
    binds: int
    """Placements that were forgotten."""

    def __bool__(self) -> bool:
        return self != NOTHING


NOTHING: Final = Maintained(
    restored=False, turned=False, made=(), dropped=(), requests=0, binds=0
)


def maintain_once(
    database: Database, now: datetime, *, history_kept: timedelta | None = HISTORY_KEPT
) -> Maintained:
    """Do what is due; call it every minute or so.

    Each step has a transaction of its own; one that fails does not keep the others from
    theirs, and comes again the next time. History that is not to go has ``history_kept``
    None.

    Raises:
        UnavailableError: Postgres is away.
    """
    restored = incarnation.settle(database)
    steps = _Steps(database)
    return Maintained(
        restored=restored,
        turned=steps.run("ring", feed.turn, otherwise=False),
        made=steps.run(
            "months",
            lambda session: tuple(history.make_partitions(session, now)),
            otherwise=(),
        ),
        dropped=()
        if history_kept is None
        else steps.run(
            "retention",
            lambda session: tuple(history.drop_partitions(session, now - history_kept)),
            otherwise=(),
        ),
        requests=steps.prune(
            "requests",
            lambda session: requests.prune(session, older_than=REQUESTS_KEPT, limit=CHUNK),
        ),
        binds=steps.prune(
            "binds", lambda session: binds.prune(session, older_than=BINDS_KEPT, limit=CHUNK)
        ),
    )


class _Steps:
    """Runs steps one after the other, each unless another replica is at it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._key = FIRST_KEY

    def run(self, name: str, act: Callable[[Session], T], *, otherwise: T) -> T:
        self._key += 1
        return self._guarded(name, act, otherwise)

    def prune(self, name: str, act: Callable[[Session], int]) -> int:
        self._key += 1
        total = 0
        for _ in range(MOST_CHUNKS):
            done = self._guarded(name, act, 0)
            total += done
            if done < CHUNK:
                break
        return total

    def _guarded(self, name: str, act: Callable[[Session], T], otherwise: T) -> T:
        try:
            with self._database.transaction() as session:
                lock = text("select pg_try_advisory_xact_lock(:key)")
                if not session.scalar(lock, {"key": self._key}):
                    return otherwise
                return act(session)
        except DomainError as error:
            log.warning("maintenance put off", extra={"step": name, "reason": str(error)})
            return otherwise
