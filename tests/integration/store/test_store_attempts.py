"""Attempts: planned before their pods are made, one live one for each index."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from hekla.domain.attempt import Kill, Outcome, Slot, Span
from hekla.domain.errors import ConflictError
from hekla.store import attempt_pages, attempts, batch, observations
from hekla.store.attempts import Counts
from hekla.store.database import Database, now
from hekla.store.jobs import StoredJob
from hekla.store.objects import Place
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
    wait_for_waiting,
)


def counts(database: Database, job: StoredJob) -> Counts:
    with database.transaction() as session:
        return attempts.counts(session, job.uid)


def states(database: Database, job: StoredJob) -> Mapping[str, Mapping[str, int]]:
    return counts(database, job).by_task


def missing(
    database: Database,
    job: StoredJob,
    pause: timedelta = MINUTE,
    limit: int = 100,
    **tasks: int,
) -> Sequence[Slot]:
    with database.transaction() as session:
        return batch.answer(
            session, attempts.missing(job.uid, list(tasks.items()), pause=pause, limit=limit)
        )


def never_was(database: Database, *uids: UUID) -> None:
    with database.transaction() as session:
        attempts.never_was(session, uids)


def lose(database: Database, *uids: UUID) -> None:
    with database.transaction() as session:
        observations.lost(session, uids, at=now(session))


PENDING: Mapping[str, Any] = {}
RUNNING = {"phase": "Running"}
SUCCEEDED = {"phase": "Succeeded"}
FAILED = {"phase": "Failed"}
EVICTED = {"phase": "Running", "gone": True}
REJECTED = {"phase": "Failed", "rejected": True}


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


def test_a_doomed_pod_is_to_be_deleted_until_it_is_seen_going(database: Database) -> None:
    job = add_job(database)
    live, ended, planned = plan(database, job, ("t", 0), ("t", 1), ("t", 2))
    live = after(database, sight(live, **RUNNING))
    ended = after(database, sight(ended, **SUCCEEDED))

    def to_delete() -> list[tuple[int, str | None, Outcome | None]]:
        with database.transaction() as session:
            found = attempts.to_delete(session, job.uid, limit=9)
        return [(one.index, one.pod_uid, one.outcome) for one in found]

    assert to_delete() == []
    doom(database, job, ended=True)
    assert to_delete() == [
        (0, live.pod_uid, None),
        (1, ended.pod_uid, Outcome.SUCCEEDED),
        (2, None, None),
    ]
    after(database, sight(live, phase="Running", terminating=True))
    after(database, sight(ended, phase="Succeeded", gone=True))
    never_was(database, planned.uid)

    assert to_delete() == []


def test_a_pod_that_was_asked_to_go_is_not_asked_again(database: Database) -> None:
    job = add_job(database)
    [row] = running(database, job, ("t", 0))
    doom(database, job)

    with database.transaction() as session:
        attempts.leaving(session, [row.uid])
        attempts.leaving(session, [])
        assert attempts.to_delete(session, job.uid, limit=9) == []
    assert states(database, job) == {"t": {"Terminating": 1}}
    still = sight(row, phase="Running", resource_version=9)
    assert not after(database, still).terminating, "Kubernetes has the last word"


def test_the_highest_index_of_each_task_that_needs_no_pod_is_known(database: Database) -> None:
    job = add_job(database)
    assert counts(database, job).highest == {}
    rows = running(database, job, *[("t", index) for index in range(4)], ("u", 0))
    after(database, sight(rows[2], **SUCCEEDED))
    after(database, sight(rows[3], **EVICTED))

    assert counts(database, job).highest == {"t": 2, "u": 0}


def test_a_pod_once_confirmed_is_not_confirmed_as_another(database: Database) -> None:
    job = add_job(database)
    [row] = confirm(database, *plan(database, job, ("t", 0)))

    with database.transaction() as session:
        attempts.confirm(session, [attempts.Confirmed(row.uid, "other")])
        attempts.confirm(session, [])

    assert read_attempt(database, row.uid).pod_uid == f"pod-{row.uid}"


def test_only_a_doomed_attempt_without_pod_never_was(database: Database) -> None:
    job = add_job(database)
    wanted, doomed, seen = plan(database, job, ("t", 0), ("t", 1), ("t", 2))
    after(database, sight(seen))
    doom(database, job, indices=Span(1, 2), task="t")

    never_was(database, wanted.uid, doomed.uid, seen.uid)

    outcomes = {row.index: row.outcome for row in rows_of(database, job.uid)}
    assert outcomes == {0: None, 1: "Removed", 2: None}
    given_up = read_attempt(database, doomed.uid)
    assert given_up.gone_at is not None
    assert given_up.handled, "policies hear nothing of it"
    never_was(database, doomed.uid)
    assert read_attempt(database, doomed.uid).gone_at == given_up.gone_at


@pytest.mark.parametrize(
    ("kill", "doomed"),
    [
        pytest.param({}, {"t0", "t1", "u0"}, id="what is live"),
        pytest.param({"ended": True}, {"t0", "t1", "t2", "u0"}, id="and what ended"),
        pytest.param({"task": "t"}, {"t0", "t1"}, id="of a task"),
        pytest.param({"task": "t", "indices": Span(1, 5)}, {"t1"}, id="of some indices"),
        pytest.param({"task": "v"}, set(), id="of a task that has none"),
        pytest.param({"beyond": {"t": 1, "u": 1}}, {"t1"}, id="what is too many"),
        pytest.param({"beyond": {"t": 9}}, {"u0"}, id="of a task that is no more"),
        pytest.param({"beyond": {}}, {"t0", "t1", "u0"}, id="of all tasks"),
    ],
)
def test_pods_are_doomed_as_the_plan_says(
    database: Database, kill: Mapping[str, Any], doomed: set[str]
) -> None:
    job = add_job(database)
    other = add_job(database, "other")
    running(database, other, ("t", 0))
    rows = running(database, job, ("t", 0), ("t", 1), ("t", 2), ("u", 0))
    after(database, sight(rows[2], **SUCCEEDED))

    touched = doom(database, job, reason="Why", **kill)

    found = {f"{row.task}{row.index}": row for row in rows_of(database, job.uid)}
    assert {name for name, row in found.items() if row.doomed == "Why"} == doomed
    assert touched == len(doomed)
    assert not any(row.superseded for row in found.values())
    assert rows_of(database, other.uid)[0].doomed is None


def test_a_pod_is_doomed_once_and_keeps_the_reason(database: Database) -> None:
    job = add_job(database)
    running(database, job, ("t", 0))

    assert doom(database, job, reason="First") == 1
    assert doom(database, job, reason="Second") == 0
    assert doom(database, job, reason="Third", supersede=True, ended=True) == 1
    assert doom(database, job, reason="Fourth", supersede=True, ended=True) == 0

    [row] = rows_of(database, job.uid)
    assert (row.doomed, row.superseded) == ("First", True)


def test_a_restart_takes_outcomes_that_policies_have_not_seen_off_the_table(
    database: Database,
) -> None:
    job = add_job(database)
    rows = running(database, job, ("t", 0), ("t", 1))
    for row in rows:
        after(database, sight(row, **FAILED, gone=row.index == 0))

    doom(database, job, supersede=True, ended=True)

    found = rows_of(database, job.uid)
    assert [(row.handled, row.superseded) for row in found] == [(True, True)] * 2
    assert [row.doomed for row in found] == [None, "Test"], "one pod is there to remove"
    with database.transaction() as session:
        assert attempts.unhandled(session, job.uid, limit=9) == []


def test_outcomes_are_handed_to_policies_once_and_oldest_first(database: Database) -> None:
    job = add_job(database)
    rows = running(database, job, *[("t", index) for index in range(4)])
    with database.transaction() as session:
        moment = now(session)
    ends: list[tuple[int, Mapping[str, Any]]] = [
        (30, FAILED),
        (10, {"phase": "Failed", "exit_codes": {"c": 3}}),
        (20, SUCCEEDED),
        (40, EVICTED),
    ]
    for index, (seconds, seen) in enumerate(ends):
        at = moment - MINUTE + timedelta(seconds=seconds)
        after(database, sight(rows[index], **seen, finished_at=at))

    with database.transaction() as session:
        found = attempts.unhandled(session, job.uid, limit=9)
        assert attempts.unhandled(session, job.uid, limit=1) == found[:1]
        attempts.handle(session, [one.uid for one in found[:2]])
        attempts.handle(session, [])
        left = attempts.unhandled(session, job.uid, limit=9)

    assert [(one.index, one.outcome) for one in found] == [
        (1, Outcome.FAILED), (0, Outcome.FAILED), (3, Outcome.EVICTED),
    ]  # fmt: skip
    assert found[0].exit_codes == {"c": 3}
    assert left == found[2:]


def test_attempts_are_paged_and_present_ones_listed(database: Database) -> None:
    job, other = add_job(database), add_job(database, "other")
    rows = running(database, job, *[("t", index) for index in range(5)])
    running(database, other, ("t", 0))
    after(database, sight(rows[0], **EVICTED))

    seen: list[UUID] = []
    place = None
    with database.transaction() as session:
        while page := attempt_pages.page(session, job.uid, after=place, limit=2):
            seen += [row.uid for row in page]
            place = Place(page[-1].created_at, page[-1].uid)
        present = attempt_pages.present(session, job=job.uid, limit=9)
        everywhere = attempt_pages.present(session, namespace="default", limit=9)
        assert attempt_pages.present(session, namespace="elsewhere", limit=9) == []

    assert sorted(seen) == sorted(row.uid for row in rows)
    assert [row.index for row in present] == [1, 2, 3, 4]
    assert len(everywhere) == 5


def test_dooming_and_observing_the_same_pods_do_not_wait_in_a_circle(
    database: Database,
) -> None:
    job = add_job(database)
    rows = running(database, job, *[("t", index) for index in range(40)])
    failed: list[Exception] = []

    def observe() -> None:
        try:
            for version in range(10, 30):
                with database.transaction() as session:
                    observations.observe(
                        session,
                        [
                            sight(row, phase="Running", resource_version=version)
                            for row in reversed(rows)
                        ],
                    )
        except Exception as error:
            failed.append(error)

    observer = threading.Thread(target=observe)
    observer.start()
    for number in range(20):
        doom(database, job, task="t", indices=Span(number, 39 - number))
        with database.transaction() as session:
            attempts.handle(session, [row.uid for row in rows])
    observer.join()

    assert failed == []
    assert {row.doomed for row in rows_of(database, job.uid)} == {"Test"}


def test_an_end_that_is_seen_while_a_pass_dooms_the_pod_is_one_or_the_other(
    database: Database,
) -> None:
    job = add_job(database)
    [row] = running(database, job, ("t", 0))
    end = sight(row, phase="Failed", gone=True)

    with database.transaction() as session:
        attempts.doom(session, job.uid, Kill("Test"))
        observer = threading.Thread(target=after, args=(database, end))
        observer.start()
        wait_for_waiting(database)
    observer.join()

    found = read_attempt(database, row.uid)
    assert (found.outcome, found.handled) == ("Removed", True)


def test_a_slot_of_a_job_that_is_gone_is_not_planned(database: Database) -> None:
    job = add_job(database)
    with database.transaction() as session:
        session.execute(text("delete from job"))

    with (
        pytest.raises(Exception, match="attempt_job_uid_fkey"),
        database.transaction() as session,
    ):
        attempts.plan(session, job, [Slot("t", 0, 0)], version=0, group=uuid4())
