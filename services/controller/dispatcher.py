"""Claims due jobs and has them looked at, as many at once as there are workers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Final
from uuid import UUID

from hekla.domain.errors import DomainError, NotFoundError
from hekla.store import events, jobs, work
from hekla.store.database import Database
from hekla.store.events import Event
from hekla.store.nudge import Nudge
from hekla.store.work import Claim
from services.controller.passes import LONGEST_BACKOFF, LONGEST_RETRY, backoff

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 0.1
SOONEST_SECONDS: Final = 0.005
AHEAD: Final = 4
"""Claims taken for each worker: waiting ones cost no round trip, but must not wait long."""


class Dispatcher:
    """One a process: asks for work when a worker is free."""

    def __init__(
        self,
        database: Database,
        nudge: Nudge,
        look: Callable[[Claim], object],
        *,
        workers: int,
        max_requeues: int,
        lease: timedelta,
    ) -> None:
        self._database = database
        self._nudge = nudge
        self._look = look
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
                lambda: self._stopping or self._under_way < self._room, POLL_SECONDS
            )
            room = self._room - self._under_way
        if room <= 0 or self._stopping:
            return True
        heard = self._nudge.count
        claiming = work.claiming([jobs.KIND], limit=room, lease=self._lease)
        next_due = work.next_due([jobs.KIND])
        self._database.ask(claiming, next_due)
        claims = claiming.answer
        for claim in claims:
            with self._changed:
                self._under_way += 1
            self._threads.submit(self._guarded, claim)
        if not claims:
            pause = self._nudge.patience
            if next_due.answer is not None:
                pause = min(pause, max(next_due.answer, SOONEST_SECONDS))
            self._heard = self._nudge.wait(max(heard, self._heard), pause)
        return True

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

    def _guarded(self, claim: Claim) -> None:
        try:
            if self._stopping:
                self._give_back(claim)
            else:
                self._look(claim)
        except DomainError as error:
            log.warning("pass put off", extra={"job": claim.uid, "error": str(error)})
            self._put_off(claim, LONGEST_RETRY)
        except Exception:
            log.exception("pass failed", extra={"job": claim.uid, "failures": claim.failures})
            self._put_off(claim, LONGEST_BACKOFF)
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def _give_back(self, claim: Claim) -> None:
        """Leave a job that was not looked at to others, at once."""
        with self._database.transaction() as session:
            work.wake(session, claim.kind, claim.uid)
            work.release(session, claim)

    def _put_off(self, claim: Claim, longest: timedelta) -> None:
        """Back off from a job that cannot be looked at; after many times, tell its owner."""
        try:
            with self._database.transaction() as session:
                work.fail(session, claim, backoff=backoff(claim.failures, longest))
                if claim.failures + 1 >= self._max_requeues:
                    jobs.get_by_uid(session, UUID(claim.uid))
                    message = (
                        f"the controller failed {self._max_requeues} times in a row to look at"
                        " this job; it goes on trying, see its log"
                    )
                    said = Event(events.WARNING, "ControllerError", message)
                    events.add(session, UUID(claim.uid), [said])
        except NotFoundError:
            return
        except Exception:
            # Postgres is away: the claim runs out by itself and the job is due again.
            log.warning("claim left to expire", extra={"job": claim.uid}, exc_info=True)
