"""One look at a job: read, plan, record, act; in slices, until there is no more to do at once.

Each slice reads everything again, commands too, so that an abort takes effect within a slice
at any size. It renews the claim and records only while the claim is ours. What was recorded
and not done, because of a crash or a lost claim, is done by the next pass.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from hekla import failpoint
from hekla.domain.errors import ConflictError, DomainError, NotFoundError
from hekla.domain.phases import FINISHED
from hekla.store import attempts, work
from hekla.store.database import Database, Session, now
from hekla.store.jobs import StoredJob
from hekla.store.work import Claim
from hekla.telemetry import metrics
from services.controller.acting import Actor, Acts, Done
from services.controller.core.observed import Plan
from services.controller.core.plan import plan
from services.controller.reading import SLICE, read
from services.controller.recording import record

log = logging.getLogger(__name__)

LONGEST_PASS: Final = timedelta(seconds=20)
"""After so long others get a turn; the job stays due."""
LONGEST_REST: Final = timedelta(seconds=5)
FIRST_BACKOFF: Final = timedelta(milliseconds=500)
LONGEST_BACKOFF: Final = timedelta(seconds=60)
LONGEST_RETRY: Final = timedelta(seconds=10)
"""An act that was refused is tried again after so long at the latest."""


class Outcome(StrEnum):
    """How a pass ended."""

    DONE = "done"
    GONE = "gone"
    LOST = "lost"
    WAITS = "waits"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Slice:
    """One round of a pass."""

    stored: StoredJob
    plan: Plan
    acts: Acts
    done: Done


def _count(stored: StoredJob, decided: Plan) -> None:
    """Move the counters of what was decided."""
    if decided.event:
        metrics.policy_actions.labels(decided.event, decided.action).inc()
    before = stored.job.status.state.phase
    if decided.phase in FINISHED and decided.phase != before:
        metrics.jobs_ended.labels(str(decided.phase), stored.job.spec.queue).inc()


def backoff(failures: int, longest: timedelta) -> timedelta:
    """How long to wait after so many failures before: doubling, with a bound."""
    return min(FIRST_BACKOFF * (1 << min(failures, 20)), longest)


class Passes:
    """Makes passes over jobs, for any number of workers."""

    def __init__(
        self, database: Database, actor: Actor, *, replica: str, lease: timedelta
    ) -> None:
        self._database = database
        self._actor = actor
        self._replica = replica
        self._lease = lease

    def run(self, claim: Claim) -> Outcome:
        """Look at the job of a claim, and give the claim back."""
        wall = datetime.now().astimezone()
        started = time.monotonic()
        slices = 0
        try:
            outcome, slices = self._run(claim, started)
        except NotFoundError:
            outcome = Outcome.GONE
            self._release(claim)
        except ConflictError:
            # Lost to another worker, or the job changed under us: either way it is due.
            outcome = Outcome.LOST
            self._release(claim, due_now=True)
        except DomainError as error:
            log.warning("pass put off", extra={"job": claim.uid, "error": str(error)})
            outcome = Outcome.FAILED
            self._fail(claim, LONGEST_RETRY)
        spent = time.monotonic() - started
        metrics.passes.labels("job", str(outcome)).inc()
        metrics.pass_seconds.labels("job").observe(spent)
        log.info(
            "pass",
            extra={
                "job": claim.uid,
                "replica": self._replica,
                "token": str(claim.token),
                "started": wall.isoformat(),
                "ended": (wall + timedelta(seconds=spent)).isoformat(),
                "outcome": str(outcome),
                "slices": slices,
            },
        )
        return outcome

    def _run(self, claim: Claim, started: float) -> tuple[Outcome, int]:
        slices = 0
        while True:
            one = self._slice(claim)
            slices += 1
            spent = timedelta(seconds=time.monotonic() - started)
            if one.plan.retire:
                self._release(claim)
                return Outcome.GONE, slices
            if one.done.refused is not None or one.done.unknown:
                self._fail(claim, LONGEST_RETRY)
                return Outcome.WAITS, slices
            more = one.plan.again or len(one.acts.create) == SLICE
            if not more or spent > LONGEST_PASS:
                rest = min(3 * spent, LONGEST_REST)
                self._release(claim, due_at=one.plan.due_at, due_now=more, rest=rest)
                return Outcome.DONE, slices

    def _slice(self, claim: Claim) -> Slice:
        uid = UUID(claim.uid)
        with self._database.transaction() as session:
            work.hold(session, claim, renew=self._lease)
            stored, observed = read(session, uid)
            at = now(session)
            decided = plan(observed, at)
            record(session, stored, observed, decided, at)
            acts = self._acts(session, stored, decided)
        failpoint.hit("controller.commit-unknown")
        _count(stored, decided)
        failpoint.hit("controller.recorded")
        done = self._actor.act(stored, acts) if acts else Done()
        failpoint.hit("controller.acted")
        return Slice(stored, decided, acts, done)

    def _acts(self, session: Session, stored: StoredJob, decided: Plan) -> Acts:
        if decided.retire:
            return Acts()
        return Acts(
            create=attempts.to_create(session, stored.uid, limit=SLICE),
            delete=attempts.to_delete(session, stored.uid, limit=SLICE),
        )

    def _release(
        self,
        claim: Claim,
        *,
        due_at: datetime | None = None,
        due_now: bool = False,
        rest: timedelta = timedelta(0),
    ) -> None:
        with self._database.transaction() as session:
            if due_now:
                work.wake(session, claim.kind, claim.uid)
            work.release(session, claim, due_at=due_at, rest=rest)

    def _fail(self, claim: Claim, longest: timedelta) -> None:
        with self._database.transaction() as session:
            work.fail(session, claim, backoff=backoff(claim.failures, longest))
