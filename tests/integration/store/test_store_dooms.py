"""Attempts whose pods are to go, and outcomes that policies hear of."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from hekla.domain.attempt import Kill, Outcome, Slot, Span
from hekla.store import attempt_pages, attempts, observations
from hekla.store.database import Database, now
from hekla.store.objects import Place
from tests.support.attempts import (
    EVICTED,
    FAILED,
    RUNNING,
    SUCCEEDED,
    counts,
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
    wait_for_waiting,
)


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
