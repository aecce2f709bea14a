"""Places pods that ask for nothing, even where their queue has got all it may have."""

from __future__ import annotations

from functools import partial

from services.scheduler.actions.allocate import Server
from services.scheduler.core.groups import PodState
from services.scheduler.core.session import Session


class Backfill:
    """Gives best-effort pods of ready jobs a node."""

    name = "backfill"

    def run(self, session: Session) -> None:
        """Place what ``allocate`` left of them."""
        groups = [
            group
            for group in list(session.cluster.waiting.values())
            if any(klass.best_effort for _, klass in group.pending)
            and not group.waits_in_line
            and session.may_be_placed(group)
            and session.guarded(group, partial(session.framework.job_ready, group))
        ]
        Server(session, pending=_best_effort, heed_overuse=False).serve(groups)


def _best_effort(state: PodState) -> bool:
    return state.klass.best_effort
