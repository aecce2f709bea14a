"""What the answer of a filter or scorer depends on, and so how often it must be asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

UNLIMITED: Final = 1 << 31
"""As many copies as anyone may want."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What an answer depends on."""

    kind: str
    key: str = ""


STATIC: Final = Scope("static")
"""The class, and what a node's object says besides amounts."""
RELATIVE: Final = Scope("relative")
"""That, measured against the nodes that take a pod of the class now; for scorers only."""
ROW: Final = Scope("row")
"""That, and what is on this one node."""
GLOBAL: Final = Scope("global")
"""Anything: it is asked again after every pod. So is who declares no scope."""


def domain(key: str) -> Scope:
    """What is on the nodes that share this label's value; asked again after every pod."""
    return Scope("domain", key)
