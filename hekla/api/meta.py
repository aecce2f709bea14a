"""What objects of several kinds share."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import BeforeValidator

from hekla.api.fields import Bound, Int32, Model, Name, Timestamp, default_for_null
from hekla.domain import syntax

TOPOLOGY_MODES: Final = ("hard", "soft")
CONDITION_STATUSES: Final = ("True", "False", "Unknown")


_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")


def reason_error(text: str) -> str | None:
    """What keeps ``text`` from being a condition's reason."""
    if _REASON.fullmatch(text) is None:
        return "must be one word of letters, digits, '_', ',' and ':' that begins with a letter"
    return None


def _without_creation(value: Any) -> Any:
    # Go writes it into every metadata, also where it means nothing.
    if isinstance(value, dict) and value.get("creationTimestamp", ...) is None:
        return {key: item for key, item in value.items() if key != "creationTimestamp"}
    return value


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


class EmbeddedMeta(Model):
    """Metadata of an object to be made, inside another. ``bounds`` checks it as a whole."""

    name: Name = ""
    namespace: Name = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None


MadeWithMeta = Annotated[EmbeddedMeta | None, BeforeValidator(_without_creation)]


class ObjectReference(Model):
    """Names an object of any kind."""

    api_version: str | None = None
    kind: str | None = None
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    field_path: str | None = None


class Condition(Model):
    """What was last found out about an object, and why."""

    type: Annotated[str | None, Bound(required=True, check=syntax.qualified_name_error)] = None
    status: Annotated[str | None, Bound(required=True, one_of=CONDITION_STATUSES)] = None
    observed_generation: Annotated[Int32 | None, Bound(minimum=0)] = None
    last_transition_time: Annotated[Timestamp | None, Bound(required=True)] = None
    reason: Annotated[
        str | None, Bound(required=True, min_length=1, max_length=1024, check=reason_error)
    ] = None
    message: Annotated[str | None, Bound(required=True, max_length=32768)] = None


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
