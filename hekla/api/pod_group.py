"""PodGroup: pods that are scheduled together or not at all."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hekla.api.fields import (
    Bound,
    Count,
    Int32,
    Model,
    ResourceList,
    Timestamp,
    default_for_null,
    empty_for_null,
    unless_empty,
)
from hekla.api.meta import LabelSelector, NetworkTopologySpec, ObjectMeta
from hekla.domain import syntax
from hekla.domain.names import DEFAULT_QUEUE, SCHEDULING_API_VERSION
from hekla.domain.phases import PodGroupPhase


class SubGroupPolicySpec(Model):
    """Smaller gangs inside a pod group."""

    name: Annotated[str | None, Bound(max_length=253)] = None
    network_topology: NetworkTopologySpec | None = None
    sub_group_size: Annotated[Int32, default_for_null(1), Bound(minimum=1)] = 1
    min_sub_groups: Count = 0
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None


class PodGroupSpec(Model):
    """What must be there together."""

    min_member: Count = 0
    min_task_member: dict[str, Int32] | None = None
    queue: Annotated[
        str, default_for_null(DEFAULT_QUEUE), Bound(check=syntax.subdomain_error)
    ] = DEFAULT_QUEUE
    priority_class_name: Annotated[str | None, Bound(max_length=253)] = None
    min_resources: ResourceList | None = None
    network_topology: NetworkTopologySpec | None = None
    sub_group_policy: list[SubGroupPolicySpec] | None = None


class PodGroupCondition(Model):
    """What the scheduler last said of the group, and why."""

    type: str | None = None
    status: str | None = None
    transition_id: str | None = None
    last_transition_time: Timestamp | None = None
    reason: str | None = None
    message: str | None = None


class PodGroupStatus(Model):
    """Where the group stands."""

    phase: Annotated[str | None, Bound(one_of=tuple(PodGroupPhase))] = None
    conditions: list[PodGroupCondition] | None = None
    running: Count = 0
    succeeded: Count = 0
    failed: Count = 0


class PodGroup(Model):
    """A gang."""

    api_version: Annotated[str, Bound(one_of=(SCHEDULING_API_VERSION,))] = (
        SCHEDULING_API_VERSION
    )
    kind: Annotated[str, Bound(one_of=("PodGroup",))] = "PodGroup"
    metadata: Annotated[ObjectMeta, empty_for_null] = Field(default_factory=ObjectMeta)
    spec: Annotated[PodGroupSpec, empty_for_null] = Field(default_factory=PodGroupSpec)
    status: Annotated[PodGroupStatus, empty_for_null] = unless_empty(PodGroupStatus)
