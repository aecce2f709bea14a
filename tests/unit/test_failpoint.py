"""Failpoints: nothing unless armed, and exactly what was armed otherwise."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hekla
import services
from hekla import failpoint
from hekla.failpoint import FailpointError, armed, hit

NAME = "controller.acted"


def hits(count: int, name: str = NAME) -> list[int]:
    """Which of ``count`` passes raised, from 1."""
    raised = []
    for number in range(1, count + 1):
        try:
            hit(name)
        except FailpointError:
            raised.append(number)
    return raised


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", [], id="nothing is armed"),
        pytest.param("scheduler.bound=raise", [], id="another place is armed"),
        pytest.param(f"{NAME}=raise", [1, 2, 3, 4], id="every time"),
        pytest.param(f" {NAME}=raise@3 ;", [3], id="the third time only"),
        pytest.param(f"{NAME}=raise:0", [], id="with no probability"),
        pytest.param(f"{NAME}=raise@2:1.0", [2], id="the second time, for certain"),
        pytest.param(f"scheduler.bound=kill;{NAME}=raise@1", [1], id="one of two"),
    ],
)
def test_a_place_raises_when_it_is_armed_to(text: str, expected: list[int]) -> None:
    with armed(text):
        assert hits(4) == expected


def test_a_probability_is_kept_over_many_passes() -> None:
    with armed(f"{NAME}=raise:0.5"):
        assert 350 < len(hits(1000)) < 650  # 9.5 standard deviations


def test_a_place_sleeps_when_it_is_armed_to() -> None:
    with armed(f"{NAME}=sleep 0.05@1"):
        started = time.monotonic()
        hit(NAME)

        assert time.monotonic() - started >= 0.05


@pytest.mark.parametrize(
    "text",
    [
        NAME,
        f"{NAME}=",
        f"{NAME}=explode",
        f"{NAME}=sleep",
        f"{NAME}=sleep x",
        f"{NAME}=raise@0",
        f"{NAME}=raise@x",
        f"{NAME}=raise:2x",
        "controller.act=raise",
    ],
)
def test_what_would_arm_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is (not|none of)"):
        failpoint.parse(text)


def test_a_process_is_killed_where_its_environment_says() -> None:
    program = f"from hekla.failpoint import hit; hit({NAME!r}); print('one'); hit({NAME!r})"

    ended = subprocess.run(
        [sys.executable, "-u", "-c", program],
        env={"PATH": os.environ["PATH"], failpoint.VARIABLE: f"{NAME}=kill@2"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert ended.returncode == -signal.SIGKILL
    assert ended.stdout == "one\n"


def test_every_place_in_the_code_is_in_the_table_and_the_other_way_round() -> None:
    folders = [Path(path) for package in (hekla, services) for path in package.__path__]
    texts = [path.read_text() for folder in folders for path in folder.rglob("*.py")]
    used = {name for text in texts for name in re.findall(r'\bhit\(\s*"([^"]+)"', text)}

    assert used == set(failpoint.POINTS)
