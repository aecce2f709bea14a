"""Log lines are JSON whatever they are given; metrics are as they are documented."""

from __future__ import annotations

import json
import logging
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from prometheus_client import Counter, Gauge, Histogram, generate_latest

import hekla
import services
from hekla.telemetry import metrics
from hekla.telemetry.logs import JsonFormatter


def line(
    message: str = "pass", *args: Any, error: bool = False, **extra: Any
) -> dict[str, Any]:
    """What one call of a logger becomes."""
    record = logging.getLogger("hekla.test").makeRecord(
        "hekla.test",
        logging.INFO,
        "file.py",
        1,
        message,
        args,
        sys.exc_info() if error else None,
        extra=extra,
    )
    text = JsonFormatter("flow").format(record)
    assert "\n" not in text
    return dict(json.loads(text, parse_constant=_refuse))


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def test_a_line_has_the_event_and_its_fields() -> None:
    shown = line("pass %s", "ended", job="default/a", seconds=0.5)

    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", shown.pop("ts"))
    assert shown == {
        "level": "info",
        "logger": "hekla.test",
        "service": "flow",
        "message": "pass ended",
        "job": "default/a",
        "seconds": 0.5,
    }


def test_a_field_of_ours_is_not_overwritten() -> None:
    shown = line(service="webhook", level="loud")

    assert (shown["service"], shown["level"]) == ("flow", "info")
    assert (shown["service_"], shown["level_"]) == ("webhook", "loud")


def test_an_exception_is_one_field() -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        shown = line("failed", error=True)

    assert shown["exception"].startswith("Traceback (most recent call last):\n")
    assert shown["exception"].endswith("ValueError: first\nsecond")


anything = st.recursive(
    st.none() | st.floats() | st.integers() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=5,
)


@given(message=st.text(st.characters(exclude_categories=())), value=anything)
def test_any_value_makes_one_valid_line(message: str, value: Any) -> None:
    shown = line(message.replace("%", ""), value=value)

    assert "value" in shown


def test_a_value_that_contains_itself_makes_a_line() -> None:
    endless: list[Any] = []
    endless.append(endless)

    assert line(value=endless)["value"] == "[[...]]"


def test_every_metric_has_our_name_or_volcanos() -> None:
    ours = [
        name
        for name in re.findall(r"^# TYPE (\S+)", generate_latest().decode(), re.MULTILINE)
        if not name.startswith(("python_", "process_"))
    ]

    assert ours
    assert all(name.startswith(("hekla_", "volcano_")) for name in ours)


def test_every_metric_of_the_table_is_moved_somewhere() -> None:
    folders = [Path(path) for package in (hekla, services) for path in package.__path__]
    texts = [path.read_text() for folder in folders for path in folder.rglob("*.py")]
    used = {name for text in texts for name in re.findall(r"\bmetrics\.(\w+)", text)}
    table = {
        name
        for name, value in vars(metrics).items()
        if isinstance(value, (Counter, Gauge, Histogram, dict)) and not name.startswith("_")
    }

    assert table - used == set(), "move them, or take them out of the table"


@pytest.mark.parametrize(("first", "last", "count"), [(1, 5000, 20), (0.1, 100, 15)])
def test_exponential_buckets_reach_from_first_to_last(
    first: float, last: float, count: int
) -> None:
    bounds = metrics.exponential(first, last, count)

    assert len(bounds) == count
    assert bounds[0] == first
    assert bounds[-1] == pytest.approx(last)
    assert list(bounds) == sorted(set(bounds))
