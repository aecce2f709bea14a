"""Queue: jobs wait in it, and it has a share of the cluster. Belongs to no namespace."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from hekla.api.fields import (
    Bound,
    Count,
    Int32,
    Model,
    ResourceList,
    default_for_null,
    empty_for_null,
    unless_empty,
)
from hekla.api.meta import ObjectMeta
from hekla.domain import syntax
from hekla.domain.names import SCHEDULING_API_VERSION
from hekla.domain.phases import QueueState

DEQUEUE_STRATEGIES: Final = ("fifo", "traverse")


class ExtendCluster(Model):
    """A cluster that jobs of the queue are forwarded to."""

    name: str | None = None
    weight: Int32 | None = None
    capacity: ResourceList | None = None


class Guarantee(Model):
    """What is kept for the queue."""

    resource: ResourceList | None = None


class NodeGroupAffinity(Model):
    """Node groups by name."""

    required_during_scheduling_ignored_during_execution: list[str] | None = None
    preferred_during_scheduling_ignored_during_execution: list[str] | None = None


class QueueAffinity(Model):
    """Which groups of nodes the queue's pods go to, or stay away from."""

    node_group_affinity: NodeGroupAffinity | None = None
    node_group_anti_affinity: NodeGroupAffinity | None = None


class QueueSpec(Model):
    """The queue's share and place."""

    weight: Annotated[Int32, default_for_null(1), Bound(minimum=1, maximum=65535)] = 1
    capability: ResourceList | None = None
    reclaimable: bool | None = None
    extend_clusters: list[ExtendCluster] | None = None
    guarantee: Guarantee | None = None
    affinity: QueueAffinity | None = None
    type: Annotated[str | None, Bound(max_length=253)] = None
    parent: Annotated[str | None, Bound(check=syntax.subdomain_error)] = None
    deserved: ResourceList | None = None
    priority: Annotated[Int32 | None, Bound(minimum=0)] = None
    dequeue_strategy: Annotated[
        str, default_for_null("traverse"), Bound(one_of=DEQUEUE_STRATEGIES)
    ] = "traverse"


class Reservation(Model):
    """Nodes locked for the queue, and what is idle on them."""

    nodes: list[str] | None = None
    resource: ResourceList | None = None


class QueueStatus(Model):
    """What is in the queue, and whether it takes more."""

    state: Annotated[str | None, Bound(one_of=tuple(QueueState))] = None
    unknown: Count = 0
    pending: Count = 0
    running: Count = 0
    inqueue: Count = 0
    completed: Count = 0
    reservation: Reservation | None = None
    allocated: ResourceList | None = None


class Queue(Model):
    """A queue of jobs."""

    api_version: Annotated[str, Bound(one_of=(SCHEDULING_API_VERSION,))] = (
        SCHEDULING_API_VERSION
    )
    kind: Annotated[str, Bound(one_of=("Queue",))] = "Queue"
    metadata: Annotated[ObjectMeta, empty_for_null] = Field(default_factory=ObjectMeta)
    spec: Annotated[QueueSpec, empty_for_null] = Field(default_factory=QueueSpec)
    status: Annotated[QueueStatus, empty_for_null] = unless_empty(QueueStatus)
