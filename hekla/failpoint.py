"""Named places where a test makes a process die, dawdle or fail.

``HEKLA_FAILPOINTS`` arms them: ``controller.acted=kill@3;kube.post-late=sleep 2:0.1``.
An action is ``kill`` (SIGKILL to this very process), ``sleep <seconds>`` or ``raise``;
``@n`` keeps it for the n-th time the place is passed, ``:p`` gives it the probability p.
Nothing is armed unless the variable says so, and then a pass costs one test of an empty dict.
"""

from __future__ import annotations

import logging
import os
import random
import re
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

VARIABLE: Final = "HEKLA_FAILPOINTS"

POINTS: Final[Mapping[str, str]] = {
    "controller.recorded": "a pass is recorded, nothing of it is done yet",
    "controller.acted": "a pass is recorded and done, its claim is still held",
    "controller.commit-unknown": "a pass is committed, but the worker does not learn of it",
    "controller.custom-made": "a job has its custom resource, nothing says so yet",
    "controller.chunk-stored": "a chunk of CreateJobs is stored, others are not yet",
    "controller.slow-act": "between two acts of one pass",
    "flow.recorded": "a pass over a flow is recorded, nothing of it is done yet",
    "flow.created": "a step's job is made, nothing says so yet",
    "flow.acted": "a pass over a flow is recorded and done, its claim is still held",
    "scheduler.recorded": "a decision is recorded, no pod is bound yet",
    "scheduler.bound": "pods are bound, the record does not say so yet",
    "mirror.row-taken": "rows follow their custom resources, those that follow rows do not yet",
    "mirror.custom-written": "custom resources follow their rows, no status is shown yet",
    "mirror.shown": "statuses are written, the mirror does not know yet",
    "kube.post-late": "a create is about to be sent to Kubernetes",
}
"""Every place there is. A name that is not here is refused: it would test nothing."""

log = logging.getLogger(__name__)


class FailpointError(Exception):
    """What ``raise`` raises: no error of ours, so only a guard for any error stops it."""


@dataclass(slots=True)
class _Armed:
    action: str
    seconds: float
    nth: int | None
    probability: float
    passed: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def due(self) -> bool:
        with self.lock:
            self.passed += 1
            turn = self.nth is None or self.passed == self.nth
        return turn and (self.probability >= 1 or random.random() < self.probability)  # noqa: S311


_SHAPE: Final = re.compile(
    r"(?P<name>[a-z.-]+)=(?P<action>kill|raise|sleep (?P<seconds>\d+(\.\d+)?))"
    r"(@(?P<nth>[1-9]\d*))?(:(?P<probability>[01](\.\d+)?|\.\d+))?"
)

_armed: dict[str, _Armed] | None = None  # None: the environment has not been read yet


def parse(text: str) -> dict[str, _Armed]:
    """Read what the variable holds.

    Raises:
        ValueError: it is malformed, or names a place that does not exist.
    """
    armed: dict[str, _Armed] = {}
    for entry in filter(None, (part.strip() for part in text.split(";"))):
        match = _SHAPE.fullmatch(entry)
        if match is None:
            raise ValueError(
                f"{entry!r} is not name=kill|raise|sleep SECONDS[@nth][:probability]"
            )
        if match["name"] not in POINTS:
            raise ValueError(f"{match['name']!r} is none of {', '.join(POINTS)}")
        armed[match["name"]] = _Armed(
            action=match["action"].split()[0],
            seconds=float(match["seconds"] or 0),
            nth=int(match["nth"]) if match["nth"] else None,
            probability=float(match["probability"] or 1),
        )
    return armed


def hit(name: str) -> None:
    """Pass the place ``name``: do what is armed there, usually nothing.

    Raises:
        FailpointError: the action is ``raise``.
    """
    global _armed  # noqa: PLW0603 - processes started late read their own environment once
    if _armed is None:
        _armed = parse(os.environ.get(VARIABLE, ""))
    if not _armed:
        return
    point = _armed.get(name)
    if point is not None and point.due():
        _act(name, point)


def _act(name: str, point: _Armed) -> None:
    log.warning("failpoint", extra={"failpoint": name, "action": point.action})
    match point.action:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "sleep":
            time.sleep(point.seconds)
        case _:
            raise FailpointError(name)


@contextmanager
def armed(text: str) -> Iterator[None]:
    """Arm ``text`` in this process until the block ends, whatever the environment says."""
    global _armed  # noqa: PLW0603
    before, _armed = _armed, parse(text)
    try:
        yield
    finally:
        _armed = before
