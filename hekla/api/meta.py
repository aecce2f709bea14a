"""What objects of several kinds share."""

from __future__ import annotations

from typing import Annotated, Final

from hekla.api.fields import Bound, Int32, Model, Name, Timestamp, default_for_null

TOPOLOGY_MODES: Final = ("hard", "soft")


class OwnerReference(Model):
    """Whom an object belongs to."""

    api_version: Annotated[str | None, Bound(min_length=1, required=True)] = None
    kind: Annotated[str | None, Bound(min_length=1, required=True)] = None
    name: Annotated[str | None, Bound(min_length=1, required=True)] = None
    uid: Annotated[str | None, Bound(min_length=1, required=True)] = None
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Model):
    """Metadata of a Kubernetes object. ``bounds`` checks it as a whole."""

    name: Name = ""
    generate_name: str | None = None
    namespace: Name = ""
    uid: Name = ""
    resource_version: str | None = None
    generation: Int32 | None = None
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None
    deletion_grace_period_seconds: Int32 | None = None


class LabelSelectorRequirement(Model):
    """One condition of a label selector. ``hekla.domain.selector`` checks it."""

    key: Annotated[str | None, Bound(required=True)] = None
    operator: Annotated[str | None, Bound(required=True)] = None
    values: list[str] | None = None


class LabelSelector(Model):
    """Which labels are meant."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None


class NetworkTopologySpec(Model):
    """How far apart in the network pods may be."""

    mode: Annotated[str, default_for_null("hard"), Bound(one_of=TOPOLOGY_MODES)] = "hard"
    highest_tier_allowed: Annotated[Int32 | None, Bound(minimum=0)] = None
    highest_tier_name: Annotated[str | None, Bound(max_length=253)] = None
