"""What is shown of each kind. Pure: the present instant is an argument."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from hekla.api.decode import encode
from hekla.api.job import Job
from hekla.api.job_flow import JobFlow
from hekla.api.job_template import JobTemplate
from hekla.api.pod_group import PodGroup
from hekla.api.queue import Queue
from hekla.cli.output import Kind, Shown
from hekla.client import Attempt, JobEvent, PodView
from hekla.client.job_flows import phase as flow_phase
from hekla.client.waiting import phase
from hekla.domain import names, timestamps
from hekla.domain.ages import age, span

JOBS: Final[Kind[Job]] = Kind(
    plural="jobs",
    resource="job.batch.volcano.sh",
    header=(
        "NAME",
        "QUEUE",
        "PHASE",
        "MIN",
        "PENDING",
        "RUNNING",
        "SUCCEEDED",
        "FAILED",
        "RETRIES",
        "AGE",
    ),
    wide=("REPLICAS", "TERMINATING", "UNKNOWN", "SCHEDULER", "PRIORITY", "TOOK", "MESSAGE"),
)
QUEUES: Final[Kind[Queue]] = Kind(
    plural="queues",
    resource="queue.scheduling.volcano.sh",
    header=(
        "NAME",
        "PARENT",
        "WEIGHT",
        "STATE",
        "PENDING",
        "INQUEUE",
        "RUNNING",
        "UNKNOWN",
        "COMPLETED",
        "AGE",
    ),
    wide=("RECLAIMABLE", "PRIORITY", "CAPABILITY", "DESERVED", "GUARANTEE", "ALLOCATED"),
)
POD_GROUPS: Final[Kind[PodGroup]] = Kind(
    plural="pod groups",
    resource="podgroup.scheduling.volcano.sh",
    header=("NAME", "QUEUE", "PHASE", "MIN", "RUNNING", "SUCCEEDED", "FAILED", "AGE"),
    wide=("OWNER", "PRIORITY", "RESOURCES", "MESSAGE"),
)
JOB_FLOWS: Final[Kind[JobFlow]] = Kind(
    plural="job flows",
    resource="jobflow.flow.volcano.sh",
    header=(
        "NAME",
        "PHASE",
        "STEPS",
        "PENDING",
        "RUNNING",
        "COMPLETED",
        "FAILED",
        "TERMINATED",
        "AGE",
    ),
    wide=("UNKNOWN", "RETAIN", "REASON", "MESSAGE"),
)
JOB_TEMPLATES: Final[Kind[JobTemplate]] = Kind(
    plural="job templates",
    resource="jobtemplate.flow.volcano.sh",
    header=("NAME", "QUEUE", "TASKS", "REPLICAS", "JOBS", "AGE"),
    wide=("MIN", "MADE"),
)
PODS: Final[Kind[PodView]] = Kind(
    plural="pods",
    resource="pod",
    header=("NAME", "JOB", "TASK", "INDEX", "RUN", "PHASE", "NODE", "AGE"),
    wide=("READY", "STARTED", "EXIT", "UID", "REASON"),
)
ATTEMPTS: Final[Kind[Attempt]] = Kind(
    plural="attempts",
    resource="attempt",
    header=(
        "TASK",
        "INDEX",
        "RUN",
        "POD",
        "PHASE",
        "OUTCOME",
        "EXIT",
        "NODE",
        "STARTED",
        "TOOK",
        "REASON",
    ),
    wide=("VERSION", "UID", "CREATED", "FINISHED"),
)
EVENTS: Final[Kind[JobEvent]] = Kind(
    plural="events",
    resource="event",
    header=("AGE", "TYPE", "REASON", "MESSAGE"),
    wide=("AT",),
)


def job(found: Job, now: datetime) -> Shown:
    """A job."""
    status = found.status
    row = (
        found.metadata.name,
        found.spec.queue,
        phase(found),
        _number(found.spec.min_available),
        str(status.pending),
        str(status.running),
        str(status.succeeded),
        str(status.failed),
        str(status.retry_count),
        _age(found.metadata.creation_timestamp, now),
    )
    more = (
        str(sum(task.replicas for task in found.spec.tasks or ())),
        str(status.terminating),
        str(status.unknown),
        found.spec.scheduler_name or "-",
        found.spec.priority_class_name or "-",
        status.running_duration or "-",
        status.state.message or "-",
    )
    metadata = found.metadata
    return Shown(metadata.name, metadata.namespace, row, encode(found), more)


def queue(found: Queue, now: datetime) -> Shown:
    """A queue."""
    spec, status = found.spec, found.status
    row = (
        found.metadata.name,
        spec.parent or ("" if found.metadata.name == names.ROOT_QUEUE else names.ROOT_QUEUE),
        _number(spec.weight),
        status.state or "",
        _number(status.pending),
        _number(status.inqueue),
        _number(status.running),
        _number(status.unknown),
        _number(status.completed),
        _age(found.metadata.creation_timestamp, now),
    )
    guaranteed = spec.guarantee.resource if spec.guarantee else None
    more = (
        "-" if spec.reclaimable is None else "yes" if spec.reclaimable else "no",
        _number(spec.priority),
        _resources(spec.capability),
        _resources(spec.deserved),
        _resources(guaranteed),
        _resources(status.allocated),
    )
    return Shown(found.metadata.name, "", row, encode(found), more)


def pod_group(found: PodGroup, now: datetime) -> Shown:
    """A pod group."""
    spec, status = found.spec, found.status
    row = (
        found.metadata.name,
        spec.queue or "",
        status.phase or "",
        _number(spec.min_member),
        _number(status.running),
        _number(status.succeeded),
        _number(status.failed),
        _age(found.metadata.creation_timestamp, now),
    )
    metadata = found.metadata
    owner = next((f"{it.kind}/{it.name}" for it in metadata.owner_references or ()), "-")
    said = [one.message for one in status.conditions or () if one.message]
    more = (
        owner,
        spec.priority_class_name or "-",
        _resources({k: v for k, v in (spec.min_resources or {}).items() if not _is_counted(k)}),
        said[-1] if said else "-",
    )
    return Shown(metadata.name, metadata.namespace, row, encode(found), more)


def job_flow(found: JobFlow, now: datetime) -> Shown:
    """A flow."""
    status = found.status
    row = (
        found.metadata.name,
        flow_phase(found),
        str(len(found.spec.flows or ())),
        str(len(status.pending_jobs or ())),
        str(len(status.running_jobs or ())),
        str(len(status.completed_jobs or ())),
        str(len(status.failed_jobs or ())),
        str(len(status.terminated_jobs or ())),
        _age(found.metadata.creation_timestamp, now),
    )
    more = (
        str(len(status.un_know_jobs or ())),
        found.spec.job_retain_policy or "-",
        status.state.reason or "-",
        status.state.message or "-",
    )
    metadata = found.metadata
    return Shown(metadata.name, metadata.namespace, row, encode(found), more)


def job_template(found: JobTemplate, now: datetime) -> Shown:
    """A template."""
    tasks = found.spec.tasks or ()
    made = found.status.job_depends_on_list or ()
    row = (
        found.metadata.name,
        found.spec.queue,
        str(len(tasks)),
        str(sum(task.replicas for task in tasks)),
        str(len(made)),
        _age(found.metadata.creation_timestamp, now),
    )
    more = (_number(found.spec.min_available), ",".join(made) or "-")
    metadata = found.metadata
    return Shown(metadata.name, metadata.namespace, row, encode(found), more)


def pod(found: PodView, now: datetime) -> Shown:
    """A pod, in Kubernetes' shape as far as the controller knows it."""
    attempt = found.attempt
    row = (
        attempt.pod_name,
        found.job,
        attempt.task,
        str(attempt.index),
        str(attempt.run),
        attempt.phase,
        attempt.node or "-",
        age(attempt.created_at, now),
    )
    content = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": attempt.pod_name,
            "namespace": found.namespace,
            "uid": attempt.pod_uid,
            "creationTimestamp": _text(attempt.created_at),
            "labels": {
                names.JOB_NAME: found.job,
                names.JOB_NAMESPACE: found.namespace,
                names.TASK_SPEC: attempt.task,
                names.TASK_INDEX: str(attempt.index),
            },
            "annotations": {names.ATTEMPT_UID: attempt.uid, names.RUN: str(attempt.run)},
        },
        "spec": {"nodeName": attempt.node or None},
        "status": {
            "phase": attempt.phase,
            "reason": attempt.reason or None,
            "startTime": _text(attempt.started_at),
        },
    }
    more = (
        "yes" if attempt.ready else "no",
        age(attempt.started_at, now),
        _exit_codes(attempt.exit_codes),
        attempt.pod_uid or "-",
        attempt.reason or "-",
    )
    return Shown(attempt.pod_name, found.namespace, row, _without_none(content), more)


def attempt(found: Attempt, now: datetime) -> Shown:
    """One life of a pod."""
    row = (
        found.task,
        str(found.index),
        str(found.run),
        found.pod_name,
        found.phase,
        found.outcome or "-",
        _exit_codes(found.exit_codes),
        found.node or "-",
        age(found.started_at, now) + (" ago" if found.started_at else ""),
        _took(found, now),
        found.reason or "-",
    )
    content = {
        "uid": found.uid,
        "task": found.task,
        "index": found.index,
        "run": found.run,
        "jobVersion": found.job_version,
        "podName": found.pod_name,
        "podUid": found.pod_uid,
        "phase": found.phase,
        "ready": found.ready,
        "node": found.node or None,
        "reason": found.reason or None,
        "outcome": found.outcome or None,
        "exitCodes": dict(found.exit_codes),
        "createdAt": _micros(found.created_at),
        "startedAt": _micros(found.started_at),
        "finishedAt": _micros(found.finished_at),
    }
    more = (
        str(found.job_version),
        found.uid,
        _micros(found.created_at) or "-",
        _micros(found.finished_at) or "-",
    )
    return Shown(found.uid, "", row, _without_none(content), more)


def event(found: JobEvent, now: datetime) -> Shown:
    """Something that happened to a job."""
    row = (age(found.at, now), found.type, found.reason, found.message)
    content = {
        "type": found.type,
        "reason": found.reason,
        "message": found.message,
        "at": _micros(found.at),
    }
    more = (_micros(found.at) or "-",)
    return Shown(found.reason, "", row, _without_none(content), more)


def _exit_codes(codes: Mapping[str, int]) -> str:
    if len(codes) == 1:
        return str(next(iter(codes.values())))
    return ",".join(f"{name}={code}" for name, code in sorted(codes.items())) or "-"


def _took(found: Attempt, now: datetime) -> str:
    if found.started_at is None:
        return "-"
    return span((found.finished_at or now) - found.started_at)


def _resources(amounts: Mapping[str, Any] | None) -> str:
    return ",".join(f"{name}={amount}" for name, amount in (amounts or {}).items()) or "-"


def _is_counted(name: str) -> bool:
    """Whether a resource is one that quotas count, beside what pods ask for."""
    return name == "pods" or name.startswith(("count/", "limits.", "requests."))


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _age(text: str | None, now: datetime) -> str:
    return age(timestamps.from_text(text), now) if text else "-"


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else timestamps.to_text(instant)


def _micros(instant: datetime | None) -> str | None:
    return None if instant is None else timestamps.to_micro_text(instant)


def _without_none(content: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _without_none(value) if isinstance(value, Mapping) else value
        for key, value in content.items()
        if value is not None
    }
