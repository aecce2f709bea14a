"""The policy in force: read from a file, and again whenever the file changes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final

from hekla.domain.errors import InvalidError
from hekla.telemetry import metrics
from services.scheduler import policy
from services.scheduler.framework import Action, Framework

LOOK: Final = 1.0
"""Seconds between looks at the file."""

log = logging.getLogger(__name__)


class Policies:
    """A ``volcano-scheduler.conf``, or the default."""

    def __init__(
        self, path: Path | None, move: Callable[[], None], *, provided: Collection[str] = ()
    ) -> None:
        """Read the policy; ``provided`` are demands of pods that every node meets.

        Raises:
            InvalidError: it cannot be read, or makes no sense.
        """
        self._path = path
        self._move = move
        self._provided = frozenset(provided)
        self._looked_at = time.monotonic()
        self._text = self._read()
        self.framework = self._load(self._text)

    def look(self) -> bool:
        """Read the file again if it changed; what makes no sense leaves the old one in force.

        Returns:
            Whether another policy is in force now.
        """
        now = time.monotonic()
        if self._path is None or now - self._looked_at < LOOK:
            return False
        self._looked_at = now
        try:
            text = self._read()
            if text == self._text:
                return False
            self._text = text
            self.framework = self._load(text)
        except InvalidError as error:
            log.error("configuration refused", extra={"reason": str(error)})
            return False
        return True

    def _read(self) -> str:
        if self._path is None:
            return policy.DEFAULT
        try:
            return self._path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidError(f"cannot read {self._path}: {error}") from error

    def _load(self, text: str) -> Framework:
        loaded = policy.load(text)
        log.info(
            "policy",
            extra={
                "actions": loaded.actions,
                "tiers": loaded.tiers,
                "warnings": loaded.warnings,
            },
        )
        loaded.framework.provides |= self._provided
        return _observed(loaded.framework, self._move)


def _observed(framework: Framework, move: Callable[[], None]) -> Framework:
    framework.actions = tuple(_Observed(action, move) for action in framework.actions)
    return framework


class _Observed:
    """An action whose time is measured, and whose end is a sign of life."""

    def __init__(self, action: Action, move: Callable[[], None]) -> None:
        self.name = action.name
        self._action = action
        self._move = move

    def run(self, session: Any) -> None:
        """Take the step."""
        began = time.perf_counter()
        self._action.run(session)
        metrics.action_latency.labels(self.name).observe((time.perf_counter() - began) * 1e3)
        self._move()
