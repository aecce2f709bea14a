"""One look at a job: read, plan, record, act; in slices, until there is no more to do at once.

Each slice reads everything again, commands too, so that an abort takes effect within a slice
at any size. It renews the claim and records only while the claim is ours. What was recorded
and not done, because of a crash or a lost claim, is done by the next pass.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from hekla import failpoint
from hekla.domain.attempt import Attempt
from hekla.domain.errors import ConflictError, NotFoundError
from hekla.domain.phases import FINISHED
from hekla.store import attempts, batch, events, jobs, pod_groups, work
from hekla.store.database import Database, Session
from hekla.store.dispatcher import LONGEST_RETRY, backoff
from hekla.store.events import Event
from hekla.store.jobs import StoredJob
from hekla.store.work import Claim
from hekla.telemetry import metrics
from services.controller.acting import Acted, Actor, Acts, note
from services.controller.core.following import Chain, follow
from services.controller.reading import SLICE, read
from services.controller.recording import record

log = logging.getLogger(__name__)

LONGEST_PASS: Final = timedelta(seconds=20)
"""After so long others get a turn; the job stays due."""
LONGEST_REST: Final = timedelta(seconds=5)


class Outcome(StrEnum):
    """How a pass ended."""

    DONE = "done"
    GONE = "gone"
    LOST = "lost"
    WAITS = "waits"
    FAILED = "failed"


def count(stored: StoredJob, chain: Chain) -> None:
    """Move the counters of what was decided about a job, as it was."""
    before = stored.job.status.state.phase
    for _, decided in chain.steps:
        if decided.event:
            metrics.policy_actions.labels(decided.event, decided.action).inc()
        if decided.phase in FINISHED and decided.phase != before:
            metrics.jobs_ended.labels(str(decided.phase), stored.job.spec.queue).inc()
        before = decided.phase


def tell_owner(session: Session, claim: Claim, *, failures: int) -> None:
    """Tell a job's owner that it cannot be looked at; it is tried on and on.

    Raises:
        NotFoundError: the job is gone.
    """
    uid = UUID(claim.uid)
    jobs.get_by_uid(session, uid)
    message = (
        f"the controller failed {failures} times in a row to look at this job; it goes on"
        " trying, see its log"
    )
    events.add(session, uid, [Event(events.WARNING, "ControllerError", message)])


def rest_after(began: float) -> timedelta:
    """For how long news of a job need not be looked at, which also gathers them.

    By what a look costs; what acting took is no reason to wait: a job whose thousand pods
    were made just now would hear late that they run.
    """
    return min(3 * timedelta(seconds=time.monotonic() - began), LONGEST_REST)


class PassLog:
    """Tells of passes that ended: a line of the log each, and figures."""

    def __init__(self, replica: str) -> None:
        self._replica = replica

    def ended(
        self, claim: Claim, wall: datetime, spent: float, outcome: Outcome, *, slices: int
    ) -> None:
        """Tell of one that began at ``wall`` and took ``spent`` seconds."""
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


class Passes:
    """Makes passes over jobs, for any number of workers."""

    def __init__(
        self, database: Database, actor: Actor, told: PassLog, *, lease: timedelta
    ) -> None:
        self._database = database
        self._actor = actor
        self._told = told
        self._lease = lease

    def run(self, claim: Claim) -> Outcome:
        """Look at the job of a claim, and give the claim back.

        Raises:
            Exception: the job could not be looked at. The claim is still held.
        """
        wall = datetime.now().astimezone()
        started = time.monotonic()
        slices = 0
        outcome: Outcome | None = None
        done: Acted | None = None
        try:
            while outcome is None:
                slices += 1
                outcome, done = self._slice(claim, started, done)
        except NotFoundError:
            outcome = Outcome.GONE
            self._release(claim)
        except ConflictError:
            # Lost to another worker, or the job changed under us: either way it is due.
            outcome = Outcome.LOST
            self._release(claim, due_now=True)
        finally:
            spent = time.monotonic() - started
            self._told.ended(claim, wall, spent, outcome or Outcome.FAILED, slices=slices)
        return outcome

    def _slice(
        self, claim: Claim, started: float, before: Acted | None
    ) -> tuple[Outcome | None, Acted | None]:
        """Write down what the slice before did, decide, record, act.

        The last slice has nothing to do, and gives the claim back in its transaction.
        """
        began = time.monotonic()
        with self._database.transaction() as session:
            if before is not None:
                work.hold(session, claim)
                note(session, before)
            at, found, observed = read(session, claim)
            chain = follow(observed, at)
            planned, stored, groups = record(session, found, chain, at)
            pod_groups.remove(session, *groups)
            spent = timedelta(seconds=time.monotonic() - started)
            failed = before is not None and before.done.failed
            acts, whole = Acts(), False
            if not failed and spent <= LONGEST_PASS:
                acts, whole = _acts(session, chain, stored, planned)
            outcome = None
            if acts:
                work.extend(session, claim, self._lease)
            else:
                outcome = self._end(
                    session,
                    claim,
                    chain,
                    spent,
                    failed=failed,
                    rest=rest_after(began),
                )
        rest = rest_after(began)
        failpoint.hit("controller.commit-unknown")
        count(found, chain)
        failpoint.hit("controller.recorded")
        acted = self._actor.act(stored, acts) if acts else None
        failpoint.hit("controller.acted")
        if acted is not None and whole and chain.quiet and not acted.done.failed:
            outcome = self._conclude(claim, acted, chain.due_at, rest)
        return outcome, acted

    def _conclude(
        self, claim: Claim, acted: Acted, due_at: datetime | None, rest: timedelta
    ) -> Outcome:
        """Write down what was done, and that there is nothing else to do."""
        with self._database.transaction() as session:
            note(session, acted)
            work.release(session, claim, due_at=due_at, rest=rest)
        return Outcome.DONE

    def _end(
        self,
        session: Session,
        claim: Claim,
        chain: Chain,
        spent: timedelta,
        *,
        failed: bool,
        rest: timedelta,
    ) -> Outcome | None:
        """Give the claim back, unless there is more to decide and time left for it."""
        if chain.decided.retire:
            work.release(session, claim)
            return Outcome.GONE
        if failed:
            work.fail(session, claim, backoff=backoff(claim.failures, LONGEST_RETRY))
            return Outcome.WAITS
        late = spent > LONGEST_PASS
        if chain.decided.again and not chain.quiet and not late:
            return None
        if late:  # others get a turn; there may be more to do
            work.wake(session, claim.kind, claim.uid)
        work.release(session, claim, due_at=chain.due_at, rest=rest)
        return Outcome.DONE

    def _release(self, claim: Claim, *, due_now: bool = False) -> None:
        with self._database.transaction() as session:
            if due_now:
                work.wake(session, claim.kind, claim.uid)
            work.release(session, claim)


def _acts(
    session: Session, chain: Chain, stored: StoredJob, just_planned: Sequence[Attempt]
) -> tuple[Acts, bool]:
    """What there is to do for the job, and whether that is known to be all."""
    observed, decided = chain.observed, chain.decided
    if decided.retire:
        return Acts(), False
    planned = sum(one.planned for one in observed.counts.values())
    if just_planned and not (planned or decided.kills or observed.others):
        return Acts(create=just_planned), len(just_planned) < SLICE
    create = delete = None
    if decided.slots or planned:
        create = attempts.creating(stored.uid, limit=SLICE)
    if decided.kills or observed.others:
        delete = attempts.deleting(stored.uid, limit=SLICE)
    batch.ask(session, *filter(None, [create, delete]))
    acts = Acts(
        create=create.answer if create is not None else (),
        delete=delete.answer if delete is not None else (),
    )
    return acts, False
