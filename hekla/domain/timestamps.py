"""Instants as Kubernetes writes them: RFC 3339, in UTC, ``2026-01-02T03:04:05Z``."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from hekla.domain.errors import InvalidError

_GRAMMAR: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
    r"(?P<fraction>\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII,
)


def to_text(instant: datetime) -> str:
    """``instant`` to the second, as in metadata and status; what is finer is cut off."""
    return f"{_utc(instant).replace(microsecond=0, tzinfo=None).isoformat()}Z"


def to_micro_text(instant: datetime) -> str:
    """``instant`` to the microsecond, as in leases and events."""
    return f"{_utc(instant).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def from_text(text: str) -> datetime:
    """The instant that ``text`` names, in UTC; what is finer than a microsecond is cut off.

    Raises:
        InvalidError: it names none.
    """
    found = _GRAMMAR.fullmatch(text)
    if found is None:
        raise InvalidError(f"must be a time such as 2026-01-02T03:04:05Z, is {text[:60]!r}")
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidError(f"must be a time that exists, is {text!r}") from error


def _utc(instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise ValueError("an instant without a time zone is none")
    return instant.astimezone(UTC)
