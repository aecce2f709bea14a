"""Reads what a pass wants to know of a job, in counts and in picks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from hekla.domain.phases import JobEvent, PodGroupPhase
from hekla.store import attempts, batch, commands, jobs, pod_groups, triggers, work
from hekla.store.attempts import Counts
from hekla.store.database import Session
from hekla.store.jobs import StoredJob
from hekla.store.work import Claim
from services.controller.core import policies
from services.controller.core.observed import Counters, Group, Observed, TaskCounts

SLICE: Final = 500
"""How many pods one slice of a pass makes or removes, and outcomes it considers."""
REJECTED_PAUSE: Final = timedelta(seconds=5)
"""For how long an index whose pod a kubelet refused waits for another."""


def read(session: Session, claim: Claim) -> tuple[datetime, StoredJob, Observed]:
    """The time, the job, locked, and all that deciding about it takes.

    What cannot matter is not asked for, and the rest together.

    Raises:
        ConflictError: the claim is not ours any more.
        NotFoundError: the job is gone.
    """
    uid = UUID(claim.uid)
    held = work.holding(claim)
    here = jobs.locked(uid)
    counting = attempts.counting(uid)
    grouped = pod_groups.group(uid)
    ended = attempts.ended(uid, limit=SLICE)
    asked = commands.asked(uid)
    batch.ask(session, held, here, counting, grouped, ended, asked)
    now = held.answer
    stored, counts, group = here.answer, counting.answer, grouped.answer
    job = stored.job
    version = job.status.version
    hearing = policies.tasks_that_hear(job.spec, JobEvent.POD_PENDING)
    wanted = [(task.name, task.replicas) for task in job.spec.tasks or []]
    filled = all(_is_filled(counts, task, replicas) for task, replicas in wanted)
    # Pods are made only while the group is admitted.
    admitted = group is not None and group.phase is not PodGroupPhase.PENDING
    reacts = policies.are_there_any(job.spec)
    observed = Observed(
        uid=uid,
        job=job,
        created_at=stored.created_at,
        counters=Counters(**stored.counters),
        started_at=stored.started_at,
        finished_at=stored.finished_at,
        deleting=stored.deleting_at is not None,
        counts=task_counts(counts),
        present=counts.present,
        restarts=counts.restarts,
        unseen=counts.unseen,
        ended=ended.answer,
        missing=(
            ()
            if filled or not admitted
            else attempts.missing(session, uid, wanted, pause=REJECTED_PAUSE, limit=SLICE)
        ),
        commands=asked.answer,
        triggers=(
            triggers.of_job(session, uid, version=version, limit=SLICE) if reacts else ()
        ),
        waiting=(
            triggers.pending_unarmed(session, uid, version=version, tasks=hearing, limit=SLICE)
            if hearing
            else ()
        ),
        group=None
        if group is None
        else Group(
            uid=group.uid,
            phase=group.phase,
            spec=group.group.spec,
            conditions=group.group.status.conditions or (),
        ),
        wait=stored.wait,
        retry_at=(
            attempts.retry_at(session, uid, pause=REJECTED_PAUSE)
            if admitted and _any_unsettled(counts)
            else None
        ),
    )
    return now, stored, observed


def _any_unsettled(counts: Counts) -> bool:
    return any(attempts.UNSETTLED & states.keys() for states in counts.by_task.values())


def _is_filled(counts: Counts, task: str, replicas: int) -> bool:
    """Whether each index of a task has what it wants, by numbers alone."""
    states = counts.by_task.get(task, {})
    settled = sum(count for name, count in states.items() if name not in attempts.UNSETTLED)
    return settled == replicas and counts.highest.get(task, -1) < replicas


def task_counts(counts: Counts) -> Mapping[str, TaskCounts]:
    """Counts by the states that the store tells apart."""
    return {
        task: TaskCounts(
            planned=states.get("Planned", 0),
            pending=states.get("Pending", 0),
            running=states.get("Running", 0),
            succeeded=states.get("Succeeded", 0),
            failed=states.get("Failed", 0),
            unknown=states.get("Unknown", 0),
            terminating=states.get("Terminating", 0),
            stale=states.get("Stale", 0),
        )
        for task, states in counts.by_task.items()
    }
