"""A job's status: a pure function of what it was, what was decided, and its pods in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from hekla.api.job import Job, JobCondition, JobState, JobStatus, TaskState
from hekla.domain import duration, timestamps
from hekla.domain.phases import FINISHED, JobPhase, PodPhase
from services.controller.core.observed import Observed, Plan, TaskCounts


class Written(NamedTuple):
    """What a job's row says of it."""

    status: JobStatus
    started_at: datetime | None
    finished_at: datetime | None


def write(
    observed: Observed, decided: Plan, counts: Mapping[str, TaskCounts], now: datetime
) -> Written:
    """What the row says once a plan is carried out, and there are so many pods."""
    started_at = observed.started_at
    if started_at is None and decided.phase is JobPhase.RUNNING:
        started_at = now
    finished_at = (observed.finished_at or now) if decided.phase in FINISHED else None
    shown = status(
        observed.job,
        decided,
        counts,
        started_at=started_at,
        finished_at=finished_at,
        now=now,
    )
    return Written(shown, started_at, finished_at)


def status(
    job: Job,
    decided: Plan,
    counts: Mapping[str, TaskCounts],
    *,
    started_at: datetime | None,
    finished_at: datetime | None,
    now: datetime,
) -> JobStatus:
    """The status to store. Equal input gives an equal status, so nothing is written twice."""
    before = job.status
    moved = before.state.phase != decided.phase or not before.conditions
    at = timestamps.to_text(now) if moved else before.state.last_transition_time
    conditions = list(before.conditions or [])
    if moved:
        conditions = [one for one in conditions if one.status != decided.phase]
        conditions.append(JobCondition(status=decided.phase, last_transition_time=at))
    every = counts.values()
    return before.model_copy(
        update={
            "state": JobState(
                phase=decided.phase,
                reason=decided.reason or None,
                message=decided.message or None,
                last_transition_time=at,
            ),
            "min_available": job.spec.min_available or 0,
            "task_status_count": _by_task(counts) or None,
            "pending": sum(one.pending for one in every),
            "running": sum(one.running for one in every),
            "succeeded": sum(one.succeeded for one in every),
            "failed": sum(one.failed for one in every),
            "unknown": sum(one.unknown for one in every),
            "terminating": sum(one.terminating for one in every),
            "version": decided.version,
            "retry_count": decided.retry_count,
            "running_duration": _duration(started_at, finished_at),
            "conditions": conditions,
        }
    )


def _by_task(counts: Mapping[str, TaskCounts]) -> dict[str, TaskState]:
    found = {}
    for task, one in counts.items():
        phases = {
            PodPhase.PENDING.value: one.pending,
            PodPhase.RUNNING.value: one.running,
            PodPhase.SUCCEEDED.value: one.succeeded,
            PodPhase.FAILED.value: one.failed,
            PodPhase.UNKNOWN.value: one.unknown,
        }
        phases = {phase: count for phase, count in phases.items() if count}
        if phases:
            found[task] = TaskState(phase=phases)
    return found


def _duration(started_at: datetime | None, finished_at: datetime | None) -> str | None:
    """From the first time it ran to its end; never changed again."""
    if started_at is None or finished_at is None:
        return None
    return duration.format(max(finished_at - started_at, timedelta(0)))
