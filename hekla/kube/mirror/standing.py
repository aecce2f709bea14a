"""Whether this process mirrors: only where the kinds are installed, alone, and by a lease."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import timedelta
from enum import Enum, auto
from typing import Final, Protocol

from hekla.domain.errors import DomainError
from hekla.kube.client import KubeClient
from hekla.kube.mirror import discovery
from hekla.kube.mirror.engine import Engine
from hekla.kube.resources import Resource
from hekla.lifecycle import repeating

log = logging.getLogger(__name__)

LOOK_EVERY: Final = 10.0
"""Seconds between looks at whether the kinds are installed."""
MISSES: Final = 3
"""So often in a row kinds that were there must be missing: one of several API servers that has
just started may not know them yet."""
LOOK_AGAIN: Final = timedelta(seconds=1)
"""How long to wait when a look told nothing."""


class Ballot(Protocol):
    """Who of several processes does it; ``hekla.store.election.Election`` is one."""

    @property
    def pause(self) -> timedelta:
        """How long to wait between two calls of ``stand``."""

    def stand(self) -> bool:
        """Take the lease if it is free, or keep it; return whether it is held."""

    def resign(self) -> None:
        """Give it up."""


class Installed(Enum):
    """Whether custom resources are to be reckoned with."""

    UNKNOWN = auto()
    """Nobody has looked yet: wait."""
    NO = auto()
    YES = auto()


class Mirror:
    """The mirrors of one service, which begin and end together."""

    def __init__(
        self,
        kube: KubeClient,
        resources: Sequence[Resource],
        *,
        ballot: Ballot,
        engines: Callable[[], Sequence[Engine]],
        beside: Callable[[Sequence[Engine]], AbstractContextManager[None]],
        hindrance: Callable[[], str | None] = lambda: None,
        look_every: float = LOOK_EVERY,
    ) -> None:
        """Take what a service brings along.

        Args:
            kube: the API server.
            resources: the kinds that all have to be installed.
            ballot: the lease.
            engines: makes the engines of a term; they are not used again.
            beside: what runs beside them, and marks what changes.
            hindrance: why not to mirror, or None: another system may be at work.
            look_every: seconds between looks at what is installed.
        """
        self._kube = kube
        self._resources = resources
        self._ballot = ballot
        self._engines = engines
        self._beside = beside
        self._hindrance = hindrance
        self._look_every = look_every
        self._looked_at = float("-inf")
        self._told: dict[str, str] = {}
        self._found = threading.Event()
        self._misses = 0
        self._term = ExitStack()
        self._mirroring: Sequence[Engine] = ()
        self.installed = Installed.UNKNOWN

    @property
    def leading(self) -> bool:
        """Whether this process mirrors."""
        return bool(self._mirroring)

    @property
    def engines(self) -> Sequence[Engine]:
        """Those of this term; empty if another process mirrors."""
        return self._mirroring

    def problem(self) -> str | None:
        """Why custom resources must not be written by anyone here, or None."""
        if self.installed is Installed.UNKNOWN:
            return "not known yet whether custom resources are installed"
        return self._hindrance() if self.installed is Installed.YES else None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Mirror whenever it is this process's turn, until the block ends."""
        stop = threading.Event()
        try:
            # An API server that does not answer must not keep the lease from being renewed.
            with (
                repeating("mirrored-kinds", self.look, idle=LOOK_AGAIN, stop=stop),
                repeating(
                    "mirror", self.stand, idle=self._ballot.pause, wake=self._found, stop=stop
                ),
            ):
                try:
                    yield
                finally:
                    stop.set()
        finally:
            self._end()

    def stand(self) -> bool:
        """Begin or end a term if it is time to; return False. Repeat it."""
        if self.installed is not Installed.YES:
            self._end()
            return False
        problem = self._hindrance()
        if problem is not None:
            self._end()
            self._tell("term", f"custom resources are not mirrored: {problem}")
            return False
        if any(engine.deposed.is_set() for engine in self._mirroring):
            self._end()
        held = self._ballot.stand()
        if held and not self.leading:
            self._begin()
        elif not held and self.leading:
            self._end()
        return False

    def look(self) -> bool:
        """Find out whether the kinds are installed, now and then; return False. Repeat it."""
        now = time.monotonic()
        if now - self._looked_at < self._look_every:
            return False
        try:
            missing = discovery.missing(self._kube, self._resources)
        except DomainError as error:
            # What was known stays so: an API server that is away has not lost its kinds.
            self._tell("kinds", f"not known whether custom resources are installed: {error}")
            return False
        self._looked_at = now
        self._misses = self._misses + 1 if missing else 0
        if self.installed is Installed.YES and 0 < self._misses < MISSES:
            return False
        if missing:
            names = ", ".join(f"{one.plural}.{one.group}" for one in missing)
            self._tell("kinds", f"custom resources are not mirrored: {names} are not installed")
        elif self.installed is not Installed.YES:
            self._tell("kinds", "custom resources are installed")
        self.installed = Installed.NO if missing else Installed.YES
        self._found.set()
        return False

    def _begin(self) -> None:
        engines = self._engines()
        with ExitStack() as starting:
            for engine in engines:
                starting.enter_context(engine.running())
            starting.enter_context(self._beside(engines))
            self._term = starting.pop_all()
        self._mirroring = engines
        self._tell("term", "mirroring")

    def _end(self) -> None:
        if self._mirroring:
            try:
                self._term.close()
            finally:
                self._mirroring = ()  # not before: until then its engines still write
            self._tell("term", "not mirroring any more")
        self._ballot.resign()

    def _tell(self, about: str, words: str) -> None:
        """Log what is so, once."""
        if self._told.get(about) != words:
            self._told[about] = words
            log.info(words, extra={"kinds": [one.plural for one in self._resources]})
