"""Whether a Volcano is at work in the cluster: then two would write the same objects.

Its parts hold leases and renew them. When a lease was renewed tells nothing by itself, since
clocks differ: one that is not long past is watched for as long as it lasts, by our own clock.
If it is renewed meanwhile its holder lives; else it is left over. One that is started later is
noticed by the same signs.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from hekla.domain import timestamps
from hekla.domain.errors import DomainError, InvalidError, NotFoundError
from hekla.kube.client import KubeClient
from hekla.kube.resources import LEASES

VOLCANO: Final = (
    "volcano",
    "vc-scheduler",
    "vc-controller-manager",
    "vc-hypernode-controller-manager",
)
"""Names of leases: of the scheduler, of older ones, of the controllers."""
LONG_PAST: Final = timedelta(hours=1)
"""Clocks of one cluster do not differ by more, or its certificates would not hold."""
LONGEST: Final = timedelta(minutes=2)
"""No lease is watched for longer, however long it says it lasts."""
LOOK_EVERY: Final = timedelta(seconds=1)
WATCH_EVERY: Final = timedelta(seconds=5)
"""How often it is looked for a Volcano that is started later: its leases last 15 s."""
TIMEOUT: Final = 10.0

log = logging.getLogger(__name__)


class Held(NamedTuple):
    """A lease that somebody holds."""

    namespace: str
    name: str
    holder: str
    renewed: str
    lasts: timedelta

    def __str__(self) -> str:
        return f"the lease {self.namespace}/{self.name} of {self.holder}"


def held(lease: Mapping[str, Any], names: Collection[str]) -> Held | None:
    """The lease if it has one of these names and a holder."""
    metadata, spec = lease.get("metadata") or {}, lease.get("spec") or {}
    name, holder = metadata.get("name"), spec.get("holderIdentity")
    if not isinstance(name, str) or name not in names or not holder:
        return None
    seconds = spec.get("leaseDurationSeconds")
    if not isinstance(seconds, int) or seconds < 1:
        seconds = 15
    return Held(
        namespace=metadata.get("namespace") or "",
        name=name,
        holder=str(holder),
        renewed=str(spec.get("renewTime") or ""),
        lasts=min(timedelta(seconds=min(seconds, 3600)), LONGEST),
    )


@dataclass(frozen=True, slots=True)
class _Known:
    """A lease as it was when it last changed."""

    held: Held
    at: float
    renewed: bool
    """Whether it was seen to change, so that its holder lived at that time."""


class _Reason(NamedTuple):
    """Why to wait."""

    certain: bool
    """Whether it is known that a Volcano is at work."""
    text: str


class Watched:
    """What is known of leases from one look to the next."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Known] = {}

    def judge(self, leases: Iterable[Held], *, at: float, clock: datetime) -> str | None:
        """Why to wait, given the leases that are held; None if nobody lives.

        Args:
            leases: all that are held.
            at: the time of the look on a clock of ours that runs evenly.
            clock: the time of day, as far as we know it.
        """
        reasons = [reason for one in leases if (reason := self._judge(one, at, clock))]
        # That one lives tells more than that another may.
        return max(reasons).text if reasons else None

    def _judge(self, lease: Held, at: float, clock: datetime) -> _Reason | None:
        key = (lease.namespace, lease.name)
        known = self._known.get(key)
        if known is None:
            # Noted as well: a clock that is set back must not make it a new one.
            since = float("-inf") if _long_past(lease, clock) else at
            known = _Known(lease, since, renewed=False)
        elif (known.held.renewed, known.held.holder) != (lease.renewed, lease.holder):
            known = _Known(lease, at, renewed=True)
        self._known[key] = known
        if at - known.at >= lease.lasts.total_seconds():
            return None
        if known.renewed:
            text = f"a Volcano is at work: {lease} is renewed; it has to stop first"
            return _Reason(certain=True, text=text)
        seconds = lease.lasts.total_seconds()
        text = f"a Volcano may be at work: {lease} is watched for {seconds:.0f} s"
        return _Reason(certain=False, text=text)


def _long_past(lease: Held, clock: datetime) -> bool:
    try:
        renewed = timestamps.from_text(lease.renewed)
    except InvalidError:
        return not lease.renewed
    return renewed + lease.lasts + LONG_PAST < clock


class Rival:
    """Looks for a Volcano, again and again; what must not work beside one asks it."""

    def __init__(
        self,
        kube: KubeClient,
        *,
        names: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """See the class; ``names`` are further names of leases."""
        self._kube = kube
        self._names = frozenset((*VOLCANO, *names))
        self._clock = clock
        self._watched = Watched()
        self._problem: str | None = "not known yet whether a Volcano is at work"
        self._was_clear = False
        self._look_at = float("-inf")
        self._told = ""

    def problem(self) -> str | None:
        """Why not to work, or None; serves as a readiness check."""
        return self._problem

    def look(self) -> bool:
        """Look, unless there was nobody a moment ago; return False. Repeat it."""
        now = self._clock()
        if now < self._look_at:
            return False
        try:
            # Leases of nodes are many, and none of these.
            listed, _ = self._kube.list(
                LEASES, field_selector="metadata.namespace!=kube-node-lease", timeout=TIMEOUT
            )
        except NotFoundError:
            listed = []  # a server without leases has nobody who holds one
        except DomainError as error:
            # Who was alone stays so: an API server that is away tells nobody's coming.
            if self._problem is not None:
                self._say(f"not known whether a Volcano is at work: {error}")
            return False
        found = [lease for item in listed if (lease := held(item, self._names))]
        problem = self._watched.judge(found, at=self._clock(), clock=datetime.now(UTC))
        if problem is None:
            if self._told:
                log.info("no Volcano is at work any more: starting")
            self._told, self._problem = "", None
            self._was_clear = True
            self._look_at = now + WATCH_EVERY.total_seconds()
        else:
            self._say(problem)
        return False

    def _say(self, problem: str) -> None:
        self._problem = problem
        if problem != self._told:
            self._told = problem
            log.warning(
                "pausing" if self._was_clear else "not starting", extra={"reason": problem}
            )
