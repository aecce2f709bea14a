"""Writes down what a pass decided, in the transaction that holds its claim."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from hekla.domain import names
from hekla.domain.names import Key
from hekla.domain.phases import FINISHED, JobPhase
from hekla.store import attempts, events, history, jobs, pod_groups, triggers
from hekla.store.database import Session
from hekla.store.events import Event
from hekla.store.jobs import StoredJob
from services.controller.core.observed import GroupStep, Observed, Plan
from services.controller.core.status import status
from services.controller.reading import task_counts


def record(
    session: Session, stored: StoredJob, observed: Observed, plan: Plan, now: datetime
) -> None:
    """Write all of a plan.

    Raises:
        ConflictError: the job changed since it was read; nothing of the plan may be done.
    """
    jobs.forget_commands(session, plan.commands)
    if plan.retire:
        history.retire(session, stored)
        return
    if plan.expire:
        jobs.mark_deleting(session, stored.uid)
        return
    for kill in plan.kills:
        attempts.doom(session, stored.uid, kill)
    group = _group(session, stored, observed, plan)
    if plan.slots and group is not None:
        attempts.plan(session, stored, plan.slots, version=plan.version, group=group)
    attempts.handle(session, plan.handled)
    _triggers(session, stored, plan)
    events.add(
        session,
        stored.uid,
        [Event(note.weight, note.reason, note.message) for note in plan.notes],
    )
    _status(session, stored, observed, plan, now)


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
            made = pod_groups.make(
                session,
                Key(
                    stored.key.namespace, names.pod_group_name(stored.key.name, str(stored.uid))
                ),
                plan.group_spec,
                job=stored.uid,
                labels=stored.job.metadata.labels or {},
                annotations=stored.job.metadata.annotations or {},
                # The place in line is the job's, whatever happened to it since.
                created_at=stored.created_at,
            )
            return made.uid


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
) -> None:
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
        return
    jobs.record(
        session,
        stored,
        status=shown,
        counters=counters,
        started_at=started_at,
        finished_at=finished_at,
    )
