"""Durations are read and written as Go does."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from hekla.domain import duration
from hekla.domain.errors import InvalidError


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("0", timedelta()),
        ("0s", timedelta()),
        ("10s", timedelta(seconds=10)),
        ("1h2m3.5s", timedelta(hours=1, minutes=2, seconds=3.5)),
        ("1.5h", timedelta(minutes=90)),
        (".5s", timedelta(milliseconds=500)),
        ("1.s", timedelta(seconds=1)),
        ("100ms", timedelta(milliseconds=100)),
        ("5us", timedelta(microseconds=5)),
        ("5\u00b5s", timedelta(microseconds=5)),
        ("5\u03bcs", timedelta(microseconds=5)),
        ("1500ns", timedelta(microseconds=1)),
        ("-10s", timedelta(seconds=-10)),
        ("+10s", timedelta(seconds=10)),
        ("1m1m", timedelta(minutes=2)),
        ("2540400h", timedelta(hours=2540400)),
    ],
)
def test_a_duration_is_read_as_go_reads_it(written: str, meant: timedelta) -> None:
    assert duration.parse(written) == meant


@pytest.mark.parametrize(
    "written",
    [
        "",
        "10",
        "s",
        ".s",
        "1d",
        "1 s",
        "ten",
        "1h-2m",
        "--1s",
        "+",
        "1e3s",
        "\u0661s",
        "9999999999h",
        "1s\n",
        "1s" * 100,
    ],
)
def test_what_is_no_duration_is_refused(written: str) -> None:
    with pytest.raises(InvalidError, match="must be a duration"):
        duration.parse(written)


@pytest.mark.parametrize(
    ("span", "written"),
    [
        (timedelta(), "0s"),
        (timedelta(seconds=90), "1m30s"),
        (timedelta(hours=1), "1h0m0s"),
        (timedelta(days=1, milliseconds=1500), "24h0m1.5s"),
        (timedelta(microseconds=1500), "1.5ms"),
        (timedelta(microseconds=3), "3\u00b5s"),
        (timedelta(seconds=-1), "-1s"),
    ],
)
def test_a_duration_is_written_as_go_writes_it(span: timedelta, written: str) -> None:
    assert duration.format(span) == written


@given(st.timedeltas(timedelta(days=-100_000), timedelta(days=100_000)))
def test_what_is_written_is_read_back(span: timedelta) -> None:
    assert duration.parse(duration.format(span)) == span


@given(st.text(alphabet="0123456789.hmsnu-+ \u00b5"))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        duration.parse(text)
    except InvalidError:
        return
