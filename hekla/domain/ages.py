"""Spans and instants as ``kubectl`` shows them: short, coarser the longer ago."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY

_Units = tuple[int, str, int, str]

_SCALE: Final[Sequence[tuple[int, _Units]]] = (
    (2 * _MINUTE, (1, "s", 0, "")),
    (10 * _MINUTE, (_MINUTE, "m", 1, "s")),
    (3 * _HOUR, (_MINUTE, "m", 0, "")),
    (8 * _HOUR, (_HOUR, "h", _MINUTE, "m")),
    (2 * _DAY, (_HOUR, "h", 0, "")),
    (8 * _DAY, (_DAY, "d", _HOUR, "h")),
    (2 * _YEAR, (_DAY, "d", 0, "")),
)
"""Below so many seconds: the unit, its letter, and the unit and letter of the rest."""
_BEYOND: Final[_Units] = (_YEAR, "y", _DAY, "d")


def span(length: timedelta) -> str:
    """``length`` in at most two units: ``75s``, ``3m10s``, ``5h``, ``2d4h``."""
    seconds = max(0, int(length.total_seconds()))
    large, name, small, rest_name = next(
        (units for below, units in _SCALE if seconds < below), _BEYOND
    )
    rest = seconds % large // small if small else 0
    return f"{seconds // large}{name}" + (f"{rest}{rest_name}" if rest else "")


def age(instant: datetime | None, now: datetime) -> str:
    """How long ago ``instant`` was."""
    return span(now - instant) if instant is not None else "-"
