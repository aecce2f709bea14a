"""What a pod's object and our own decisions make of it: one status."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from hekla.domain.phases import PodPhase
from services.scheduler.core.objects import Pod


class Status(IntEnum):
    """Where a pod stands, in the scheduler's eyes."""

    PENDING = 0
    """Waits for a node."""
    GATED = 1
    """Waits, and must not be placed yet."""
    BINDING = 2
    """Assumed: given a node that no event has confirmed."""
    BOUND = 3
    RUNNING = 4
    RELEASING = 5
    """Ending; its room is not free yet."""
    SUCCEEDED = 6
    FAILED = 7
    LEAVING = 8
    """Succeeded and being deleted: it no longer counts for its gang."""
    DROPPED = 9
    """Being deleted without ever having had a node."""
    UNKNOWN = 10


ALLOCATED: Final = frozenset({Status.BINDING, Status.BOUND, Status.RUNNING})
"""Count as use of their queue."""

ON_NODE: Final = ALLOCATED | {Status.RELEASING, Status.UNKNOWN}
"""Take room on their node."""

READY: Final = (Status.BINDING, Status.BOUND, Status.RUNNING, Status.SUCCEEDED)
"""Count for their gang."""

VALID: Final = (*READY, Status.PENDING, Status.GATED)
"""Count for their gang, or may yet."""


_BY_PHASE: Final = {
    # (phase, terminating)
    (PodPhase.SUCCEEDED, False): Status.SUCCEEDED,
    (PodPhase.SUCCEEDED, True): Status.LEAVING,
    (PodPhase.FAILED, False): Status.FAILED,
    (PodPhase.FAILED, True): Status.FAILED,
    (PodPhase.RUNNING, False): Status.RUNNING,
    (PodPhase.RUNNING, True): Status.RELEASING,
    (PodPhase.PENDING, False): Status.BOUND,
    (PodPhase.PENDING, True): Status.RELEASING,
}


def status_of(pod: Pod) -> Status:
    """The status that ``pod`` has by its object alone."""
    if pod.phase is PodPhase.PENDING and not pod.node:
        if pod.terminating:
            return Status.DROPPED
        return Status.GATED if pod.gated else Status.PENDING
    return _BY_PHASE.get((pod.phase, pod.terminating), Status.UNKNOWN)
