"""What a reply to a bind means. Pure."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from hekla.kube.requests import FENCED, Reply

SERVER_ERRORS: Final = 5
"""After so many answers that blame the server, the last one is believed."""


class Verdict(Enum):
    """What to do about a pod."""

    BOUND = auto()
    REFUSED = auto()
    """It is not bound to our node and will not be."""
    AGAIN = auto()
    """Nobody knows, or nothing happened: the same bind is sent again."""
    FENCED = auto()
    """Not sent, since we may not lead any more."""


def judge(reply: Reply, faults: int) -> Verdict:
    """The verdict on ``reply``; ``faults`` answers blamed the server, this one included.

    A bind that may still happen is never given up, since its pod may then be placed elsewhere
    or its room given away: it is sent again until the API server takes or refuses it.
    """
    if reply.ok:
        return Verdict.BOUND
    if reply.status == 0 and reply.reason == FENCED:
        return Verdict.FENCED
    if reply.status in {0, 401, 408, 429}:
        return Verdict.AGAIN
    if reply.status == 409 and reply.object is None:
        # Nobody saw the pod since: what is in the way may be our own bind.
        return Verdict.AGAIN
    if reply.status >= 500:
        # The client has looked for the pod after each of them, and it was bound nowhere.
        return Verdict.REFUSED if faults >= SERVER_ERRORS else Verdict.AGAIN
    return Verdict.REFUSED
