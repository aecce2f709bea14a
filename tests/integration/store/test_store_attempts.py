"""Attempts: planned before their pods are made, one live one for each index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from hekla.domain.attempt import Outcome, Slot, Span
from hekla.domain.errors import ConflictError
from hekla.store import attempts, batch
from hekla.store.database import Database
from tests.support.attempts import (
    EVICTED,
    FAILED,
    PENDING,
    REJECTED,
    RUNNING,
    SUCCEEDED,
    counts,
    lose,
    missing,
    never_was,
    states,
)
from tests.support.store import (
    MINUTE,
    add_job,
    after,
    confirm,
    doom,
    plan,
    read_attempt,
    rows_of,
    running,
    sight,
)


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        pytest.param([], "Planned", id="no pod yet"),
        pytest.param([PENDING], "Pending", id="not started"),
        pytest.param([RUNNING], "Running", id="running"),
        pytest.param([{"phase": "Unknown"}], "Unknown", id="its node does not answer"),
        pytest.param([SUCCEEDED], "Succeeded", id="succeeded"),
        pytest.param([SUCCEEDED, SUCCEEDED | {"gone": True}], "Succeeded", id="and removed"),
        pytest.param([FAILED], "Failed", id="failed"),
        pytest.param([FAILED, FAILED | {"gone": True}], "Failed", id="failed and removed"),
        pytest.param([RUNNING | {"terminating": True}], "Terminating", id="on its way out"),
        pytest.param([FAILED | {"disrupted": True}], "Stale", id="evicted, lies there"),
        pytest.param([REJECTED], "Stale", id="refused, lies there"),
        pytest.param([REJECTED | {"terminating": True}], "Terminating", id="refused, going"),
        pytest.param([EVICTED], "Over", id="evicted and gone"),
        pytest.param([REJECTED | {"gone": True}], "Over", id="refused and gone"),
    ],
)
def test_each_attempt_counts_in_one_state(
    database: Database, seen: Sequence[Mapping[str, Any]], state: str
) -> None:
    job = add_job(database)
    [row] = plan(database, job, ("t", 0))

    for step in seen:
        row = after(database, sight(row, **step))

    found = counts(database, job)
    assert found.by_task == {"t": {state: 1}}
    assert found.present == (0 if row.gone_at else 1)


def test_doomed_pods_count_as_terminating_until_they_are_gone(database: Database) -> None:
    job = add_job(database)
    live, planned, ended = plan(database, job, ("t", 0), ("t", 1), ("t", 2))
    live = after(database, sight(live, **RUNNING))
    after(database, sight(ended, **SUCCEEDED))

    doom(database, job, ended=True)
    assert states(database, job) == {"t": {"Terminating": 2, "Succeeded": 1}}

    never_was(database, planned.uid)
    after(database, sight(live, phase="Failed", terminating=True, gone=True))
    assert states(database, job) == {"t": {"Over": 2, "Succeeded": 1}}
    assert counts(database, job).present == 1


def test_what_lies_there_is_removed_and_then_goes(database: Database) -> None:
    job = add_job(database)
    refused, evicted, failed, live = running(database, job, *[("t", i) for i in range(4)])
    after(database, sight(refused, **REJECTED))
    after(database, sight(evicted, phase="Failed", disrupted=True))
    after(database, sight(failed, **FAILED))
    assert states(database, job) == {"t": {"Stale": 2, "Failed": 1, "Running": 1}}

    doom(database, job, ended=True, outcomes=(Outcome.REJECTED, Outcome.EVICTED))

    assert states(database, job) == {"t": {"Terminating": 2, "Failed": 1, "Running": 1}}
    assert read_attempt(database, live.uid).doomed is None


def test_what_a_restart_leaves_behind_is_terminating_and_then_not_counted(
    database: Database,
) -> None:
    job = add_job(database)
    [old] = running(database, job, ("t", 0))
    doom(database, job, supersede=True, ended=True)
    assert states(database, job) == {"t": {"Terminating": 1}}

    after(database, sight(old, phase="Failed", terminating=True, gone=True))
    assert states(database, job) == {"t": {"Over": 1}}

    plan(database, job, ("t", 0), run=1)
    assert states(database, job) == {"t": {"Planned": 1}}


def test_tasks_and_jobs_are_counted_apart(database: Database) -> None:
    one, other = add_job(database, "one"), add_job(database, "other")
    running(database, one, ("t", 0), ("t", 1))
    plan(database, one, ("u", 0))
    running(database, other, ("t", 0))

    assert states(database, one) == {"t": {"Running": 2}, "u": {"Planned": 1}}


def test_restarts_of_containers_are_counted_in_live_pods(database: Database) -> None:
    job = add_job(database)
    first, second, over = running(database, job, ("t", 0), ("t", 1), ("t", 2))
    for row, restarts in ((first, 2), (second, 3)):
        after(database, sight(row, phase="Running", restarts=restarts))
    after(database, sight(over, phase="Failed", restarts=9))

    assert counts(database, job).restarts == {"t": 5}


def test_every_index_of_a_new_job_is_missing(database: Database) -> None:
    job = add_job(database)

    assert missing(database, job, b=2, empty=0, a=1) == [
        Slot("b", 0, 0), Slot("b", 1, 0), Slot("a", 0, 0),
    ]  # fmt: skip
    assert missing(database, job, b=2, a=1, limit=2) == [Slot("b", 0, 0), Slot("b", 1, 0)]
    assert missing(database, job) == []


def test_only_new_indices_are_missing_after_more_replicas(database: Database) -> None:
    job = add_job(database)
    running(database, job, ("t", 0), ("t", 1))

    assert missing(database, job, t=4) == [Slot("t", 2, 0), Slot("t", 3, 0)]


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        pytest.param(RUNNING, [], id="live"),
        pytest.param(SUCCEEDED | {"gone": True}, [], id="success is final"),
        pytest.param(FAILED | {"gone": True}, [], id="failure is the policies' business"),
        pytest.param(EVICTED, [Slot("t", 0, 0)], id="evicted: same run"),
        pytest.param(REJECTED | {"gone": True}, [], id="refused: not before the pause"),
    ],
)
def test_what_ended_is_missing_if_it_is_to_be_made_again(
    database: Database, seen: Mapping[str, Any], wanted: Sequence[Slot]
) -> None:
    job = add_job(database)
    [row] = plan(database, job, ("t", 0))

    after(database, sight(row, **seen))

    assert missing(database, job, t=1) == wanted


def test_a_lost_pod_is_made_again_in_its_run(database: Database) -> None:
    job = add_job(database)
    [row] = running(database, job, ("t", 0))

    lose(database, row.uid)

    assert missing(database, job, t=1) == [Slot("t", 0, 0)]


def test_a_refused_pod_is_made_again_after_a_pause(database: Database) -> None:
    job = add_job(database)
    [row] = plan(database, job, ("t", 0))
    row = after(database, sight(row, **REJECTED, gone=True))
    assert row.finished_at is not None

    assert missing(database, job, t=1, pause=timedelta(0)) == [Slot("t", 0, 0)]
    with database.transaction() as session:
        again = batch.answer(session, attempts.retry_at(job.uid, pause=MINUTE))
        assert again == row.finished_at + MINUTE
        assert batch.answer(session, attempts.retry_at(job.uid, pause=timedelta(0))) is None


def test_a_restart_makes_a_new_run_even_of_what_succeeded(database: Database) -> None:
    job = add_job(database)
    done, live = running(database, job, ("t", 0), ("t", 1))
    done = after(database, sight(done, **SUCCEEDED, gone=True))

    doom(database, job, supersede=True, ended=True)
    assert missing(database, job, t=2) == [Slot("t", 0, 1)], "the other's pod is still there"
    after(database, sight(live, phase="Failed", terminating=True, gone=True))

    assert missing(database, job, t=2) == [Slot("t", 0, 1), Slot("t", 1, 1)]


def test_a_run_counts_on_over_evictions(database: Database) -> None:
    job = add_job(database)
    [row] = plan(database, job, ("t", 0), run=3)
    after(database, sight(row, **EVICTED))
    assert missing(database, job, t=1) == [Slot("t", 0, 3)]

    doom(database, job, supersede=True, ended=True)
    assert missing(database, job, t=1) == [Slot("t", 0, 4)]


def test_an_index_waits_until_no_pod_of_its_past_is_left(database: Database) -> None:
    job = add_job(database)
    [row] = running(database, job, ("t", 0))
    row = after(database, sight(row, phase="Failed", disrupted=True))
    assert missing(database, job, t=1) == [], "its pod is still there"

    after(database, sight(row, phase="Failed", disrupted=True, gone=True))
    assert missing(database, job, t=1) == [Slot("t", 0, 0)]


def test_scaling_down_and_up_again_brings_indices_back(database: Database) -> None:
    job = add_job(database)
    running(database, job, ("t", 0))
    [extra] = running(database, job, ("t", 1))
    assert doom(database, job, beyond={"t": 1}) == 1
    after(database, sight(extra, phase="Failed", terminating=True, gone=True))

    assert missing(database, job, t=1) == []
    assert missing(database, job, t=2) == [Slot("t", 1, 0)]


def test_a_plan_leaves_one_newest_attempt_of_each_index(database: Database) -> None:
    job = add_job(database)
    [old] = running(database, job, ("t", 0))
    after(database, sight(old, **EVICTED))

    [new] = plan(database, job, ("t", 0), version=7)

    assert not read_attempt(database, old.uid).current
    assert (new.current, new.run, new.job_version, new.pod_uid) == (True, 0, 7, None)
    assert (new.namespace, new.pod_name) == ("default", "j-t-0")
    assert [row.uid for row in rows_of(database, job.uid)] == [old.uid, new.uid]


def test_an_index_with_a_live_attempt_is_not_planned_again(database: Database) -> None:
    job = add_job(database)
    [live] = plan(database, job, ("t", 0))

    with pytest.raises(ConflictError, match="someone else did the same just now"):
        plan(database, job, ("t", 0))

    assert [row.uid for row in rows_of(database, job.uid)] == [live.uid]
    assert read_attempt(database, live.uid).current


def test_a_planned_pod_is_to_be_made_until_it_is_seen_or_confirmed(database: Database) -> None:
    job = add_job(database)
    seen, made, doomed, left = plan(database, job, *[("t", index) for index in range(4)])

    def to_create() -> list[int]:
        with database.transaction() as session:
            return [one.index for one in attempts.to_create(session, job.uid, limit=9)]

    assert to_create() == [0, 1, 2, 3]
    after(database, sight(seen))
    confirm(database, made)
    doom(database, job, indices=Span(2, 2), task="t")

    assert to_create() == [3]
    with database.transaction() as session:
        [one] = attempts.to_create(session, job.uid, limit=1)
    assert (one.uid, one.pod_name, one.run, one.outcome) == (left.uid, "j-t-3", 0, None)
    assert read_attempt(database, doomed.uid).doomed == "Test"
