"""What the core is told and what it answers, as plain frozen values.

Amounts are integers as in ``hekla.domain.resources``: millicores, bytes, counts. The
resource ``pods`` is a node's; every pod takes one of it without asking.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from hekla.domain import names
from hekla.domain.phases import PodGroupPhase, PodPhase, QueueState
from hekla.domain.resources import PODS
from hekla.domain.selector import Requirement
from services.scheduler.core.crossing import crosses

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Amounts = tuple[tuple[str, int], ...]
"""Amounts by resource, sorted by name."""

Labels = tuple[tuple[str, str], ...]
"""Labels by key, sorted."""


def amounts(of: Mapping[str, int]) -> Amounts:
    """``of`` in the one form that compares and hashes; what is not above zero is dropped."""
    return tuple(sorted((name, amount) for name, amount in of.items() if amount > 0))


def limits(of: Mapping[str, int]) -> Amounts:
    """``of`` in the one form that compares and hashes; a limit of zero is a limit."""
    return tuple(sorted(of.items()))


def labels(of: Mapping[str, str]) -> Labels:
    """``of`` in the one form that compares and hashes."""
    return tuple(sorted(of.items()))


@crosses
@dataclass(frozen=True, slots=True)
class Taint:
    """A node's mark that keeps pods away which do not tolerate it."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@crosses
@dataclass(frozen=True, slots=True)
class Toleration:
    """What a pod puts up with."""

    key: str = ""
    """Empty with ``Exists``: whatever key a taint has."""
    operator: str = "Equal"
    """``Equal``, ``Exists``, or, of whole numbers, ``Lt`` or ``Gt``: the taint's is such."""
    value: str = ""
    effect: str = ""
    """Empty: whatever effect a taint has."""


@crosses
@dataclass(frozen=True, slots=True)
class Node:
    """A node as its object says it is."""

    name: str
    allocatable: Mapping[str, int]
    """What pods may use together, ``pods`` (their number) included."""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    """Cordoned: ``spec.unschedulable``."""
    ready: bool = True


NODE_NAME: Final = "metadata.name"
"""The one field of nodes that a ``NodeTerm`` may ask for."""


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One term of a node affinity: conditions, all of which must hold."""

    expressions: tuple[Requirement, ...] = ()
    """Conditions on labels."""
    fields: tuple[Requirement, ...] = ()
    """Conditions on ``NODE_NAME``."""

    def matches(self, node: Node) -> bool:
        """Whether all hold; a term without conditions matches no node."""
        if not (self.expressions or self.fields):
            return False
        return all(it.matches(node.labels) for it in self.expressions) and all(
            it.matches({NODE_NAME: node.name}) for it in self.fields
        )


@crosses
@dataclass(frozen=True, slots=True)
class PodSpec:
    """What placement may read of a pod, in a form that compares and hashes.

    Replicas of a task have equal ones; sharing one object saves time, not sense.
    """

    request: Amounts = ()
    """The effective request, without ``pods``. Empty: a best-effort pod."""
    node_selector: Labels = ()
    node_terms: tuple[NodeTerm, ...] = ()
    """Its required node affinity: one of these must match; none: any node will do."""
    node_preferences: tuple[tuple[int, NodeTerm], ...] = ()
    """Its preferred node affinity: what a node that matches is worth."""
    tolerations: tuple[Toleration, ...] = ()
    priority: int | None = None
    """``spec.priority``, or the task's priority annotation; None where neither is set."""
    priority_class: str = ""
    """Asked for a value where ``priority`` is None."""
    features: tuple[str, ...] = ()
    """What the pod asks of its node beyond that (``hostPorts``, …), sorted. A
    pod that asks for what no enabled plugin provides is not placed, and told so."""

    @classmethod
    def of(
        cls,
        request: Mapping[str, int] | None = None,
        *,
        node_selector: Mapping[str, str] | None = None,
        node_terms: tuple[NodeTerm, ...] = (),
        node_preferences: tuple[tuple[int, NodeTerm], ...] = (),
        tolerations: tuple[Toleration, ...] = (),
        priority: int | None = None,
        priority_class: str = "",
        features: tuple[str, ...] = (),
    ) -> PodSpec:
        """The spec with mappings brought into their one form."""
        wanted = {name: amount for name, amount in (request or {}).items() if name != PODS}
        return cls(
            request=amounts(wanted),
            node_selector=labels(node_selector or {}),
            node_terms=node_terms,
            node_preferences=node_preferences,
            tolerations=tolerations,
            priority=priority,
            priority_class=priority_class,
            features=tuple(sorted(features)),
        )


NO_SPEC: Final = PodSpec()


@crosses
@dataclass(frozen=True, slots=True)
class Pod:
    """A pod as its object says it is."""

    uid: str
    namespace: str
    name: str
    spec: PodSpec = NO_SPEC
    group: str = ""
    """Name of its pod group, in its namespace; empty: not ours to place."""
    group_uid: str = ""
    """The group's uid, where the pod carries it; else the name alone decides."""
    group_generation: int = 0
    """The pod is held until the group is known with at least this generation."""
    task: str = ""
    index: int | None = None
    """Its place within its task, where it has one."""
    created: datetime = EPOCH
    labels: Mapping[str, str] = field(default_factory=dict)
    node: str = ""
    """``spec.nodeName``."""
    phase: PodPhase = PodPhase.PENDING
    terminating: bool = False
    """It has a deletionTimestamp."""
    gated: bool = False
    """It has scheduling gates."""
    ours: bool = True
    """Its schedulerName is ours. Others count as use of their node, no more."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a pod group's status."""

    type: str
    status: str
    reason: str
    message: str = ""
    transition_id: str = ""
    last_transition_time: datetime = EPOCH


@dataclass(frozen=True, slots=True)
class Group:
    """A pod group: spec as stored, and the status the scheduler last reported of it."""

    uid: str
    namespace: str
    name: str
    generation: int = 0
    queue: str = names.DEFAULT_QUEUE
    min_member: int = 0
    min_task_member: tuple[tuple[str, int], ...] = ()
    min_resources: Amounts | None = None
    priority_class: str = ""
    created: datetime = EPOCH
    phase: PodGroupPhase = PodGroupPhase.PENDING
    conditions: tuple[Condition, ...] = ()
    running: int = 0
    succeeded: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue."""

    name: str
    priority: int = 0
    weight: int = 1
    parent: str = ""
    """Empty: the root. The root itself has no parent."""
    state: QueueState = QueueState.OPEN
    capability: Amounts = ()
    """What its pods may use together, by ``limits()``; what is not named is not limited."""
    guarantee: Amounts = ()
    deserved: Amounts = ()
    reclaimable: bool = True
    created: datetime = EPOCH


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A named priority."""

    name: str
    value: int
    global_default: bool = False


class Bind(NamedTuple):
    """Decision: this pod goes onto this node."""

    pod_uid: str
    node: str


@dataclass(frozen=True, slots=True)
class GroupReport:
    """Decision: the whole new status of a pod group that changed."""

    uid: str
    phase: PodGroupPhase
    conditions: tuple[Condition, ...]
    running: int
    succeeded: int
    failed: int
    message: str
    """Why the group waits, empty when it does not."""
    may_rest: bool = False
    """Nobody acts on what is new: it may be told later, with what comes next."""


@dataclass(frozen=True, slots=True)
class PodReport:
    """Decision: a pod's new condition ``PodScheduled=False``."""

    pod_uid: str
    reason: str
    """``Unschedulable`` or ``Schedulable`` (its gang as a whole does not fit)."""
    message: str


class Failure(NamedTuple):
    """A group on which no decision could be made, for it made the code fail."""

    uid: str
    error: Exception


@dataclass(frozen=True, slots=True)
class Decisions:
    """What one session decided. Empty when nothing changed."""

    binds: list[Bind] = field(default_factory=list)
    """Grouped by pod group, a group's minimum always together."""
    reports: list[GroupReport] = field(default_factory=list)
    pod_reports: list[PodReport] = field(default_factory=list)
    waiting: dict[str, str] = field(default_factory=dict)
    """Why each group that was tried in vain waits, by group uid."""
    failures: list[Failure] = field(default_factory=list)
    """Groups that were left out for a fault of ours; the shell logs them."""
    again_in: timedelta | None = None
    """When another session may decide more, though nothing happens until then."""
