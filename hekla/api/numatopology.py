"""Numatopology: how the processors of one node hang together. Cluster-scoped, no status."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hekla.api.fields import Bound, Count, Int32, Model, empty_for_null
from hekla.api.meta import ObjectMeta
from hekla.domain.names import NODE_INFO_API_VERSION


class ResourceInfo(Model):
    """What there is of one resource on the node."""

    allocatable: str | None = None
    """A set such as ``0,2-4``."""
    capacity: Int32 | None = None


class CpuInfo(Model):
    """Where one processor stands."""

    numa: Count = 0
    socket: Count = 0
    core: Count = 0


class ContainerAllocation(Model):
    """What a container has."""

    name: str | None = None
    allocations: dict[str, str] | None = None
    """By resource: a set such as ``0,2-4`` for cpu, a quantity otherwise."""


class PodAllocation(Model):
    """What a pod has."""

    uid: str | None = None
    name: str | None = None
    namespace: str | None = None
    container_allocations: list[ContainerAllocation] | None = None


class NumatopologySpec(Model):
    """The node's processors, what is kept back, and who has what."""

    policies: dict[str, str] | None = None
    """``CPUManagerPolicy`` and ``TopologyManagerPolicy`` of the kubelet."""
    res_reserved: dict[str, str] | None = None
    numares: dict[str, ResourceInfo] | None = None
    cpu_detail: dict[str, CpuInfo] | None = None
    pod_allocations: list[PodAllocation] | None = None


class Numatopology(Model):
    """One node's topology."""

    api_version: Annotated[str, Bound(one_of=(NODE_INFO_API_VERSION,))] = NODE_INFO_API_VERSION
    kind: Annotated[str, Bound(one_of=("Numatopology",))] = "Numatopology"
    metadata: Annotated[ObjectMeta, empty_for_null] = Field(default_factory=ObjectMeta)
    spec: Annotated[NumatopologySpec, empty_for_null] = Field(default_factory=NumatopologySpec)
