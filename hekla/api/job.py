"""Job: tasks of pods that are admitted and scheduled together."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from hekla.api.fields import (
    Bound,
    Count,
    Duration,
    Int32,
    Json,
    Model,
    Name,
    Timestamp,
    default_for_null,
    empty_for_null,
    unless_empty,
)
from hekla.api.meta import NetworkTopologySpec, ObjectMeta
from hekla.domain import syntax
from hekla.domain.names import DEFAULT_QUEUE, JOB_API_VERSION
from hekla.domain.phases import JobEvent, JobPhase

DEFAULT_MAX_RETRY: Final = 3

KNOWN_EVENTS: Final = (*JobEvent, "PodRunning", "OutOfSync", "CommandIssued")
"""What the schema takes; the webhook refuses the last three, which are internal."""
TOPOLOGY_POLICIES: Final = ("none", "best-effort", "restricted", "single-numa-node")


def mount_path_error(text: str) -> str | None:
    """What keeps ``text`` from being a path that something is mounted at."""
    return "must not contain ':'" if ":" in text else None


def task_name_error(text: str) -> str | None:
    """What keeps ``text`` from being a task's name."""
    # An empty name is an absent one; admission gives the task another.
    return syntax.label_error(text) if text else None


class VolumeSpec(Model):
    """A volume mounted in every container of the job."""

    mount_path: Annotated[
        str | None, Bound(required=True, min_length=1, check=mount_path_error)
    ] = None
    volume_claim_name: Annotated[str | None, Bound(max_length=253)] = None
    volume_claim: Json | None = None


class LifecyclePolicy(Model):
    """What happens to the job after an event or an exit code."""

    action: str | None = None
    event: Annotated[str | None, Bound(one_of=KNOWN_EVENTS)] = None
    events: Annotated[list[str] | None, Bound(each=Bound(one_of=KNOWN_EVENTS))] = None
    exit_code: Int32 | None = None
    timeout: Duration | None = None


class DependsOn(Model):
    """Which tasks must come first."""

    name: list[str] | None = None
    iteration: str | None = None


class PartitionPolicySpec(Model):
    """How a task's pods are split into groups of one size."""

    total_partitions: Annotated[Int32 | None, Bound(required=True, minimum=1)] = None
    partition_size: Annotated[Int32 | None, Bound(required=True, minimum=1)] = None
    network_topology: NetworkTopologySpec | None = None
    min_partitions: Count = 0


class TaskSpec(Model):
    """One role of the job: so many pods of one template."""

    name: Annotated[Name, Bound(max_length=63, check=task_name_error)] = ""
    replicas: Count = 0
    min_available: Annotated[Int32 | None, Bound(minimum=0)] = None
    template: Json | None = None
    policies: list[LifecyclePolicy] | None = None
    topology_policy: Annotated[str | None, Bound(one_of=TOPOLOGY_POLICIES)] = None
    max_retry: Annotated[Int32 | None, Bound(minimum=0)] = None
    depends_on: DependsOn | None = None
    partition_policy: PartitionPolicySpec | None = None


class JobSpec(Model):
    """What the user wants."""

    scheduler_name: Annotated[str | None, Bound(max_length=63)] = None
    min_available: Annotated[Int32 | None, Bound(minimum=0)] = None
    volumes: list[VolumeSpec] | None = None
    tasks: Annotated[list[TaskSpec] | None, Bound(min_items=1)] = None
    policies: list[LifecyclePolicy] | None = None
    plugins: dict[str, list[str]] | None = None
    running_estimate: Duration | None = None
    queue: Annotated[
        str, default_for_null(DEFAULT_QUEUE), Bound(check=syntax.subdomain_error)
    ] = DEFAULT_QUEUE
    max_retry: Annotated[Int32, default_for_null(DEFAULT_MAX_RETRY), Bound(minimum=0)] = (
        DEFAULT_MAX_RETRY
    )
    ttl_seconds_after_finished: Annotated[Int32 | None, Bound(minimum=0)] = None
    priority_class_name: Annotated[str | None, Bound(check=syntax.subdomain_error)] = None
    min_success: Annotated[Int32 | None, Bound(minimum=1)] = None
    network_topology: NetworkTopologySpec | None = None


class JobState(Model):
    """Where the job stands, and since when."""

    phase: Annotated[str | None, Bound(one_of=tuple(JobPhase))] = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: Timestamp | None = None


class TaskState(Model):
    """How many pods of a task are in each phase."""

    phase: dict[str, Int32] | None = None


class JobCondition(Model):
    """A phase the job was in."""

    status: Annotated[str | None, Bound(required=True)] = None
    last_transition_time: Timestamp | None = None


class JobStatus(Model):
    """What the controller found and did."""

    state: Annotated[JobState, empty_for_null] = unless_empty(JobState)
    min_available: Count = 0
    task_status_count: dict[str, TaskState] | None = None
    pending: Count = 0
    running: Count = 0
    succeeded: Count = 0
    failed: Count = 0
    terminating: Count = 0
    unknown: Count = 0
    version: Count = 0
    retry_count: Count = 0
    running_duration: Duration | None = None
    controlled_resources: dict[str, str] | None = None
    conditions: list[JobCondition] | None = None


class Job(Model):
    """A unit of submission."""

    api_version: Annotated[str, Bound(one_of=(JOB_API_VERSION,))] = JOB_API_VERSION
    kind: Annotated[str, Bound(one_of=("Job",))] = "Job"
    metadata: Annotated[ObjectMeta, empty_for_null] = Field(default_factory=ObjectMeta)
    spec: Annotated[JobSpec, empty_for_null] = Field(default_factory=JobSpec)
    status: Annotated[JobStatus, empty_for_null] = unless_empty(JobStatus)
