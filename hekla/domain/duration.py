"""Durations as Go writes them: ``1h30m``, ``300ms``, ``1h2m3.5s``.

A ``timedelta`` counts microseconds: what is finer is cut off.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from hekla.domain.errors import InvalidError

_LONGEST: Final = 128
_LARGEST_NANOS: Final = 2**63 - 1

_NANOS: Final = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,  # micro sign
    "\u03bcs": 10**3,  # Greek mu, which Go takes as well
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PIECE: Final = re.compile(
    "(?P<whole>[0-9]*)(?:\\.(?P<part>[0-9]*))?(?P<unit>ns|us|\u00b5s|\u03bcs|ms|s|m|h)"
)


def parse(text: str) -> timedelta:
    """The span that ``text`` names.

    Raises:
        InvalidError: it names none, or one longer than about 292 years.
    """
    unsigned = text[1:] if text[:1] in {"+", "-"} else text
    if unsigned == "0":
        return timedelta()
    nanos = _nanos(unsigned) if 0 < len(unsigned) <= _LONGEST else None
    if nanos is None:
        shown = text if len(text) <= 60 else f"{text[:60]}…"
        raise InvalidError(f"must be a duration such as 10s or 1h30m, is {shown!r}")
    if nanos > _LARGEST_NANOS:
        raise InvalidError(f"must be a duration of at most {_LARGEST_NANOS}ns, is {text!r}")
    span = timedelta(microseconds=nanos // 1000)
    return -span if text.startswith("-") else span


def _nanos(text: str) -> int | None:
    total = at = 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None or not (piece["whole"] or piece["part"]):
            return None
        part = piece["part"] or ""
        total += int(piece["whole"] + part) * _NANOS[piece["unit"]] // 10 ** len(part)
        at = piece.end()
    return total


def format(span: timedelta) -> str:  # noqa: A001
    """``span`` as Go prints it: ``1h30m0s``, ``1.5s``, ``0s``."""
    micros = span // timedelta(microseconds=1)
    sign, micros = ("-", -micros) if micros < 0 else ("", micros)
    if micros == 0:
        return "0s"
    if micros < 1000:
        return f"{sign}{micros}\u00b5s"
    if micros < 10**6:
        return f"{sign}{_decimal(micros, 3)}ms"
    minutes, micros = divmod(micros, 60 * 10**6)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{_decimal(micros, 6)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"


def _decimal(number: int, places: int) -> str:
    whole, part = divmod(number, 10**places)
    return f"{whole}.{part:0{places}d}".rstrip("0").rstrip(".")
