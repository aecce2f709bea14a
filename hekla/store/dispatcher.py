"""Claims due objects and has them looked at, as many at once as there are workers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from hekla.domain.errors import DomainError, NotFoundError
from hekla.store import work
from hekla.store.database import Database, Session
from hekla.store.nudge import Nudge
from hekla.store.work import Claim

log = logging.getLogger(__name__)

FIRST_BACKOFF: Final = timedelta(milliseconds=500)
LONGEST_BACKOFF: Final = timedelta(seconds=60)
LONGEST_RETRY: Final = timedelta(seconds=10)
"""An act that was refused is tried again after so long at the latest."""
POLL_SECONDS: Final = 0.1
SOONEST_SECONDS: Final = 0.005
TOGETHER: Final = 16
"""Objects that a worker looks at at once, where that is possible."""
RESTS: Final = 10
"""How many times as long as asking for work took nobody asks again."""
LONGEST_REST_SECONDS: Final = 0.08
AHEAD: Final = 4
"""Claims taken for each worker: waiting ones cost no round trip, but must not wait long."""


def backoff(failures: int, longest: timedelta) -> timedelta:
    """How long to wait after so many failures before: doubling, with a bound."""
    return min(FIRST_BACKOFF * (1 << min(failures, 20)), longest)


class Dispatcher:
    """One a process: asks for work when a worker is free."""

    def __init__(
        self,
        database: Database,
        nudge: Nudge,
        look: Callable[[Claim], object],
        *,
        kinds: Collection[str],
        workers: int,
        max_requeues: int,
        lease: timedelta,
        tell: Callable[[Session, Claim], None],
        together: Callable[[Sequence[Claim]], Sequence[Claim]] | None = None,
    ) -> None:
        """Take the rules.

        Args:
            database: where the work is.
            nudge: hints that there is some.
            look: makes a pass and gives the claim back, or raises.
            kinds: of the objects that are looked at.
            workers: how many are looked at at once.
            max_requeues: after so many failures in a row somebody is told.
            lease: how long a claim lasts.
            tell: tells the object's owner of that; it may find the object gone.
            together: looks at several objects at once, and returns the claims of those that
                want a look of their own; if it raises, all do.
        """
        self._database = database
        self._nudge = nudge
        self._look = look
        self._kinds = list(kinds)
        self._tell = tell
        self._together = together
        self._room = workers * AHEAD
        self._max_requeues = max_requeues
        self._lease = lease
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="worker")
        self._under_way = 0
        self._changed = threading.Condition()
        self._stopping = False
        self._heard = 0

    def claim_once(self) -> bool:
        """Claim what there is room for; wait a moment if there is nothing. Always goes on."""
        with self._changed:
            self._changed.wait_for(
                # Half of it at least, or a long line would be taken one by one.
                lambda: self._stopping or self._under_way <= self._room // 2,
                POLL_SECONDS,
            )
            room = self._room - self._under_way
        if room <= 0 or self._stopping:
            return True
        heard = self._nudge.count
        claiming = work.claiming(self._kinds, limit=room, lease=self._lease)
        next_due = work.next_due(self._kinds)
        began = time.monotonic()
        self._database.ask(claiming, next_due)
        claims = claiming.answer
        cost = time.monotonic() - began
        self._hand_out(claims)
        if len(claims) < room:  # there were no more
            pause = self._nudge.patience
            if next_due.answer is not None:
                pause = min(pause, max(next_due.answer, SOONEST_SECONDS))
            self._heard = self._nudge.wait(max(heard, self._heard), pause)
            if claims and self._together is not None:
                # What comes due meanwhile is looked at together.
                self._rest(min(RESTS * cost, LONGEST_REST_SECONDS))
        return True

    def _rest(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, seconds)

    @contextmanager
    def draining(self) -> Iterator[None]:
        """On the way out, wait for the passes that are under way."""
        try:
            yield
        finally:
            with self._changed:
                self._stopping = True
                self._changed.notify_all()
            self._threads.shutdown(wait=True)

    def _hand_out(self, claims: Sequence[Claim]) -> None:
        """Give claims to workers: many to one, but for those that failed before."""
        with self._changed:
            self._under_way += len(claims)
        at_once = [claim for claim in claims if claim.failures == 0]
        if self._together is None or len(at_once) < 2:
            at_once = []
        for claim in claims:
            if claim not in at_once:
                self._threads.submit(self._guarded, claim)
        for first in range(0, len(at_once), TOGETHER):
            self._threads.submit(self._several, at_once[first : first + TOGETHER])

    def _several(self, claims: Sequence[Claim]) -> None:
        alone = claims
        if self._together is not None and not self._stopping:
            try:
                alone = self._together(claims)
            except Exception as error:  # one of many may be the cause: each is tried alone
                log.warning("looked at one by one", exc_info=error)
            with self._changed:
                self._under_way -= len(claims) - len(alone)
                self._changed.notify_all()
        for claim in alone:
            try:
                self._threads.submit(self._guarded, claim)
            except RuntimeError:  # no more are taken
                self._guarded(claim)

    def _guarded(self, claim: Claim) -> None:
        try:
            if self._stopping:
                self._give_back(claim)
            else:
                self._look(claim)
        except DomainError as error:
            log.warning("pass put off", extra={claim.kind: claim.uid, "error": str(error)})
            self._put_off(claim, LONGEST_RETRY)
        except Exception:  # one pass of many: the object backs off, the others go on
            log.exception(
                "pass failed", extra={claim.kind: claim.uid, "failures": claim.failures}
            )
            self._put_off(claim, LONGEST_BACKOFF)
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def _give_back(self, claim: Claim) -> None:
        """Leave an object that was not looked at to others, at once."""
        with self._database.transaction() as session:
            work.wake(session, claim.kind, claim.uid)
            work.release(session, claim)

    def _put_off(self, claim: Claim, longest: timedelta) -> None:
        """Back off from what cannot be looked at; after many times, tell its owner."""
        try:
            with self._database.transaction() as session:
                work.fail(session, claim, backoff=backoff(claim.failures, longest))
                if claim.failures + 1 >= self._max_requeues:
                    self._tell(session, claim)
        except NotFoundError:
            return
        except Exception:
            # Postgres is away: the claim runs out by itself and the object is due again.
            log.warning("claim left to expire", extra={claim.kind: claim.uid}, exc_info=True)
