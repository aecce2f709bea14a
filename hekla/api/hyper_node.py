"""HyperNode: nodes that are near each other in the network. Cluster-scoped."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from hekla.api.fields import Bound, Count, Int32, Model, empty_for_null, unless_empty
from hekla.api.meta import Condition, LabelSelector, ObjectMeta
from hekla.domain import syntax
from hekla.domain.names import TOPOLOGY_API_VERSION

MEMBER_TYPES: Final = ("Node", "HyperNode")


class ExactMatch(Model):
    """One by name."""

    name: Annotated[
        str | None, Bound(required=True, min_length=1, check=syntax.subdomain_error)
    ] = None


class RegexMatch(Model):
    """Those whose names match."""

    pattern: Annotated[str | None, Bound(required=True, min_length=1)] = None


class MemberSelector(Model):
    """Which nodes or hypernodes are meant: in one way. ``bounds`` checks that."""

    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None


class MemberSpec(Model):
    """Some of the members."""

    type: Annotated[str | None, Bound(required=True, one_of=MEMBER_TYPES)] = None
    selector: MemberSelector | None = None


class HyperNodeSpec(Model):
    """Where it stands in the tree, and what is in it."""

    tier: Annotated[Int32 | None, Bound(required=True, minimum=0)] = None
    tier_name: Annotated[str | None, Bound(max_length=253)] = None
    members: Annotated[list[MemberSpec] | None, Bound(min_items=1)] = None


class HyperNodeStatus(Model):
    """What was found in it."""

    conditions: list[Condition] | None = None
    node_count: Count = 0


class HyperNode(Model):
    """A part of the network."""

    api_version: Annotated[str, Bound(one_of=(TOPOLOGY_API_VERSION,))] = TOPOLOGY_API_VERSION
    kind: Annotated[str, Bound(one_of=("HyperNode",))] = "HyperNode"
    metadata: Annotated[ObjectMeta, empty_for_null] = Field(default_factory=ObjectMeta)
    spec: Annotated[HyperNodeSpec, empty_for_null] = Field(default_factory=HyperNodeSpec)
    status: Annotated[HyperNodeStatus, empty_for_null] = unless_empty(HyperNodeStatus)
