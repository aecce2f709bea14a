"""A job's pod group: what the gang is and what it takes."""

from __future__ import annotations

from typing import Any

import pytest

from hekla.domain import resources
from services.controller.core.group import group_spec
from tests.support.factories import make_job, make_task


def asks(cpu: str) -> dict[str, Any]:
    """A template whose pod asks for some CPU."""
    container = {
        "name": "c",
        "image": "busybox",
        "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": "9"}},
    }
    return {"template": {"spec": {"containers": [container]}}}


@pytest.mark.parametrize(
    ("tasks", "minimum", "cpu"),
    [
        pytest.param(
            [("m", 5, 4, "1"), ("w", 3, 1, "1")], 4, "4", id="below the tasks' minimums"
        ),
        pytest.param([("m", 5, 4, "1"), ("w", 3, 1, "1")], 5, "5", id="the tasks' minimums"),
        pytest.param([("m", 5, 4, "1"), ("w", 3, 1, "1")], 6, "6", id="above them"),
        pytest.param([("hi", 2, 1, "1"), ("lo", 4, 2, "2")], 2, "2", id="the first task first"),
        pytest.param([("hi", 2, 1, "1"), ("lo", 4, 2, "2")], 3, "5", id="one and two"),
        pytest.param([("hi", 2, 1, "1"), ("lo", 4, 2, "2")], 5, "8", id="then what is left"),
    ],
)
def test_what_the_minimum_takes(
    tasks: list[tuple[str, int, int, str]], minimum: int, cpu: str
) -> None:
    made = [
        make_task(name, replicas, minAvailable=least, **asks(each))
        for name, replicas, least, each in tasks
    ]

    spec = group_spec(make_job(*made, minAvailable=minimum), {})

    takes = spec.min_resources or {}
    assert (takes["cpu"], takes["requests.cpu"]) == (cpu, cpu)
    assert (takes["pods"], takes["count/pods"]) == (str(minimum), str(minimum))
    assert resources.parse_amount("cpu", takes["limits.cpu"]) == minimum * 9000


def test_what_succeeded_and_cannot_be_seen_makes_the_gang_smaller() -> None:
    """A resumed gang of three, two of which are done, waits for the third alone."""
    job = make_job(make_task("a", 2), make_task("b", 1))

    spec = group_spec(job, {"a": 2})

    assert (spec.min_member, spec.min_task_member) == (1, {"a": 0, "b": 1})


def test_the_group_is_the_jobs_in_queue_and_priority() -> None:
    spec = group_spec(make_job(queue="q", priorityClassName="high"), {})

    assert (spec.queue, spec.priority_class_name, spec.min_member) == ("q", "high", 1)
