"""Instants travel as RFC 3339 text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from hekla.domain import timestamps
from hekla.domain.errors import InvalidError

KOLKATA, LOS_ANGELES = timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-8))
ZONES = st.sampled_from([UTC, KOLKATA, LOS_ANGELES])
INSTANTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=ZONES)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05+01:00", datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05.5Z", datetime(2026, 1, 2, 3, 4, 5, 500_000, tzinfo=UTC)),
        ("2026-01-02T03:04:05.123456789Z", datetime(2026, 1, 2, 3, 4, 5, 123_456, tzinfo=UTC)),
    ],
)
def test_a_time_is_read(text: str, instant: datetime) -> None:
    assert timestamps.from_text(text) == instant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-02",
        "2026-01-02 03:04:05Z",
        "2026-01-02T03:04:05",
        "2026-13-02T03:04:05Z",
        "2026-01-02T24:00:01Z",
        "0000-01-02T03:04:05Z",
        "0001-01-01T00:00:00+01:00",
        "2026-W01-1T03:04:05Z",
        "2026-01-02t03:04:05z",
        "soon",
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidError, match="must be a time"):
        timestamps.from_text(text)


@given(INSTANTS)
def test_a_time_is_read_back_to_the_second(instant: datetime) -> None:
    back = timestamps.from_text(timestamps.to_text(instant))

    assert timedelta() <= instant - back < timedelta(seconds=1)


@given(INSTANTS)
def test_a_fine_time_is_read_back_exactly(instant: datetime) -> None:
    assert timestamps.from_text(timestamps.to_micro_text(instant)) == instant


def test_the_text_ends_in_z() -> None:
    instant = datetime(2026, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC)

    assert timestamps.to_text(instant) == "2026-01-02T03:04:05Z"
    assert timestamps.to_micro_text(instant) == "2026-01-02T03:04:05.600000Z"


def test_a_time_without_a_zone_is_a_mistake_of_the_program() -> None:
    with pytest.raises(ValueError, match="time zone"):
        timestamps.to_text(datetime(2026, 1, 2))  # noqa: DTZ001
