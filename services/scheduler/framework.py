"""Extension points of the scheduler, and the rule by which plugins' answers combine.

A plugin takes part in each extension point whose method it has, unless the configuration
switches that point off for it. Tiers are asked in order, plugins of a tier in order:

=================  ==========================================================
``opened``         all are told
``job_valid``      the first refusal decides; silence permits
``job_ready``      all must agree; silence agrees
``job_minimum``    the first plugin that has it decides; none: no minimum
``job_order``      the first that tells two jobs apart, then age, then uid
``task_order``     the first that tells two pods apart, then index, age, name
``queue_order``    the first that tells two queues apart, then the priority,
                   the share of the cluster in use, the name
``overused``       any may say so
``allocatable``    all must agree
``job_enqueueable``  votes: a rejection decides; the first tier with a permit
                   ends the asking; silence permits
``job_enqueued``   all are told
``filters``        a node takes as many copies as the strictest filter allows
``scorers``        sums, each plugin weighing its own
``tracker``        all are told of every pod that comes to or leaves a node
=================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Protocol, runtime_checkable

from services.scheduler.core.classes import PodClass
from services.scheduler.core.cluster import Cluster
from services.scheduler.core.fit import ResourceFit
from services.scheduler.core.groups import GroupState, PodState, Refusal
from services.scheduler.core.load import Load
from services.scheduler.core.nodes import Ints, Mask
from services.scheduler.core.occupancy import Tracker
from services.scheduler.core.queues import QueueState
from services.scheduler.core.scopes import Scope


class Vote(IntEnum):
    """An answer that may be withheld."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class Plugin(Protocol):
    """Anything with a name. What it reads of pods it declares (``reads``, …)."""

    @property
    def name(self) -> str:
        """Its name in the configuration."""
        ...


class Filter(Protocol):
    """May a pod go there, and how many of its kind?"""

    @property
    def scope(self) -> Scope:
        """What the answer depends on."""
        ...

    def concerns(self, klass: PodClass) -> bool:
        """Whether it has anything to say about the class."""
        ...

    def copies(self, klass: PodClass, load: Load) -> Ints:
        """How many more pods of the class each node takes, one after the other.

        In scope ``static`` zero or ``UNLIMITED``. Where it weighs cases, each answer may
        also depend on what the case adds to the node.
        """
        ...

    def reasons(self, klass: PodClass, load: Load) -> Iterable[tuple[str, Mask]]:
        """In words, why nodes take none: each reason with the nodes it holds for."""
        ...


class Scorer(Protocol):
    """How well does a pod fit there? Higher is better, in fixed point of ``SCORE_UNIT``."""

    @property
    def scope(self) -> Scope:
        """What the answer depends on."""
        ...

    def concerns(self, klass: PodClass) -> bool:
        """Whether it has anything to say about the class."""
        ...

    def score(self, klass: PodClass, load: Load) -> Ints:
        """The score of one more pod of the class on each node, in each case."""
        ...


class RelativeScorer(Scorer, Protocol):
    """A scorer of scope ``relative``: ``score`` gives a raw value, zero or more."""

    def measured(self, raw: Ints, most: int) -> Ints:
        """The score, ``most`` being the largest raw value of nodes that take a pod now."""
        ...


@runtime_checkable
class JobValid(Protocol):
    """May the job be scheduled at all?"""

    def job_valid(self, group: GroupState) -> Refusal | None:
        """Why not; None where nothing speaks against it."""
        ...


@runtime_checkable
class JobReady(Protocol):
    """Is what the job needs to run in place?"""

    def job_ready(self, group: GroupState) -> bool:
        """Whether it is, counting what this session placed."""
        ...


@runtime_checkable
class JobMinimum(Protocol):
    """Which pods must be placed together before the job is ready?"""

    def job_minimum(
        self, group: GroupState, in_order: Callable[[Iterable[PodState]], list[PodState]]
    ) -> list[PodState]:
        """Those pods, all of them pending; too few where there are not enough.

        Args:
            group: a job that is not ready.
            in_order: sorts pods by task order.
        """
        ...


@runtime_checkable
class JobOrder(Protocol):
    """Which job goes first?"""

    def job_order(self, group: GroupState) -> int:
        """Lower is earlier. It may depend on the job alone, and on totals that stay."""
        ...


@runtime_checkable
class TaskOrder(Protocol):
    """Which pod of a job goes first?"""

    def task_order(self, klass: PodClass) -> int:
        """Lower is earlier."""
        ...


@runtime_checkable
class QueueOrder(Protocol):
    """Which queue is served first?"""

    def queue_order(self, queue: QueueState, allocated: Sequence[int]) -> int:
        """Lower is earlier, were ``allocated`` (by column) its use. Grows with use."""
        ...


@runtime_checkable
class Overused(Protocol):
    """Has the queue got all it may have?"""

    def overused(self, queue: QueueState, allocated: Sequence[int]) -> bool:
        """Whether it has, were ``allocated`` (by column) its use. Stays so as use grows."""
        ...


@runtime_checkable
class Allocatable(Protocol):
    """May the queue take another pod of this class?"""

    def allocatable(self, queue: QueueState, allocated: Sequence[int], klass: PodClass) -> bool:
        """Whether it may, were ``allocated`` its use. Once it may not, more use never helps."""
        ...


@runtime_checkable
class JobEnqueueable(Protocol):
    """May the job be let in, so that its pods are made?"""

    def job_enqueueable(self, group: GroupState) -> Vote:
        """A vote."""
        ...


@runtime_checkable
class JobEnqueued(Protocol):
    """Told that a job was let in."""

    def job_enqueued(self, group: GroupState) -> None:
        """Take note."""
        ...


@runtime_checkable
class Opened(Protocol):
    """Told that a session begins."""

    def opened(self, cluster: Cluster) -> None:
        """Take what the plugin needs to know of the whole cluster."""
        ...


@dataclass(frozen=True, slots=True)
class Enabled:
    """A plugin in its tier, and the extension points that are switched off for it."""

    plugin: Plugin
    off: frozenset[str] = frozenset()


class Action(Protocol):
    """One step of a session (``core.session.Session``)."""

    @property
    def name(self) -> str:
        """Its name in the configuration."""
        ...

    def run(self, session: Any) -> None:
        """Take the step."""
        ...


class Framework:
    """The configured actions and plugins, the latter asked together."""

    def __init__(
        self, tiers: Sequence[Sequence[Enabled]], actions: Sequence[Action] = ()
    ) -> None:
        self.actions = tuple(actions)
        everyone = [enabled for tier in tiers for enabled in tier]
        plugins = {enabled.plugin.name: enabled.plugin for enabled in everyone}.values()
        self.plugins = tuple(plugins)
        self.reads = frozenset(f for p in plugins for f in getattr(p, "reads", ()))
        self.reads_labels = frozenset(
            k for p in plugins for k in getattr(p, "reads_labels", ())
        )
        self.provides = frozenset(f for p in plugins for f in getattr(p, "provides", ()))
        self.trackers: list[Tracker] = [p.tracker for p in plugins if hasattr(p, "tracker")]
        self.filters: list[Filter] = [ResourceFit(), *_parts(everyone, "filters")]
        self.scorers: list[Scorer] = _parts(everyone, "scorers")
        self._job_valid: list[JobValid] = _having(everyone, JobValid, "job_valid")
        self._job_ready: list[JobReady] = _having(everyone, JobReady, "job_ready")
        self._job_minimum: list[JobMinimum] = _having(everyone, JobMinimum, "job_ready")
        self._job_order: list[JobOrder] = _having(everyone, JobOrder, "job_order")
        self._task_order: list[TaskOrder] = _having(everyone, TaskOrder, "task_order")
        self._queue_order: list[QueueOrder] = _having(everyone, QueueOrder, "queue_order")
        self._overused: list[Overused] = _having(everyone, Overused, "overused")
        self._allocatable: list[Allocatable] = _having(everyone, Allocatable, "allocatable")
        self._enqueueable: list[list[JobEnqueueable]] = [
            _having(tier, JobEnqueueable, "job_enqueueable") for tier in tiers
        ]
        self._opened: list[Opened] = _having(everyone, Opened, "opened")
        self._enqueued: list[JobEnqueued] = _having(everyone, JobEnqueued, "job_enqueueable")
        self.order_moves = any(getattr(p, "order_moves", False) for p in self._job_order)
        """Whether a job's place in line may change with each of its pods that is placed."""

    def unmet(self, klass: PodClass) -> tuple[str, ...]:
        """What the pods ask of a node that no enabled plugin provides."""
        return tuple(name for name in klass.spec.features if name not in self.provides)

    def opened(self, cluster: Cluster) -> None:
        """Tell the plugins that a session begins."""
        for plugin in self._opened:
            plugin.opened(cluster)

    def job_valid(self, group: GroupState) -> Refusal | None:
        """Why the job cannot be scheduled at all; None where it can."""
        for plugin in self._job_valid:
            refusal = plugin.job_valid(group)
            if refusal is not None:
                return refusal
        return None

    def job_ready(self, group: GroupState) -> bool:
        """Whether what the job needs to run is in place."""
        return all(plugin.job_ready(group) for plugin in self._job_ready)

    def job_minimum(self, group: GroupState) -> list[PodState]:
        """The pods that must be placed together before the job is ready."""
        for plugin in self._job_minimum:
            return plugin.job_minimum(group, self.in_order)
        return []

    def job_order(self, group: GroupState) -> tuple[Any, ...]:
        """Sorts jobs of a queue."""
        asked = [plugin.job_order(group) for plugin in self._job_order]
        return (*asked, group.group.created, group.uid)

    def task_order(self, klass: PodClass) -> tuple[int, ...]:
        """Sorts classes of pods of a job."""
        return tuple(plugin.task_order(klass) for plugin in self._task_order)

    def in_order(self, states: Iterable[PodState]) -> list[PodState]:
        """Pods of a job, the first to place first."""
        first: dict[PodClass, tuple[int, ...]] = {}
        keyed = []
        for state in states:
            order = first.get(state.klass)
            if order is None:
                order = first[state.klass] = self.task_order(state.klass)
            keyed.append((order, state.key, state))
        keyed.sort()
        return [state for _, _, state in keyed]

    def queue_order(
        self, queue: QueueState, allocated: Sequence[int], total: Sequence[int]
    ) -> tuple[Any, ...]:
        """Sorts queues."""
        asked = [plugin.queue_order(queue, allocated) for plugin in self._queue_order]
        priority = queue.queue.priority if queue.queue is not None else 0
        return (*asked, -priority, share(allocated, total), queue.name)

    def overused(self, queue: QueueState, allocated: Sequence[int]) -> bool:
        """Whether the queue has got all it may have."""
        return any(plugin.overused(queue, allocated) for plugin in self._overused)

    def allocatable(self, queue: QueueState, allocated: Sequence[int], klass: PodClass) -> bool:
        """Whether plugins let the queue take another pod of the class."""
        return all(p.allocatable(queue, allocated, klass) for p in self._allocatable)

    @property
    def limits_queues(self) -> bool:
        """Whether ``allocatable`` can ever say no."""
        return bool(self._allocatable)

    def job_enqueueable(self, group: GroupState) -> bool:
        """Whether the job may be let in."""
        for tier in self._enqueueable:
            votes = []
            for plugin in tier:
                votes.append(plugin.job_enqueueable(group))
                if votes[-1] is Vote.REJECT:
                    return False
            if Vote.PERMIT in votes:
                return True
        return True

    def job_enqueued(self, group: GroupState) -> None:
        """Tell the plugins that a job was let in."""
        for plugin in self._enqueued:
            plugin.job_enqueued(group)


SHARE_UNIT: Final = 1 << 20


def share(allocated: Sequence[int], total: Sequence[int]) -> int:
    """The largest part of any resource that is in use, in ``SHARE_UNIT``; integers, exact."""
    parts = [
        used * SHARE_UNIT // have
        for used, have in zip(allocated, total, strict=True)
        if have > 0
    ]
    return max(parts, default=0)


def _parts(enabled: Iterable[Enabled], point: str) -> list[Any]:
    return [
        part
        for each in enabled
        if point not in each.off and hasattr(each.plugin, point)
        for part in getattr(each.plugin, point)()
    ]


def _having(enabled: Iterable[Enabled], kind: type[Any], point: str) -> list[Any]:
    return [
        each.plugin
        for each in enabled
        if isinstance(each.plugin, kind) and point not in each.off
    ]
