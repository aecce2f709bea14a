"""The load suite's look at a history finds each thing that must not be, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.load import invariants
from tests.load.clients import Sent
from tests.load.history import AttemptPast, BindPast, History, JobPast
from tests.load.shapes import SHAPES, Shape, parse
from tests.load.stages import times_of
from tests.load.watcher import Seen, Views

POD = {"cpu": 100}
NODE = {"cpu": 200, "pods": 2}


def job(number: int, **changes: object) -> JobPast:
    past = JobPast(
        uid=f"j{number}",
        name=f"load-{number}",
        version=5,
        phases=("Pending", "Running", "Completed"),
        created=10.1,
        running=11.0,
        finished=12.0,
        min_available=2,
        removed=False,
    )
    return replace(past, **changes)  # type: ignore[arg-type]


def attempt(number: int, index: int, **changes: object) -> AttemptPast:
    past = AttemptPast(
        uid=f"a{number}-{index}",
        job=f"j{number}",
        task="main",
        index=index,
        run=0,
        group=f"g{number}",
        pod=f"p{number}-{index}",
        planned=10.5,
        ended=12.0,
        outcome="Succeeded",
        superseded=False,
    )
    return replace(past, **changes)  # type: ignore[arg-type]


def bind(number: int, index: int, *, node: str = "n", at: float = 10.7) -> BindPast:
    return BindPast(f"p{number}-{index}", f"g{number}", node, POD, "bound", at)


class Run:
    """A run in which all is well: two jobs of two pods, the second removed."""

    def __init__(self) -> None:
        self.jobs = [job(0), job(1, removed=True)]
        self.attempts = [attempt(number, index) for number in (0, 1) for index in (0, 1)]
        self.binds = [
            bind(number, index, node=f"n{number}") for number in (0, 1) for index in (0, 1)
        ]
        self.sent = [
            Sent(number, 10.0, 10.2, f"j{number}", 1, repeated_as=f"j{number}")
            for number in (0, 1)
        ]
        phases = {"Pending": 10.2, "Running": 11.1, "Completed": 12.1}
        self.views = Views(
            jobs={
                "j0": Seen("load-0", 10.2, dict(phases), 5),
                "j1": Seen("load-1", 10.2, dict(phases), 6, deleted=13.0),
            },
            groups={
                "g0": Seen("g0", 10.3, {"Pending": 10.3, "Inqueue": 10.4}, 3, owner="j0"),
                "g1": Seen("g1", 10.3, {"Inqueue": 10.6}, 3, owner="j1"),
            },
        )

    @property
    def history(self) -> History:
        return History(self.jobs, self.attempts, self.binds, {"n0": NODE, "n1": NODE})

    def broken(self) -> list[str]:
        return invariants.broken(self.history, self.sent, self.views)


def test_a_good_run_breaks_nothing() -> None:
    assert Run().broken() == []


def lose_a_bind(run: Run) -> None:
    del run.binds[0]


def bind_a_stranger(run: Run) -> None:
    run.binds.append(BindPast("p9", "g9", "n9", POD, "bound", 10.0))


def fill_a_node(run: Run) -> None:
    run.binds[2] = run.binds[2]._replace(node="n0", at=11.9)


def live_twice(run: Run) -> None:
    run.attempts.append(attempt(0, 0, uid="b", pod="b", planned=11.5, run=1))
    run.attempts[0] = replace(run.attempts[0], superseded=True, outcome="Failed")


def live_on(run: Run) -> None:
    run.attempts.append(attempt(0, 0, uid="b", pod="b", planned=11.5, run=1))
    run.attempts[0] = replace(run.attempts[0], outcome="", ended=None)


def run_again(run: Run) -> None:
    run.attempts.append(attempt(0, 0, uid="b", pod="b", planned=12.5))


def go_back(run: Run) -> None:
    run.jobs[0] = job(0, phases=("Pending", "Running", "Completed", "Running"))


def be_seen_going_back(run: Run) -> None:
    run.views.jobs["j0"].phases = {"Running": 10.2, "Pending": 11.0, "Completed": 12.0}


def begin_late(run: Run) -> None:
    run.jobs[0] = job(0, phases=("Running", "Completed"))
    del run.views.jobs["j0"].phases["Pending"]


def lose_a_job(run: Run) -> None:
    del run.jobs[0]


def double_a_job(run: Run) -> None:
    run.jobs.append(job(0, uid="j2"))
    run.views.jobs["j2"] = run.views.jobs["j0"]


def do_it_twice(run: Run) -> None:
    run.sent[0] = replace(run.sent[0], repeated_as="j5")


def see_an_older_version(run: Run) -> None:
    run.views.jobs["j0"].backwards.append((4, 3))


def see_a_version_again(run: Run) -> None:
    run.views.groups["g0"].backwards.append((4, 4))


def miss_the_last_version(run: Run) -> None:
    run.views.jobs["j0"].version = 4


def miss_the_delete(run: Run) -> None:
    run.views.jobs["j1"].deleted = None


def miss_a_job(run: Run) -> None:
    del run.views.jobs["j0"]


@pytest.mark.parametrize(
    ("number", "spoil"),
    [
        ("I1", lose_a_bind),
        ("I1", bind_a_stranger),
        ("I2", fill_a_node),
        ("I4", live_twice),
        ("I4", live_on),
        ("I5", run_again),
        ("I6", go_back),
        ("I6", be_seen_going_back),
        ("I6", begin_late),
        ("I7", lose_a_job),
        ("I7", double_a_job),
        ("I7", do_it_twice),
        ("I8", see_an_older_version),
        ("I8", see_a_version_again),
        ("I8", miss_the_last_version),
        ("I8", miss_the_delete),
        ("I8", miss_a_job),
    ],
)
def test_what_must_not_be_is_found(number: str, spoil: Callable[[Run], None]) -> None:
    run = Run()
    spoil(run)

    assert {sentence[:2] for sentence in run.broken()} >= {number}


def test_a_stream_that_was_opened_anew_may_tell_a_version_again() -> None:
    run = Run()
    see_a_version_again(run)
    run.views.reopened = 1

    assert run.broken() == []


def test_a_restart_opens_a_new_run_for_what_succeeded() -> None:
    run = Run()
    run.attempts.append(attempt(0, 0, uid="b", pod="b", planned=12.5, run=1))
    run.attempts[0] = replace(run.attempts[0], superseded=True)

    assert run.broken() == []


def test_each_stage_is_timed_from_when_the_job_was_due() -> None:
    run = Run()

    times = times_of(run.history, run.sent, run.views).by_stage

    assert [round(it, 3) for it in times["answered"]] == [0.2, 0.2]
    assert [round(it, 3) for it in times["row stored"]] == [0.1]
    assert [round(it, 3) for it in times["group let in"]] == [0.4, 0.6]
    assert [round(it, 3) for it in times["pod bound"]] == [0.7] * 4
    assert [round(it, 3) for it in times["over seen"]] == [2.1, 2.1]


def test_shapes_are_written_as_jobs_by_pods_and_scaled() -> None:
    assert parse("500x20") == Shape(500, 20)
    for text in ("500", "x20", "5x-1", "0x3", "axb"):
        with pytest.raises(ValueError, match="JOBSxPODS"):
            parse(text)
    assert [shape.scaled(0.1).all_pods for shape in SHAPES] == [1000] * 4
    assert [shape.scaled(0.1).name for shape in SHAPES] == [
        "1000x1",
        "50x20",
        "2x500",
        "1x1000",
    ]
