"""One look at the whole: actions take their steps on the world, decisions come out.

Whatever a session placed when it ends is assumed; nothing else of it stays behind, but
why each group that was tried in vain waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from services.scheduler.core.classes import PodClass
from services.scheduler.core.cluster import Cluster
from services.scheduler.core.explain import Explainer
from services.scheduler.core.groups import GroupState, PodState, Refusal
from services.scheduler.core.line import Line, last_true
from services.scheduler.core.objects import Bind, Decisions, Failure
from services.scheduler.core.placement import Placer
from services.scheduler.core.queues import QueueState
from services.scheduler.core.reports import NOT_ENOUGH_RESOURCES, Reporter
from services.scheduler.core.transaction import Transaction
from services.scheduler.framework import Framework

HOLD_FOR: Final = timedelta(seconds=60)
"""How long the room of a gang that a failed bind cut is kept for it."""


class Session:
    """One session over a cluster."""

    def __init__(
        self, cluster: Cluster, framework: Framework, now: datetime, *, uid: str = ""
    ) -> None:
        self.cluster = cluster
        self.framework = framework
        self.now = now
        self.uid = uid
        self.transaction = Transaction(cluster.occupancy)
        self.placer = Placer(cluster.nodes, cluster.classes, framework, self.transaction)
        self.explainer = Explainer(cluster.nodes, framework)
        self.decisions = Decisions()
        self._promises_broken = False

    def run(self) -> Decisions:
        """Take every action's step, and say what came of it.

        The binds it decides are assumed from now on (``Cluster.forget`` takes one back).
        """
        cluster = self.cluster
        cluster.adopt(self.framework)
        cluster.nodes.trim_journal()
        self._let_go_of_old_holds()
        if cluster.waiting and (cluster.changed or cluster.settled_at != cluster.room):
            cluster.queues.add_up(cluster.nodes.columns)
            self.framework.opened(cluster)
            for action in self.framework.actions:
                action.run(self)
        reporter = Reporter(cluster, self.framework, self.now, self.uid)
        reporter.report(self.decisions, self.guarded)
        again_in = self._again_in(reporter)
        cluster.settled_at = cluster.room if again_in != timedelta() else -1
        return replace(self.decisions, again_in=again_in)

    def line(self, groups: Sequence[GroupState]) -> Line:
        """``groups`` in line to be served."""
        line = Line(self.framework, self.cluster.nodes.total, self.cluster.queues.get)
        for group in groups:
            self.guarded(group, partial(line.add, group))
        line.open()
        return line

    def guarded(self, group: GroupState, what: Callable[[], bool | None]) -> bool:
        """Do something for one group; if that fails, leave the group out, not the others.

        Returns:
            Whether it succeeded and did not answer false.
        """
        try:
            return what() is not False
        except Exception as error:
            self.transaction.undo(0)
            if all(failure.uid != group.uid for failure in self.decisions.failures):
                self.decisions.failures.append(Failure(group.uid, error))
            text = f"{type(error).__name__}: {error}"
            self.refuse(group, Refusal("InternalError", text))
            return False

    def may_be_placed(self, group: GroupState) -> bool:
        """Whether a group has pods to place and nothing speaks against trying.

        What speaks against it is noted.
        """
        if not group.pending or group.refused_at == self.cluster.room:
            return False
        return self.guarded(group, partial(self._nothing_against, group))

    def _nothing_against(self, group: GroupState) -> bool:
        queue = self.cluster.queues.get(group.group.queue)
        refusal = queue_refusal(queue, started=group.started)
        if refusal is None:
            refusal = self.framework.job_valid(group)
        if refusal is not None:
            self.refuse(group, refusal)
        return refusal is None

    def queue_takes(
        self, queue: QueueState, klass: PodClass, pods: int, allocated: Sequence[int]
    ) -> int:
        """How many of ``pods`` pods of a class the queue may take beyond ``allocated``."""
        takes = pods
        extra = [now - before for now, before in zip(allocated, queue.allocated, strict=True)]
        amounts = dict(klass.columns)
        for above in self.cluster.queues.line(queue):
            for column, limit in above.limits:
                amount = amounts.get(column, 0)
                if amount:
                    left = limit - above.allocated[column] - extra[column]
                    takes = min(takes, max(0, left // amount))
        if takes and self.framework.limits_queues:

            def allowed(placed: int) -> bool:
                if placed == 0:
                    return True
                use = plus(allocated, klass, placed - 1)
                return self.framework.allocatable(queue, use, klass)

            takes = last_true(allowed, 0, takes)
        return takes

    def commit(
        self, group: GroupState, states: Sequence[PodState], rows: Sequence[int]
    ) -> None:
        """Pods are placed for good: those of one class, counted on their nodes already."""
        self.cluster.place(group, states, rows)
        for above in self.cluster.queues.line(self.cluster.queues.get(group.group.queue)):
            for column, amount in states[0].klass.columns:
                above.allocated[column] += len(states) * amount
        self.decisions.binds.extend([Bind(state.pod.uid, state.node) for state in states])

    def no_room(self, group: GroupState, klass: PodClass) -> Refusal:
        """No node takes another pod of the class."""
        unmet = self.framework.unmet(klass)
        text = f"needs {', '.join(unmet)}, not supported yet" if unmet else ""
        return Refusal(
            NOT_ENOUGH_RESOURCES,
            text or self.explainer.nodes_for(klass),
            pod=first_pod(group, klass),
            proven=True,
        )

    def no_quota(self, queue: QueueState, wanted: Sequence[tuple[PodClass, int]]) -> Refusal:
        """The queue, or one above it, does not take so many pods of these classes."""
        names = list(self.cluster.nodes.columns)
        more = [0] * len(names)
        for klass, pods in wanted:
            more = plus(more, klass, pods)
        short = [
            names[column]
            for above in self.cluster.queues.line(queue)
            for column, limit in above.limits
            if more[column] and above.allocated[column] + more[column] > limit
        ]
        return quota_refusal(short, proven=not self.framework.limits_queues)

    def refuse(self, group: GroupState, refusal: Refusal) -> None:
        """Note why a group was not placed, or let in."""
        if group.refusal is None and not group.waits_in_line:
            # What was promised to it is free for others to be let in.
            self._promises_broken = True
        group.refusal = refusal
        group.refused_at = self.cluster.room if refusal.proven else -1
        self.cluster.changed[group.uid] = group
        self.decisions.waiting[group.uid] = refusal.message

    def _again_in(self, reporter: Reporter) -> timedelta | None:
        # Who was let in, or lost a promise, in the end may change what was decided first.
        waiting = self.cluster.waiting.values()
        if reporter.moved and waiting:
            return timedelta()
        if self._promises_broken and any(group.waits_in_line for group in waiting):
            return timedelta()
        ends = [HOLD_FOR for _ in self.cluster.holding]
        if self.cluster.reword_at is not None:
            ends.append(self.cluster.reword_at - self.now)
        return min(ends, default=None)

    def _let_go_of_old_holds(self) -> None:
        for group in list(self.cluster.holding.values()):
            if group.held_since is None:
                group.held_since = self.now
            if self.now - group.held_since >= HOLD_FOR or self.framework.job_ready(group):
                self.cluster.release(group)


def queue_refusal(queue: QueueState, *, started: bool) -> Refusal | None:
    """Why nothing of a group in this queue is placed; a started one may be completed."""
    if queue.queue is None:
        return Refusal("QueueNotFound", f"queue {queue.name} does not exist")
    if not (queue.open or started):
        state = queue.queue.state.value.lower()
        return Refusal("QueueClosed", f"queue {queue.name} is {state}")
    return None


def quota_refusal(short: Iterable[str], *, proven: bool = False) -> Refusal:
    """A queue, or one above it, has too little left of these resources."""
    texts = ", ".join(f"insufficient {name}" for name in dict.fromkeys(short))
    text = f"queue resource quota insufficient: {texts}" if texts else "queue takes no more"
    return Refusal(NOT_ENOUGH_RESOURCES, text, proven=proven)


def first_pod(group: GroupState, klass: PodClass) -> str:
    """The name of the first pending pod of a class."""
    states = [
        state
        for (_, each), bucket in group.pending.items()
        if each is klass
        for state in bucket.values()
    ]
    return min((state.key, state.pod.name) for state in states)[1] if states else ""


def plus(allocated: Sequence[int], klass: PodClass, pods: int) -> list[int]:
    """``allocated`` with so many pods of a class more."""
    use = list(allocated)
    for column, amount in klass.columns:
        use[column] += pods * amount
    return use
