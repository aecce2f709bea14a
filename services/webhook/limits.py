"""The limits of an installation, with the resource groups as their file has them now."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from pathlib import Path

from hekla.domain.errors import InvalidError
from services.webhook.rules.resource_groups import ResourceGroup, read_groups
from services.webhook.rules.world import Limits

log = logging.getLogger(__name__)

_State = tuple[int, int, int] | None


class LimitsNow:
    """Looks at the file whenever it is asked, and reads it again when it is another.

    A file that is gone or wrong changes nothing: what was read before stays.
    """

    def __init__(self, limits: Limits, groups: Path | None) -> None:
        self._path = groups
        self._seen = _state(groups)
        self._limits = limits
        self._lock = threading.Lock()

    def __call__(self) -> Limits:
        """The limits now."""
        if self._path is not None:
            with self._lock:
                self._look(self._path)
        return self._limits

    def _look(self, path: Path) -> None:
        state = _state(path)
        if state == self._seen:
            return
        self._seen = state
        try:
            groups = groups_in(path)
        except InvalidError as error:
            log.error(
                "resource groups not read, those before stay", extra={"error": str(error)}
            )
            return
        self._limits = replace(self._limits, resource_groups=groups)
        log.info("resource groups read again", extra={"groups": len(groups)})


def groups_in(path: Path | None) -> tuple[ResourceGroup, ...]:
    """The groups that a file lists.

    Raises:
        InvalidError: it cannot be read, or is wrong.
    """
    if path is None:
        return ()
    try:
        return read_groups(path.read_text())
    except (OSError, UnicodeDecodeError, InvalidError) as error:
        raise InvalidError(f"the resource groups in {path}: {error}") from None


def _state(path: Path | None) -> _State:
    """What tells one content of a file from another; None if there is no file."""
    if path is None:
        return None
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
