"""Places pods on nodes: gangs as a whole, what goes beyond them pod by pod.

Gangs that have started and lost a member come first: they hold room that is of no use
until they are complete. Then whoever is first in line is served: a job that is not ready
gets its minimum placed, all of it or nothing; a ready one gets its next pod. Queue order,
job order and limits are asked again after every pod, though not one by one where the
answer is known to stay the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from services.scheduler.core.classes import PodClass
from services.scheduler.core.gangs import place_minimum
from services.scheduler.core.groups import GroupState, PodState, Refusal
from services.scheduler.core.line import Line
from services.scheduler.core.queues import QueueState
from services.scheduler.core.session import Session, plus


class Allocate:
    """Gives pending pods nodes."""

    name = "allocate"

    def run(self, session: Session) -> None:
        """Place what finds room."""
        let_in = "enqueue" not in {action.name for action in session.framework.actions}
        groups = [
            group
            for group in session.cluster.waiting.values()
            if let_in or not group.waits_in_line
        ]
        cut = Server(session, only_minimum=True)
        cut.serve([it for it in groups if _is_cut(session, it) and session.may_be_placed(it)])
        # Asked only now: completing a gang may have set room free that was kept for it.
        Server(session).serve(
            [it for it in groups if it.uid not in cut.in_vain and session.may_be_placed(it)]
        )


def _is_cut(session: Session, group: GroupState) -> bool:
    return group.started and session.guarded(
        group, lambda: not session.framework.job_ready(group)
    )


class Beyond:
    """Pods of a ready job, in the order in which they are to be placed."""

    def __init__(self, session: Session, states: list[PodState]) -> None:
        self._runs: list[tuple[PodClass, list[PodState]]] = []
        """Pods of one class that follow each other; what is next stands last."""
        for state in reversed(session.framework.in_order(states)):
            if self._runs and self._runs[-1][0] is state.klass:
                self._runs[-1][1].append(state)
            else:
                self._runs.append((state.klass, [state]))
        self.refusal: Refusal | None = None
        """Why the first pod that was left out was."""

    def __bool__(self) -> bool:
        return bool(self._runs)

    def next(self) -> tuple[PodClass, int]:
        """The class of the next pod, and how many of it follow each other."""
        klass, states = self._runs[-1]
        return klass, len(states)

    def take(self, pods: int) -> list[PodState]:
        """The next pods, all of one class, which are placed now."""
        _, states = self._runs[-1]
        taken = states[-pods:][::-1]
        del states[-pods:]
        if not states:
            self._runs.pop()
        return taken

    def leave_out(self, klass: PodClass, refusal: Refusal) -> None:
        """No pod of the class finds room any more."""
        self._runs = [run for run in self._runs if run[0] is not klass]
        self.refusal = self.refusal or refusal


class Server:
    """Serves jobs in line until nothing more can be placed."""

    def __init__(
        self,
        session: Session,
        *,
        only_minimum: bool = False,
        pending: Callable[[PodState], bool] = lambda _: True,
        heed_overuse: bool = True,
    ) -> None:
        self._session = session
        self._only_minimum = only_minimum
        """Serve each job only until it has its minimum."""
        self._pending = pending
        self._heed_overuse = heed_overuse
        self._beyond: dict[str, Beyond] = {}
        self.in_vain: set[str] = set()
        """Uids of the jobs for which nothing more could be done."""

    def serve(self, groups: list[GroupState]) -> None:
        """Serve ``groups``."""
        session = self._session
        line = session.line(groups)
        while (turn := line.next()) is not None:
            queue, group = turn
            if self._heed_overuse and session.framework.overused(queue, queue.allocated):
                for left in line.close():
                    text = f"queue {queue.name} has got all it may have"
                    session.refuse(left, Refusal("QueueOverused", text))
                    self.in_vain.add(left.uid)
            elif not session.guarded(group, partial(self._serve_one, line, queue, group)):
                line.leave()
                self.in_vain.add(group.uid)
            elif self._only_minimum:
                line.leave()
            else:
                line.stay()

    def _serve_one(self, line: Line, queue: QueueState, group: GroupState) -> bool:
        """Place the job's minimum, or its next pods.

        Returns:
            Whether there may be more to place.
        """
        if self._session.framework.job_ready(group):
            return self._place_next(line, queue, group)
        return place_minimum(self._session, queue, group)

    def _place_next(self, line: Line, queue: QueueState, group: GroupState) -> bool:
        """Place the job's next pods, as many as may follow each other.

        Returns:
            Whether there may be more to place.
        """
        session = self._session
        beyond = self._beyond.get(group.uid)
        if beyond is None:
            states = [it for bucket in group.pending.values() for it in bucket.values()]
            beyond = Beyond(session, [state for state in states if self._pending(state)])
            self._beyond[group.uid] = beyond
        if beyond:
            self._place_run(line, queue, group, beyond)
        if not beyond and beyond.refusal is not None and self._heed_overuse:
            session.refuse(group, beyond.refusal)
        return bool(beyond)

    def _place_run(
        self, line: Line, queue: QueueState, group: GroupState, beyond: Beyond
    ) -> None:
        session = self._session
        klass, follow = beyond.next()
        turn = line.turn(lambda pods: plus(queue.allocated, klass, pods), follow)
        takes = session.queue_takes(queue, klass, turn, queue.allocated)
        rows = session.placer.place(klass, takes) if takes else []
        if rows:
            session.transaction.keep()
            session.commit(group, beyond.take(len(rows)), rows)
        if len(rows) < turn:
            refusal = (
                session.no_room(group, klass)
                if len(rows) < takes
                else session.no_quota(queue, [(klass, 1)])
            )
            beyond.leave_out(klass, refusal)
