"""Triggers: each event counts once in each version of a job."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from hekla.domain.attempt import Span
from hekla.domain.phases import JobAction, JobEvent
from hekla.domain.trigger import Trigger, TriggerState, Watched
from hekla.store import batch, triggers
from hekla.store.database import Database
from hekla.store.jobs import StoredJob
from tests.support.store import add_job, after, doom, plan, running, sight

LATER = datetime(2099, 1, 1, tzinfo=UTC)


def trigger(scope: str = "", event: JobEvent = JobEvent.POD_FAILED, **more: Any) -> Trigger:
    values: dict[str, Any] = {
        "version": 0,
        "state": TriggerState.FIRED,
        "action": JobAction.RESTART_JOB,
    }
    return Trigger(scope=scope, event=event, **values | more)


def armed(scope: str, event: JobEvent = JobEvent.POD_FAILED, **more: Any) -> Trigger:
    return trigger(scope, event, state=TriggerState.ARMED, due_at=LATER, **more)


def put(database: Database, job: StoredJob, *wanted: Trigger) -> None:
    with database.transaction() as session:
        triggers.put(session, job.uid, wanted)


def of_job(database: Database, job: StoredJob, version: int = 0) -> Sequence[Watched]:
    with database.transaction() as session:
        return batch.answer(session, triggers.of_job(job.uid, version=version, limit=100))


def test_triggers_come_back_as_they_were_written(database: Database) -> None:
    job = add_job(database)
    wanted = [
        armed("4e8a2a4e-0000-4000-8000-000000000001", task="t", index=3),
        trigger("t", JobEvent.TASK_COMPLETED, task="t"),
        trigger("", JobEvent.JOB_UPDATED, state=TriggerState.NEW),
    ]

    put(database, job, *wanted)

    found = [one.trigger for one in of_job(database, job)]
    assert sorted(found, key=lambda one: one.scope) == sorted(wanted, key=lambda one: one.scope)
    assert found[0] == wanted[0], "timers come first"
    assert of_job(database, job, version=1) == []


@pytest.mark.parametrize("over", [TriggerState.FIRED, TriggerState.CANCELLED])
def test_an_event_that_had_its_effect_is_not_armed_again(
    database: Database, over: TriggerState
) -> None:
    job = add_job(database)
    put(database, job, armed("t", task="t"))
    put(database, job, trigger("t", state=over, task="t"))

    put(database, job, armed("t", task="t"))

    [found] = of_job(database, job)
    assert (found.trigger.state, found.trigger.due_at) == (over, None)


def test_one_event_counts_again_in_the_next_version(database: Database) -> None:
    job = add_job(database)
    put(database, job, trigger("t", task="t"))

    put(database, job, armed("t", task="t", version=1))

    assert [one.trigger.version for one in of_job(database, job, version=1)] == [1]


def test_a_timer_knows_how_its_attempt_fares(database: Database) -> None:
    job = add_job(database)
    live, failed, doomed = running(database, job, ("t", 0), ("t", 1), ("t", 2))
    failed = after(database, sight(failed, phase="Failed"))
    doom(database, job, indices=Span(2, 2), task="t")
    put(
        database, job, *[armed(str(row.uid), task="t", index=row.index)
                         for row in (live, failed, doomed)]
    )  # fmt: skip

    found = {one.trigger.index: one for one in of_job(database, job)}

    assert [
        (found[i].attempt_phase, found[i].attempt_outcome, found[i].attempt_doomed)
        for i in range(3)
    ] == [("Running", None, False), ("Failed", "Failed", False), ("Running", None, True)]
    assert not any(one.replaced for one in found.values())


def test_a_timer_is_told_that_a_newer_attempt_runs(database: Database) -> None:
    job = add_job(database)
    [old] = running(database, job, ("t", 0))
    after(database, sight(old, phase="Failed", disrupted=True, gone=True))
    put(database, job, armed(str(old.uid), JobEvent.POD_EVICTED, task="t", index=0))
    [new] = plan(database, job, ("t", 0))
    assert [one.replaced for one in of_job(database, job)] == [False]

    after(database, sight(new, phase="Running"))

    assert [one.replaced for one in of_job(database, job)] == [True]


def test_timers_stop_when_they_are_cancelled(database: Database) -> None:
    job = add_job(database)
    other = add_job(database, "other")
    for each in (job, other):
        put(database, each, armed("t", task="t"), trigger("u", task="u"))

    with database.transaction() as session:
        triggers.cancel_armed(session, job.uid)

    states = {one.trigger.scope: one.trigger.state for one in of_job(database, job)}
    assert states == {"t": TriggerState.CANCELLED, "u": TriggerState.FIRED}
    assert TriggerState.ARMED in {one.trigger.state for one in of_job(database, other)}


def test_a_resume_keeps_what_tasks_have_fired_and_nothing_else(database: Database) -> None:
    job = add_job(database)
    put(
        database,
        job,
        trigger("t", JobEvent.TASK_COMPLETED, task="t"),
        armed("u", task="u"),
        trigger("", JobEvent.JOB_UPDATED),
    )

    with database.transaction() as session:
        triggers.carry(session, job.uid, before=0, version=1)

    assert [one.trigger.scope for one in of_job(database, job, version=1)] == ["t"]


@pytest.mark.parametrize(
    ("indices", "left"),
    [
        pytest.param(None, {"u"}, id="the whole task"),
        pytest.param(Span(1, 2), {"0", "3", "u"}, id="some of its pods"),
    ],
)
def test_a_new_run_forgets_the_events_of_what_begins_again(
    database: Database, indices: Span | None, left: set[str]
) -> None:
    job = add_job(database)
    uids = [str(uuid4()) for _ in range(4)]
    put(
        database,
        job,
        *[armed(uid, task="t", index=index) for index, uid in enumerate(uids)],
        trigger("t", JobEvent.TASK_COMPLETED, task="t"),
        trigger("u", JobEvent.TASK_COMPLETED, task="u"),
    )

    with database.transaction() as session:
        triggers.reset(session, job.uid, "t", indices)

    found = [one.trigger for one in of_job(database, job)]
    assert {one.scope if one.index is None else f"{one.index}" for one in found} == left


def test_pending_pods_without_a_timer_are_found_with_their_age(database: Database) -> None:
    job = add_job(database)
    first, second, third, other = plan(database, job, ("t", 0), ("t", 1), ("t", 2), ("u", 0))
    after(database, sight(second, phase="Running"))
    doom(database, job, task="t", indices=Span(2, 2))
    del third, other

    def waiting() -> list[tuple[str, int, bool]]:
        with database.transaction() as session:
            found = batch.answer(
                session, triggers.pending_unarmed(job.uid, version=0, tasks=["t"], limit=9)
            )
        return [(one.task, one.index, 0 <= one.seconds < 60) for one in found]

    assert waiting() == [("t", 0, True)]
    put(database, job, armed(str(first.uid), JobEvent.POD_PENDING, task="t", index=0))
    assert waiting() == []
