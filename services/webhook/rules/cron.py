"""Cron expressions and time zones, as Volcano's CronJobs have them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from hekla.domain import duration
from hekla.domain.errors import InvalidError

DESCRIPTORS: Final = (
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
)
EVERY: Final = "@every "
LONGEST: Final = 1000
"""Characters of a schedule."""
_TERM: Final = re.compile(
    r"(?P<first>[*?]|[0-9]{1,4}|[A-Za-z]{3})(?:-(?P<last>[0-9]{1,4}|[A-Za-z]{3}))?"
    r"(?:/[0-9]{1,4})?"
)
_ZONE_PART: Final = re.compile(r"[A-Za-z0-9._+-]{1,14}")
_SOME_TIME: Final = datetime(2024, 1, 1, tzinfo=UTC)
"""Only whether an expression can be read is asked, so any time will do."""


def schedule_error(schedule: str) -> str | None:
    """What keeps ``schedule`` from being a cron expression, in words that follow it."""
    if len(schedule) > LONGEST:
        return f"must be no more than {LONGEST} characters, has {len(schedule)}"
    if "TZ" in schedule:
        return "must not name a time zone, which is for timeZone"
    if schedule.startswith("@"):
        return _descriptor_error(schedule)
    return _five_fields_error(schedule)


def never_comes(schedule: str) -> bool:
    """Whether a good expression names no day that there is, such as 31 February."""
    if schedule.startswith("@"):
        return False
    try:
        _read(schedule)
    except CronSimError:
        return True
    return False


def _read(expression: str) -> None:
    CronSim(expression.replace("?", "*"), _SOME_TIME)


def _five_fields_error(schedule: str) -> str | None:
    fields = schedule.split()
    if len(fields) != 5:
        return (
            "must have five fields (minute, hour, day of month, month, day of week),"
            f" has {len(fields)}"
        )
    for position, field in enumerate(fields):
        wrong = _field_error(field, position)
        if wrong is not None:
            return wrong
    try:
        # Months on their own: a day that none of them has is no mistake of the language.
        _read(" ".join((*fields[:3], "*", fields[4])))
        _read(f"0 0 1 {fields[3]} *")
    except CronSimError as error:
        return f"must be a cron expression: {error}"
    return None


def _field_error(field: str, position: int) -> str | None:
    for term in field.split(","):
        found = _TERM.fullmatch(term)
        if found is None:
            return (
                "must have numbers, names, ranges, '*' and '?' in its fields, not " + term[:20]
            )
        bounds = [bound for bound in (found["first"], found["last"]) if bound]
        if position < 3 and any(bound.isalpha() for bound in bounds):
            return "must have names for months and days of the week only"
        if position == 4 and any(bound.isdigit() and int(bound) > 6 for bound in bounds):
            return "must have a day of week from 0 to 6, or a name"
    return None


def zone_error(zone: str) -> str | None:
    """What keeps ``zone`` from being a time zone."""
    if not zone:
        return "must not be empty"
    parts = zone.split("/")
    odd = [part for part in parts if part in (".", "..") or part.startswith("-")]
    if odd or not all(map(_ZONE_PART.fullmatch, parts)):
        return "must be the name of a time zone such as Europe/Berlin"
    if zone.lower() == "local":
        return "must not be Local, which is another zone on each machine"
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        return "must be a time zone that is known"
    return None


def _descriptor_error(schedule: str) -> str | None:
    if schedule in DESCRIPTORS:
        return None
    if not schedule.startswith(EVERY):
        known = ", ".join((*DESCRIPTORS, "@every <duration>"))
        return f"must be five fields or one of {known}"
    try:
        span = duration.parse(schedule.removeprefix(EVERY))
    except InvalidError:
        return "must have a duration such as 90m after @every"
    return None if span.total_seconds() > 0 else "must have a duration > 0 after @every"
