"""Makers of objects: say what matters to the test, and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from hekla.api.job import Job
from hekla.api.pod_group import PodGroupSpec
from hekla.domain.attempt import Ended, Outcome
from hekla.domain.phases import JobPhase, PodGroupPhase
from services.controller.core.observed import Group, Observed, TaskCounts

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
JOB_UID = UUID(int=1)
GROUP_UID = UUID(int=2)


def make_task(name: str = "t", replicas: int = 1, **fields: Any) -> dict[str, Any]:
    """A task in YAML's shape, whose minimum is all of it."""
    container = {"name": "c", "image": "busybox", "command": ["true"]}
    return {
        "name": name,
        "replicas": replicas,
        "minAvailable": replicas,
        "maxRetry": 3,
        "template": {"spec": {"containers": [container], "restartPolicy": "Never"}},
        **fields,
    }


def make_job(
    *tasks: Mapping[str, Any],
    phase: JobPhase = JobPhase.PENDING,
    name: str = "j",
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Job:
    """An admitted job of these tasks; by default of one with one pod."""
    listed = list(tasks) or [make_task()]
    minimum = sum(task["minAvailable"] for task in listed)
    return Job.model_validate(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": str(JOB_UID),
                "generation": 1,
            },
            "spec": {
                "queue": "default",
                "schedulerName": "volcano",
                "maxRetry": 3,
                "minAvailable": minimum,
                "tasks": listed,
                **spec,
            },
            "status": {"state": {"phase": phase.value}, **(status or {})},
        }
    )


def make_observed(
    job: Job | None = None,
    *,
    group: PodGroupPhase | None = PodGroupPhase.RUNNING,
    **fields: Any,
) -> Observed:
    """A job as a pass sees it, with a group that was admitted."""
    seen = None
    if group is not None:
        seen = Group(uid=GROUP_UID, phase=group, spec=PodGroupSpec())
    counts: Mapping[str, TaskCounts] = fields.pop("counts", {})
    present = fields.pop("present", sum(one.live for one in counts.values()))
    return Observed(
        uid=JOB_UID,
        job=job or make_job(),
        created_at=NOW,
        group=seen,
        counts=counts,
        present=present,
        **fields,
    )


def make_ended(
    outcome: Outcome = Outcome.FAILED,
    *,
    task: str = "t",
    index: int = 0,
    number: int = 100,
    exit_codes: Mapping[str, int] | None = None,
    at: datetime = NOW,
    **fields: Any,
) -> Ended:
    """An attempt whose outcome no policy has seen."""
    return Ended(
        uid=UUID(int=number),
        task=task,
        index=index,
        job_version=fields.pop("job_version", 0),
        outcome=outcome,
        exit_codes=exit_codes if exit_codes is not None else {"c": 1},
        finished_at=at,
        **fields,
    )


def policies(*pairs: tuple[str, str], **more: Any) -> Sequence[dict[str, Any]]:
    """Policies from (event, action)."""
    return [{"event": event, "action": action, **more} for event, action in pairs]
