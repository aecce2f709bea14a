"""One look at a flow: read, plan, record, act; until there is no more to do at once.

Each round reads everything again. It records only while the claim is ours; what was recorded
and not done, because of a crash or a lost claim, is done by the next pass. Templates are
looked at too: which jobs were made from them is counted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from hekla import failpoint
from hekla.domain.errors import ConflictError, NotFoundError
from hekla.domain.names import Key
from hekla.domain.phases import FlowPhase
from hekla.store import flow_steps, job_flows, job_templates, work
from hekla.store.database import Database, Session
from hekla.store.dispatcher import LONGEST_RETRY, backoff
from hekla.store.flow_steps import StoredStep
from hekla.store.objects import to_json
from hekla.store.work import Claim
from hekla.telemetry import metrics
from services.flow.acting import Acted, Actor, Acts, StepAct, note
from services.flow.core.observed import Plan
from services.flow.core.plan import plan
from services.flow.reading import Reading, read

log = logging.getLogger(__name__)

KINDS: Final = (job_flows.KIND, job_templates.KIND)
LONGEST_REST: Final = timedelta(seconds=5)
HELD_LOOK: Final = timedelta(seconds=10)
"""Until the next look at a flow that goes and whose custom resource is there: it may be found
out that there are none any more."""


class Outcome(StrEnum):
    """How a pass ended."""

    DONE = "done"
    GONE = "gone"
    LOST = "lost"
    WAITS = "waits"
    FAILED = "failed"


def tell_owner(session: Session, claim: Claim, *, failures: int) -> None:
    """Show in a flow's status that it cannot be looked at; it is tried on and on.

    Raises:
        NotFoundError: the flow is gone.
    """
    if claim.kind != job_flows.KIND:
        return
    stored = job_flows.get_by_uid(session, UUID(claim.uid), to_change=True)
    message = f"the flow service failed {failures} times in a row to look at this flow"
    state = stored.flow.status.state.model_copy(
        update={"reason": "FlowError", "message": f"{message}; it goes on trying, see its log"}
    )
    status = stored.flow.status.model_copy(update={"state": state})
    job_flows.record(session, stored, status=status, finished_at=stored.finished_at)


class Passes:
    """Makes passes over flows and templates, for any number of workers."""

    def __init__(
        self,
        database: Database,
        actor: Actor,
        *,
        replica: str,
        lease: timedelta,
        mirrored: Callable[[], bool] = lambda: False,
    ) -> None:
        """See the class; ``mirrored`` tells whether flows have custom resources."""
        self._mirrored = mirrored
        self._database = database
        self._actor = actor
        self._replica = replica
        self._lease = lease

    def run(self, claim: Claim) -> Outcome:
        """Look at what a claim is on, and give the claim back.

        Raises:
            Exception: it could not be looked at. The claim is still held.
        """
        started = time.monotonic()
        outcome = Outcome.FAILED
        try:
            outcome = self._looked(claim, started)
        except NotFoundError:
            outcome = Outcome.GONE
            self._release(claim)
        except ConflictError:
            # Lost to another worker, or changed under us: either way it is due.
            outcome = Outcome.LOST
            self._release(claim, due_now=True)
        finally:
            spent = time.monotonic() - started
            metrics.passes.labels(claim.kind, str(outcome)).inc()
            metrics.pass_seconds.labels(claim.kind).observe(spent)
            log.info(
                "pass",
                extra={
                    claim.kind: claim.uid,
                    "replica": self._replica,
                    "token": str(claim.token),
                    "seconds": round(spent, 6),
                    "outcome": str(outcome),
                },
            )
        return outcome

    def _looked(self, claim: Claim, started: float) -> Outcome:
        if claim.kind == job_templates.KIND:
            return self._count(claim)
        outcome: Outcome | None = None
        done: Acted | None = None
        while outcome is None:
            outcome, done = self._round(claim, started, done)
        return outcome

    def _count(self, claim: Claim) -> Outcome:
        with self._database.transaction() as session:
            work.hold(session, claim)
            waiting = job_templates.count(session, UUID(claim.uid))
            work.release(session, claim)
            # After the template's own row: see ``job_templates``.
            work.wake(session, job_flows.KIND, *map(str, waiting), urgent=True)
        return Outcome.DONE

    def _round(
        self, claim: Claim, started: float, before: Acted | None
    ) -> tuple[Outcome | None, Acted | None]:
        """Write down what the round before did, decide, record, act.

        The last round has nothing to do, and gives the claim back in its transaction.
        """
        with self._database.transaction() as session:
            at = work.hold(session, claim)
            if before is not None:
                note(session, before)
            reading = read(session, UUID(claim.uid), mirrored=self._mirrored())
            decided = plan(reading.observed, at)
            failed = before is not None and before.done.failed
            # What was refused is planned anew when it is tried again, of the template of then.
            _record(session, reading, decided, planning=not failed)
            acts = Acts() if failed else _acts(reading, decided)
            outcome = None
            if acts:
                work.extend(session, claim, self._lease)
            else:
                again = at + HELD_LOOK if reading.observed.held else None
                outcome = _end(session, claim, decided, started, failed=failed, again=again)
        _count_ends(reading, decided)
        failpoint.hit("flow.recorded")
        acted = None
        if acts:
            stored = reading.stored
            acted = self._actor.act(stored.uid, stored.key.namespace, acts)
        failpoint.hit("flow.acted")
        return outcome, acted

    def _release(self, claim: Claim, *, due_now: bool = False) -> None:
        with self._database.transaction() as session:
            if due_now:
                work.wake(session, claim.kind, claim.uid)
            work.release(session, claim)


def _record(session: Session, reading: Reading, decided: Plan, *, planning: bool) -> None:
    stored = reading.stored
    for step, job in decided.create.items() if planning else ():
        flow_steps.plan(session, stored.uid, step, to_json(job))
    job_flows.record(session, stored, status=decided.status, finished_at=decided.finished_at)
    if decided.retire:
        job_flows.retire(session, stored.uid)
        names = [step.name for step in reading.steps]
        job_templates.wake(session, stored.key.namespace, names)


def _acts(reading: Reading, decided: Plan) -> Acts:
    if decided.retire:
        return Acts()
    planned = []
    for step in reading.steps:
        job = decided.create.get(step.name)
        written = to_json(job) if job is not None else step.job
        if step.job_uid is None and written is not None:
            planned.append(_act(reading, step, job=written))
    return Acts(
        create=planned if decided.making else (),
        settle=() if decided.making else planned,
        remove=[
            _act(reading, step, uid=step.job_uid)
            for step in reading.steps
            if step.name in decided.remove
        ],
    )


def _act(reading: Reading, step: StoredStep, **more: object) -> StepAct:
    name = reading.observed.job_name(step.name)
    key = Key(reading.stored.key.namespace, name)
    return StepAct(step.name, step.attempt, key, **more)  # type: ignore[arg-type] # what it is


def _end(
    session: Session,
    claim: Claim,
    decided: Plan,
    started: float,
    *,
    failed: bool,
    again: datetime | None,
) -> Outcome:
    """Give the claim back; have the flow looked at ``again`` whatever happens."""
    if decided.retire:
        work.release(session, claim)
        return Outcome.GONE
    if failed:
        work.fail(session, claim, backoff=backoff(claim.failures, LONGEST_RETRY))
        return Outcome.WAITS
    spent = timedelta(seconds=time.monotonic() - started)
    work.release(session, claim, due_at=again, rest=min(3 * spent, LONGEST_REST))
    return Outcome.DONE


def _count_ends(reading: Reading, decided: Plan) -> None:
    if decided.phase is reading.observed.phase:
        return
    namespace = reading.stored.key.namespace
    if decided.phase is FlowPhase.SUCCEED:
        metrics.flows_succeeded.labels(namespace).inc()
    elif decided.phase is FlowPhase.FAILED:
        metrics.flows_failed.labels(namespace).inc()
