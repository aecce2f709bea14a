"""Writes down what a pass decided, in the transaction that holds its claim."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from hekla.api.job import JobStatus
from hekla.domain.attempt import Attempt
from hekla.domain.phases import FINISHED, JobPhase
from hekla.store import attempts, commands, events, history, jobs, pod_groups, triggers
from hekla.store.database import Session
from hekla.store.events import Event
from hekla.store.jobs import StoredJob
from services.controller.core.observed import GroupStep, Observed, Plan
from services.controller.core.status import status
from services.controller.reading import task_counts


class Recorded(NamedTuple):
    """What became of a plan in the store."""

    planned: Sequence[Attempt]
    """Attempts that were written down, whose pods are to be made."""
    status: JobStatus


def record(
    session: Session, stored: StoredJob, observed: Observed, plan: Plan, now: datetime
) -> Recorded:
    """Write all of a plan.

    Raises:
        ConflictError: the job changed since it was read; nothing of the plan may be done.
    """
    commands.forget(session, plan.commands)
    if plan.retire:
        history.retire(session, stored)
        return Recorded((), stored.job.status)
    if plan.expire:
        jobs.mark_deleting(session, stored.uid)
        return Recorded((), stored.job.status)
    for kill in plan.kills:
        attempts.doom(session, stored.uid, kill)
    group = _group(session, stored, observed, plan)
    planned: Sequence[Attempt] = ()
    if plan.slots and group is not None:
        planned = attempts.plan(session, stored, plan.slots, version=plan.version, group=group)
    attempts.handle(session, plan.handled)
    _triggers(session, stored, plan)
    events.add(
        session,
        stored.uid,
        [Event(note.weight, note.reason, note.message) for note in plan.notes],
    )
    return Recorded(planned, _status(session, stored, observed, plan, now))


def _group(session: Session, stored: StoredJob, observed: Observed, plan: Plan) -> UUID | None:
    """Do what the plan says of the pod group; return the uid of the one there is."""
    had = observed.group
    match plan.group:
        case GroupStep.KEEP:
            return had.uid if had is not None else None
        case GroupStep.REMOVE:
            if had is not None:
                pod_groups.remove(session, had.uid)
            return None
        case GroupStep.ENSURE if had is not None:
            assert plan.group_spec is not None
            found = None
            if had.spec != plan.group_spec:
                found = pod_groups.of_job(session, stored.uid)
            if found is not None:
                pod_groups.reshape(session, found, plan.group_spec)
            return had.uid
        case _:
            assert plan.group_spec is not None
            if had is not None:
                pod_groups.remove(session, had.uid)
            return pod_groups.make_of_job(session, stored, plan.group_spec)


def _triggers(session: Session, stored: StoredJob, plan: Plan) -> None:
    if plan.cancel_timers:
        triggers.cancel_armed(session, stored.uid)
    for reset in plan.resets:
        triggers.reset(session, stored.uid, reset.task, reset.indices)
    triggers.put(session, stored.uid, plan.triggers)
    if plan.carry:
        before = stored.job.status.version
        triggers.carry(session, stored.uid, before=before, version=plan.version)


def _status(
    session: Session, stored: StoredJob, observed: Observed, plan: Plan, now: datetime
) -> JobStatus:
    counts = observed.counts
    if plan.kills:
        counts = task_counts(attempts.counts(session, stored.uid))
    started_at = stored.started_at
    if started_at is None and plan.phase is JobPhase.RUNNING:
        started_at = now
    finished_at = (stored.finished_at or now) if plan.phase in FINISHED else None
    shown = status(
        stored.job, plan, counts, started_at=started_at, finished_at=finished_at, now=now
    )
    counters = {
        "evictions": plan.counters.evictions,
        "resumes": plan.counters.resumes,
        "generation": plan.counters.generation,
    }
    was = (stored.job.status, stored.counters, stored.started_at, stored.finished_at)
    if (shown, counters, started_at, finished_at) == was:
        return shown
    jobs.record(
        session,
        stored,
        status=shown,
        counters=counters,
        started_at=started_at,
        finished_at=finished_at,
        locked=True,
    )
    return shown
