"""Lets groups in, so that their pods are made: as many as their queues can ever serve."""

from __future__ import annotations

from functools import partial

from hekla.domain.phases import PodGroupPhase
from services.scheduler.core.groups import GroupState, Refusal
from services.scheduler.core.queues import QueueState
from services.scheduler.core.session import Session, queue_refusal, quota_refusal


class Enqueue:
    """Pending groups become Inqueue, in order, unless something speaks against it."""

    name = "enqueue"

    def run(self, session: Session) -> None:
        """Let in whom nothing holds back; who is refused does not hold back the next."""
        cluster = session.cluster
        pending = [group for group in cluster.waiting.values() if group.waits_in_line]
        if not pending:
            return
        if any(queue.limits for queue in cluster.queues):
            for group in cluster.groups.values():
                if group.phase is PodGroupPhase.INQUEUE:
                    _promise(session, group)
        line = session.line(pending)
        while (turn := line.next()) is not None:
            queue, group = turn
            session.guarded(group, partial(_let_in, session, queue, group))
            line.leave()


def _let_in(session: Session, queue: QueueState, group: GroupState) -> None:
    refusal = _refusal(session, queue, group)
    if refusal is not None:
        session.refuse(group, refusal)
        return
    group.phase = PodGroupPhase.INQUEUE
    group.refusal = None
    session.cluster.revise(group)
    _promise(session, group)
    session.framework.job_enqueued(group)


def _refusal(session: Session, queue: QueueState, group: GroupState) -> Refusal | None:
    refusal = queue_refusal(queue, started=group.started)
    if refusal is not None:
        return refusal
    names = list(session.cluster.nodes.columns)
    wanted = still_wanted(group)
    for above in session.cluster.queues.line(queue):
        short = [
            names[column]
            for column, limit in above.limits
            if (more := wanted.get(names[column], 0))
            and above.allocated[column] + above.inqueue[column] + more > limit
        ]
        if short:
            return quota_refusal(short)
    if not session.framework.job_enqueueable(group):
        return Refusal("NotEnqueueable", "the cluster takes no more work for now")
    return None


def still_wanted(group: GroupState) -> dict[str, int]:
    """What a group's minimum needs beyond what its members use already."""
    wanted = dict(group.group.min_resources or ())
    for klass, pods in group.allocated.items():
        for name, amount in klass.spec.request:
            if name in wanted:
                wanted[name] -= pods * amount
    return {name: amount for name, amount in wanted.items() if amount > 0}


def _promise(session: Session, group: GroupState) -> None:
    """Count what a group that was let in will need as promised.

    One that nodes have no room for, or whose pods have all gone again, keeps nobody out.
    """
    if group.refusal is not None or (group.had_members and not group.members):
        return
    columns = session.cluster.nodes.columns
    queue = session.cluster.queues.get(group.group.queue)
    for above in session.cluster.queues.line(queue):
        for name, amount in still_wanted(group).items():
            if name in columns:
                above.inqueue[columns[name]] += amount
