"""The first look at a job, in the transaction that stores it.

Nothing of a new job is unknown: it has no pods, no group, no commands. What a pass would decide
first, its pod group and its first phase, follows at once, and no pass is made for it.
"""

from __future__ import annotations

from hekla.api.job import Job
from hekla.store import jobs, work
from hekla.store.database import Session
from hekla.store.jobs import StoredJob
from services.controller.core.following import follow
from services.controller.core.observed import Counters, Observed
from services.controller.recording import record


def look_at(session: Session, stored: StoredJob) -> Job:
    """Write down what follows of a job that this transaction has just stored; return it."""
    at = stored.created_at
    observed = Observed(
        uid=stored.uid,
        job=stored.job,
        created_at=at,
        counters=Counters(**stored.counters),
    )
    chain = follow(observed, at)
    recorded = record(session, stored, chain, at)
    if chain.decided.again and not chain.quiet:
        work.wake(session, jobs.KIND, str(stored.uid))
    elif chain.due_at is not None:
        work.wake(session, jobs.KIND, str(stored.uid), due_at=chain.due_at)
    return recorded.stored.job
