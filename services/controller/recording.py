"""Writes down what was decided about a job, in the transaction that holds its claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from hekla.domain.attempt import Attempt
from hekla.store import attempts, commands, events, history, jobs, pod_groups, triggers
from hekla.store.database import Session
from hekla.store.events import Event
from hekla.store.jobs import StoredJob
from services.controller.core.following import Chain
from services.controller.core.observed import GroupStep, Observed, Plan
from services.controller.core.status import write
from services.controller.reading import task_counts


class Recorded(NamedTuple):
    """What became of plans in the store."""

    planned: Sequence[Attempt]
    """Attempts that were written down, whose pods are to be made."""
    stored: StoredJob
    """The job as it is now."""
    groups: Sequence[UUID] = ()
    """Pod groups that are still to be removed, with those of other jobs."""


def record(session: Session, stored: StoredJob, chain: Chain, now: datetime) -> Recorded:
    """Write all of the plans.

    Raises:
        ConflictError: the job changed since it was read; nothing of them may be done.
    """
    planned: Sequence[Attempt] = ()
    groups: list[UUID] = []
    for observed, decided in chain.steps:
        commands.forget(session, decided.commands)
        if decided.retire:
            history.retire(session, stored)
            return Recorded((), stored)
        if decided.expire:
            jobs.mark_deleting(session, stored.uid)
            return Recorded((), stored)
        planned = _one(session, stored, observed, decided)
        if decided.group is GroupStep.REMOVE and observed.group is not None:
            groups.append(observed.group.uid)
    return Recorded(planned, _written(session, stored, chain, now), groups)


def _one(
    session: Session, stored: StoredJob, observed: Observed, plan: Plan
) -> Sequence[Attempt]:
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
    return planned


def _group(session: Session, stored: StoredJob, observed: Observed, plan: Plan) -> UUID | None:
    """Do what the plan says of the pod group, but remove it; return the uid of the one kept."""
    had = observed.group
    match plan.group:
        case GroupStep.KEEP:
            return had.uid if had is not None else None
        case GroupStep.REMOVE:
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


def _written(session: Session, stored: StoredJob, chain: Chain, now: datetime) -> StoredJob:
    observed, decided = chain.observed, chain.decided
    counts = observed.counts
    if decided.kills:
        counts = task_counts(attempts.counts(session, stored.uid))
    written = write(observed, decided, counts, now)
    counters = {
        "evictions": decided.counters.evictions,
        "resumes": decided.counters.resumes,
        "generation": decided.counters.generation,
    }
    was = (stored.job.status, stored.started_at, stored.finished_at, stored.counters)
    if (*written, counters) == was:
        return stored
    version = jobs.record(
        session,
        stored,
        status=written.status,
        counters=counters,
        started_at=written.started_at,
        finished_at=written.finished_at,
        locked=True,
    )
    meta = stored.job.metadata.model_copy(update={"resource_version": str(version)})
    return replace(
        stored,
        job=stored.job.model_copy(update={"metadata": meta, "status": written.status}),
        version=version,
        counters=counters,
        started_at=written.started_at,
        finished_at=written.finished_at,
    )
