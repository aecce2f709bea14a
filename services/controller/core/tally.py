"""A job in numbers: what the rules of the state machine ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hekla.api.job import JobSpec, TaskSpec
from services.controller.core.observed import Observed, TaskCounts

NONE = TaskCounts()


def task_minimum(task: TaskSpec) -> int:
    """How many pods of the task must be there: its ``minAvailable``, else all."""
    return task.replicas if task.min_available is None else task.min_available


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over a job's tasks, beside what its spec asks for."""

    replicas: int
    min_available: int
    min_success: int | None
    max_retry: int
    retry_count: int
    pending: int
    running: int
    succeeded: int
    failed: int
    unknown: int
    terminating: int
    live: int
    tasks_succeeded: bool
    """Each task with a minimum of its own has that many successes."""

    @property
    def started(self) -> int:
        """Pods that got to run, whether or not they have ended."""
        return self.running + self.succeeded + self.failed

    @property
    def waiting(self) -> int:
        """Indices whose pod is still to run, made or not."""
        return self.replicas - self.started - self.unknown - self.terminating

    @property
    def enough_succeeded(self) -> bool:
        """Whether a job all of whose pods have ended did what it was for."""
        if not self.tasks_succeeded:
            return False
        if self.min_success is not None:
            return self.succeeded >= self.min_success
        return self.succeeded >= self.min_available


def tally(observed: Observed, *, retry_count: int | None = None) -> Tally:
    """Add up what was observed."""
    spec = observed.job.spec
    counts = observed.counts
    tasks = spec.tasks or []
    # Pods of a task that the spec no longer has are on their way out, whatever they do.
    ours = [counts.get(task.name, NONE) for task in tasks]
    return Tally(
        replicas=sum(task.replicas for task in tasks),
        min_available=spec.min_available or 0,
        min_success=spec.min_success,
        max_retry=spec.max_retry,
        retry_count=observed.job.status.retry_count if retry_count is None else retry_count,
        pending=sum(one.pending + one.planned for one in ours),
        running=sum(one.running for one in ours),
        succeeded=sum(one.succeeded for one in ours),
        failed=sum(one.failed for one in ours),
        unknown=sum(one.unknown for one in ours),
        terminating=sum(one.terminating for one in counts.values()),
        live=sum(one.live for one in counts.values()),
        tasks_succeeded=_tasks_succeeded(spec, counts),
    )


def _tasks_succeeded(spec: JobSpec, counts: Mapping[str, TaskCounts]) -> bool:
    """Whether no task fell short, where the job wants every task's minimum.

    A job that asks for less than its tasks' minimums together does not mean each of them.
    """
    tasks = spec.tasks or []
    if (spec.min_available or 0) < sum(task_minimum(task) for task in tasks):
        return True
    return all(
        counts.get(task.name, NONE).succeeded >= (task.min_available or 0)
        for task in tasks
        if task.name in counts
    )
