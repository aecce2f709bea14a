"""JobFlow: a graph of jobs, each made from the template that a step names.

A patch names only what it changes, so its models have no defaults: what they leave open is
what the template says.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from hekla.api.fields import (
    Bound,
    Count,
    Duration,
    Int32,
    Model,
    Name,
    Timestamp,
    empty_for_null,
    unless_empty,
)
from hekla.api.job import JobSpec, TaskSpec, TaskState
from hekla.api.meta import ObjectMeta
from hekla.domain import syntax
from hekla.domain.names import FLOW_API_VERSION
from hekla.domain.phases import FlowPhase

RETAIN: Final = "retain"
DELETE: Final = "delete"
RETAIN_POLICIES: Final = (RETAIN, DELETE)

_PORT: Final = Bound(minimum=0, maximum=65535)


class HttpHeader(Model):
    """A header of a probe's request."""

    name: Annotated[str | None, Bound(required=True)] = None
    value: Annotated[str | None, Bound(required=True)] = None


class HttpGet(Model):
    """Asks a task's pods for a page."""

    task_name: Annotated[str | None, Bound(max_length=253)] = None
    path: str | None = None
    port: Annotated[Int32 | None, _PORT] = None
    http_header: HttpHeader | None = None


class TcpSocket(Model):
    """Asks whether a task's pods take connections."""

    task_name: Annotated[str | None, Bound(max_length=253)] = None
    port: Annotated[Int32 | None, _PORT, Bound(required=True)] = None


class TaskStatus(Model):
    """Asks whether a task's pods are in a phase."""

    task_name: Annotated[str | None, Bound(max_length=253)] = None
    phase: Annotated[str | None, Bound(max_length=63)] = None


class Probe(Model):
    """What must hold of the targets, instead of their end."""

    http_get_list: list[HttpGet] | None = None
    tcp_socket_list: list[TcpSocket] | None = None
    task_status_list: list[TaskStatus] | None = None


class FlowDependsOn(Model):
    """Which steps must come first."""

    targets: list[str] | None = None
    probe: Probe | None = None


class TaskSpecPatch(TaskSpec):
    """What a patch changes in the task of that name."""

    replicas: Annotated[Int32 | None, Bound(minimum=0)] = None  # type: ignore[assignment] # none given is none changed


class JobSpecPatch(JobSpec):
    """What a patch changes in a job's spec."""

    tasks: list[TaskSpecPatch] | None = None  # type: ignore[assignment] # of patches, not of whole tasks
    queue: Annotated[str | None, Bound(check=syntax.subdomain_error)] = None  # type: ignore[assignment] # none given is none changed
    max_retry: Annotated[Int32 | None, Bound(minimum=0)] = None  # type: ignore[assignment] # as queue


class Patch(Model):
    """What is different from the template in this flow."""

    job_spec: JobSpecPatch | None = None


class Flow(Model):
    """A step: the job of one template."""

    name: Annotated[Name, Bound(min_length=1)] = ""
    """The template's name; the job is named ``<flow>-<name>``."""
    depends_on: FlowDependsOn | None = None
    patch: Patch | None = None


class JobFlowSpec(Model):
    """The graph."""

    flows: list[Flow] | None = None
    job_retain_policy: Annotated[str | None, Bound(one_of=RETAIN_POLICIES)] = None


class JobRunningHistory(Model):
    """A phase that a step's job was in, and when it was seen in it."""

    start_timestamp: Timestamp | None = None
    end_timestamp: Timestamp | None = None
    state: str | None = None


class FlowJobStatus(Model):
    """What became of a step's job; kept when the job is gone."""

    name: str | None = None
    state: str | None = None
    start_timestamp: Timestamp | None = None
    end_timestamp: Timestamp | None = None
    restart_count: Count = 0
    running_histories: list[JobRunningHistory] | None = None


class FlowCondition(Model):
    """Where a step's job stands."""

    phase: str | None = None
    create_time: Timestamp | None = None
    running_duration: Duration | None = None
    task_status_count: dict[str, TaskState] | None = None


class FlowState(Model):
    """Where the flow stands, what it waits for, and since when."""

    phase: Annotated[str | None, Bound(one_of=tuple(FlowPhase))] = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: Timestamp | None = None


class JobFlowStatus(Model):
    """The flow's jobs by where they stand."""

    pending_jobs: list[str] | None = None
    running_jobs: list[str] | None = None
    failed_jobs: list[str] | None = None
    completed_jobs: list[str] | None = None
    terminated_jobs: list[str] | None = None
    un_know_jobs: list[str] | None = None
    job_status_list: list[FlowJobStatus] | None = None
    conditions: dict[str, FlowCondition] | None = None
    state: Annotated[FlowState, empty_for_null] = unless_empty(FlowState)


class JobFlow(Model):
    """A graph of jobs."""

    api_version: Annotated[str, Bound(one_of=(FLOW_API_VERSION,))] = FLOW_API_VERSION
    kind: Annotated[str, Bound(one_of=("JobFlow",))] = "JobFlow"
    metadata: Annotated[ObjectMeta, empty_for_null] = Field(default_factory=ObjectMeta)
    spec: Annotated[JobFlowSpec, empty_for_null] = Field(default_factory=JobFlowSpec)
    status: Annotated[JobFlowStatus, empty_for_null] = unless_empty(JobFlowStatus)
