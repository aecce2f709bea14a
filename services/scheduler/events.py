"""What the scheduling thread is told by the others: plain values, applied in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, NamedTuple

from hekla.store.binds import BindRecord
from services.scheduler.core.crossing import crosses
from services.scheduler.core.objects import Pod


class Kind(StrEnum):
    """What the cache holds."""

    NODE = "nodes"
    POD = "pods"
    PRIORITY_CLASS = "priority classes"
    GROUP = "pod groups"
    QUEUE = "queues"


GONE: Final = "DELETED"
"""The type of a change that removes its object; any other brings or changes one."""


class Change(NamedTuple):
    """One object, and what happened to it."""

    type: str
    object: Any


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes of one kind, in order."""

    kind: Kind
    changes: Sequence[Change]


@dataclass(frozen=True, slots=True)
class Full:
    """All objects of a kind: what is not among them is gone."""

    kind: Kind
    objects: Iterable[Any]


@crosses
@dataclass(frozen=True, slots=True)
class SeenPod:
    """A pod, and what telling it why it waits needs to know."""

    pod: Pod
    scheduler: str
    """Its schedulerName."""
    version: str = ""
    """Its resourceVersion; empty once it has a node."""
    told: tuple[str, str] = ("", "")
    """Reason and message of its PodScheduled=False."""
    conditions: tuple[str, ...] = ()
    """Its other conditions, as JSON; empty once it has a node."""


@dataclass(frozen=True, slots=True)
class Elected:
    """This process leads."""

    epoch: int
    pause: timedelta
    """How long it must not decide anything yet."""
    unsettled: Sequence[BindRecord]
    """Placements of earlier leaders of which nobody knows what came."""
    recent: Sequence[BindRecord]
    """Those that were carried out, but that the cache may not have been told of yet."""


@dataclass(frozen=True, slots=True)
class Deposed:
    """Somebody who must know said that this epoch is over."""

    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class Bound:
    """A pod is bound where we wanted it."""

    epoch: int
    pod_uid: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A pod is not bound where we wanted it, and will not be."""

    epoch: int
    pod_uid: str
    gone: bool
    """Whether there is no such pod any more."""


@dataclass(frozen=True, slots=True)
class Outdated:
    """A pod changed before it could be told why it waits: to be told as it is now."""

    pod_uid: str
    reason: str
    message: str


Event = Batch | Full | Elected | Deposed | Bound | Refused | Outdated
