"""What observers write of pods: newer over older, each outcome once, news alone wakes."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID, uuid4

import pytest

from hekla.domain.attempt import PodSeen
from hekla.store import attempts, history, observations
from hekla.store.database import Database, now
from hekla.store.observations import Unseen, Verdict
from hekla.store.schema import AttemptRow
from tests.support.store import (
    add_job,
    after,
    confirm,
    doom,
    due,
    forget_work,
    plan,
    read_attempt,
    rows_of,
    running,
    sight,
    value,
)

NOTHING = Verdict([], [], [])
FIRST = UUID(int=0)
THEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def observe(database: Database, *pods: PodSeen) -> Verdict:
    with database.transaction() as session:
        return observations.observe(session, pods)


class Sight(NamedTuple):
    """What decides about an outcome."""

    phase: str
    terminating: bool
    disrupted: bool
    rejected: bool
    doomed: bool
    gone: bool
    cut: bool

    @property
    def over(self) -> bool:
        """Whether nobody will say more of this pod."""
        return self.phase in ("Succeeded", "Failed") or self.gone or self.cut

    @property
    def outcome(self) -> str | None:
        """What the design says of it."""
        if not self.over:
            return None
        if self.phase == "Succeeded":
            return "Succeeded"
        if self.doomed:
            return "Removed"
        if self.phase != "Failed":
            return "Evicted"  # it went before it ended
        if self.rejected:
            return "Rejected"
        return "Evicted" if self.terminating or self.disrupted else "Failed"


SIGHTS = [
    Sight(phase, *flags)
    for phase in ("Pending", "Running", "Unknown", "Succeeded", "Failed")
    for flags in itertools.product([False, True], repeat=6)
]


def test_each_sight_of_a_pod_has_its_outcome(database: Database) -> None:
    job = add_job(database)
    rows = plan(database, job, *[("t", index) for index in range(len(SIGHTS))])
    confirm(database, *rows)
    rows = rows_of_order(database, job.uid)
    with database.transaction() as session:
        for row, one in zip(rows, SIGHTS, strict=True):
            session.get_one(AttemptRow, row.uid).doomed = "Test" if one.doomed else None

    observe(
        database,
        *[
            sight(
                rows[index],
                phase=one.phase,
                terminating=one.terminating,
                disrupted=one.disrupted,
                rejected=one.rejected,
                gone=one.gone,
                cut=one.cut,
            )
            for index, one in enumerate(SIGHTS)
        ],
    )

    for one, row in zip(SIGHTS, rows_of_order(database, job.uid), strict=True):
        assert row.outcome == one.outcome, one
        assert (row.finished_at is not None) == one.over, one
        assert (row.gone_at is not None) == one.gone, one
        assert row.handled == (one.outcome in ("Succeeded", "Removed")), one


def rows_of_order(database: Database, job: UUID) -> list[AttemptRow]:
    return sorted(rows_of(database, job), key=lambda row: row.index)


def test_all_that_was_seen_of_a_pod_is_written(database: Database) -> None:
    job = add_job(database)
    [row] = plan(database, job, ("t", 0))

    found = after(
        database,
        sight(
            row,
            resource_version=2**40,
            phase="Running",
            ready=True,
            terminating=True,
            restarts=3,
            exit_codes={"init": 0, "c": 137},
            reason="OOM\0Killed",
            node="n1",
            started_at=THEN,
        ),
    )

    assert found.pod_uid == f"pod-{row.uid}"
    assert (found.phase, found.ready, found.terminating) == ("Running", True, True)
    assert (found.restarts, found.exit_codes) == (3, {"init": 0, "c": 137})
    assert (found.reason, found.node, found.started_at) == ("OOMKilled", "n1", THEN)
    assert (found.resource_version, found.outcome) == (2**40, None)


def test_the_time_of_an_end_is_the_containers_if_they_say_one(database: Database) -> None:
    job = add_job(database)
    told, untold = plan(database, job, ("t", 0), ("t", 1))

    told = after(database, sight(told, phase="Failed", finished_at=THEN))
    untold = after(database, sight(untold, phase="Failed"))

    assert told.finished_at == THEN
    assert untold.finished_at is not None
    again = sight(told, phase="Failed", finished_at=THEN.replace(year=2027), gone=True)
    assert after(database, again).finished_at == THEN


@pytest.mark.parametrize("version", [9, 10])
def test_what_is_not_newer_is_left_out(database: Database, version: int) -> None:
    job = add_job(database)
    [row] = plan(database, job, ("t", 0))
    after(database, sight(row, phase="Succeeded", resource_version=10))

    stale = replace(sight(row, phase="Running"), resource_version=version)

    assert after(database, stale).phase == "Succeeded"


def test_of_several_sights_of_a_pod_in_one_batch_the_newest_counts(database: Database) -> None:
    job = add_job(database)
    [row] = plan(database, job, ("t", 0))
    steps = [("Pending", 1), ("Succeeded", 3), ("Running", 2)]

    observe(
        database,
        *[sight(row, phase=phase, resource_version=version) for phase, version in steps],
    )

    assert read_attempt(database, row.uid).outcome == "Succeeded"


def test_an_outcome_is_never_another(database: Database) -> None:
    job = add_job(database)
    [row] = running(database, job, ("t", 0))

    row = after(database, sight(row, phase="Failed"))
    assert (row.outcome, row.handled) == ("Failed", False)
    row = after(database, sight(row, phase="Succeeded", terminating=True, gone=True))

    assert row.outcome == "Failed"


def test_a_pod_of_another_uid_is_late_and_changes_nothing(database: Database) -> None:
    job = add_job(database)
    [row] = running(database, job, ("t", 0))
    other = sight(row, pod_uid="other", phase="Failed", resource_version=99)

    assert observe(database, other) == Verdict([], [other], [])

    assert read_attempt(database, row.uid).outcome is None


def test_of_two_pods_of_one_attempt_in_one_batch_each_is_judged_by_itself(
    database: Database,
) -> None:
    job = add_job(database)
    [row] = running(database, job, ("t", 0))
    ours = sight(row, phase="Running", node="n1")
    for others in (
        [sight(row, pod_uid=f"other-{n}", phase="Failed", resource_version=99)]
        for n in range(5)
    ):
        ours = replace(ours, resource_version=ours.resource_version + 1)
        verdict = observe(database, *others, ours)
        assert verdict == Verdict([], others, [])

    found = read_attempt(database, row.uid)
    assert (found.pod_uid, found.phase, found.node) == (row.pod_uid, "Running", "n1")
    assert found.outcome is None


def test_two_pods_of_a_planned_attempt_leave_one_late(database: Database) -> None:
    job = add_job(database)
    [row] = plan(database, job, ("t", 0))
    pods = [sight(row, pod_uid="a"), sight(row, pod_uid="b")]

    verdict = observe(database, *pods)

    [late] = verdict.late
    assert {late.pod_uid, read_attempt(database, row.uid).pod_uid} == {"a", "b"}


def test_a_pod_nobody_knows_is_strange(database: Database) -> None:
    job = add_job(database)
    [row] = plan(database, job, ("t", 0))
    pod = sight(row, attempt_uid=uuid4())

    assert observe(database, pod) == Verdict([], [], [pod])
    assert observe(database, replace(pod, gone=True)) == NOTHING
    assert observe(database) == NOTHING


def test_a_pod_of_a_removed_job_is_late(database: Database) -> None:
    job = add_job(database)
    [row] = plan(database, job, ("t", 0))
    with database.transaction() as session:
        history.retire(session, job)
    pod = sight(row)

    assert observe(database, pod) == Verdict([], [pod], [])


def test_a_pod_that_comes_after_its_attempt_was_given_up_is_late(database: Database) -> None:
    job = add_job(database)
    [row] = plan(database, job, ("t", 0))
    doom(database, job)
    with database.transaction() as session:
        attempts.never_was(session, [row.uid])
    pod = sight(row, resource_version=5)

    assert observe(database, pod) == Verdict([], [pod], [])
    assert read_attempt(database, row.uid).pod_uid is None


def test_a_pod_that_was_lost_and_is_there_again_is_late(database: Database) -> None:
    job = add_job(database)
    [row] = running(database, job, ("t", 0))
    with database.transaction() as session:
        observations.lost(session, [row.uid], at=now(session))
    pod = sight(row, phase="Running", resource_version=9)

    verdict = observe(database, pod)

    assert verdict.late == [pod], "another may run in its place"
    assert verdict.release == [pod]
    going = replace(pod, terminating=True, resource_version=10)
    assert observe(database, going) == Verdict([going], [], [])


def test_our_finalizer_goes_once_the_outcome_is_recorded_and_not_before(
    database: Database,
) -> None:
    job = add_job(database)
    [row] = running(database, job, ("t", 0))
    going = sight(row, phase="Running", terminating=True)
    assert observe(database, going) == NOTHING

    ended = replace(going, phase="Failed", resource_version=9)
    assert observe(database, ended) == Verdict([ended], [], [])
    assert observe(database, ended) == Verdict([ended], [], []), "until it is done"
    free = replace(ended, finalizers=("other/one",), resource_version=10)
    assert observe(database, free) == NOTHING
    assert observe(database, replace(free, gone=True, resource_version=11)) == NOTHING


def test_only_news_wakes_the_job(database: Database) -> None:
    job = add_job(database)
    [row] = plan(database, job, ("t", 0))
    pod = sight(row)

    def wakes(**seen: object) -> bool:
        nonlocal pod
        forget_work(database)
        pod = replace(pod, resource_version=pod.resource_version + 1, **seen)  # type: ignore[arg-type]
        observe(database, pod)
        return due(database) == {str(job.uid)}

    assert wakes(), "the pod is there"
    assert not wakes(node="n1"), "it was bound"
    assert wakes(phase="Running")
    assert not wakes(ready=True)
    assert not wakes()
    assert wakes(restarts=1)
    assert wakes(terminating=True)
    assert wakes(phase="Failed")
    assert not wakes(exit_codes={"c": 1})
    assert wakes(gone=True)


def test_jobs_of_all_pods_in_a_batch_are_woken_once(database: Database) -> None:
    made = [add_job(database, f"j{number}") for number in range(3)]
    rows = [row for job in made for row in plan(database, job, ("t", 0), ("t", 1))]
    forget_work(database)

    observe(database, *[sight(row, phase="Running") for row in rows[:4]])

    assert due(database) == {str(job.uid) for job in made[:2]}
    with database.transaction() as session:
        assert value(session, "select sum(wake_seq) from work") == 0


def test_observers_that_see_the_same_write_it_once(database: Database) -> None:
    job = add_job(database)
    rows = plan(database, job, *[("t", index) for index in range(30)])
    forget_work(database)
    ends = [
        sight(row, phase="Failed", exit_codes={"c": row.index}, resource_version=7)
        for row in rows
    ]
    barrier = threading.Barrier(3)
    failed: list[Exception] = []

    def run(order: list[PodSeen]) -> None:
        barrier.wait()
        try:
            for start in range(0, len(order), 10):
                observe(database, *order[start : start + 10])
        except Exception as error:
            failed.append(error)

    observers = [
        threading.Thread(target=run, args=(order,))
        for order in (ends, ends[::-1], ends[15:] + ends[:15])
    ]
    for observer in observers:
        observer.start()
    for observer in observers:
        observer.join()

    assert failed == []
    found = rows_of_order(database, job.uid)
    assert [row.exit_codes for row in found] == [{"c": index} for index in range(30)]
    assert {row.outcome for row in found} == {"Failed"}
    with database.transaction() as session:
        # Each batch that had news woke the job once; those without did not.
        assert value(session, "select max(wake_seq) from work") < 9


def test_confirmed_pods_that_are_not_listed_are_asked_after(database: Database) -> None:
    job = add_job(database)
    rows = running(database, job, *[("t", index) for index in range(4)])
    gone = after(database, sight(rows[3], phase="Failed", gone=True))
    planned, fresh = plan(database, job, ("u", 0), ("u", 1))
    confirm(database, fresh)
    listed = [str(rows[0].pod_uid)]

    def unseen(before: int = 2**62, after: UUID = FIRST, limit: int = 9) -> list[UUID]:
        with database.transaction() as session:
            found = observations.unseen(
                session, listed, before=before, after=after, limit=limit
            )
        assert all(one.pod_uid == f"pod-{one.uid}" for one in found)
        return [one.uid for one in found]

    wanted = sorted([rows[1].uid, rows[2].uid, fresh.uid])
    assert unseen() == wanted
    assert unseen(before=0) == [fresh.uid], "others were seen later than the list"
    assert unseen(limit=2) + unseen(after=wanted[1]) == wanted
    assert gone.uid not in unseen()
    assert planned.uid not in unseen()


def test_what_unseen_tells_is_enough_to_ask_kubernetes(database: Database) -> None:
    job = add_job(database)
    [row] = running(database, job, ("t", 0))

    with database.transaction() as session:
        [found] = observations.unseen(session, [], before=99, after=UUID(int=0), limit=9)

    assert found == Unseen(row.uid, "default", "j-t-0", f"pod-{row.uid}")


def test_lost_pods_count_as_ended_and_wake_their_jobs(database: Database) -> None:
    job = add_job(database)
    live, doomed, done = running(database, job, ("t", 0), ("t", 1), ("u", 0))
    doom(database, job, task="t", indices=None, beyond={"t": 1})
    done = after(database, sight(done, phase="Succeeded"))
    forget_work(database)

    with database.transaction() as session:
        observations.lost(session, [live.uid, doomed.uid, done.uid], at=THEN)

    rows = {(row.task, row.index): row for row in rows_of(database, job.uid)}
    assert [
        (rows[slot].outcome, rows[slot].handled) for slot in [("t", 0), ("t", 1), ("u", 0)]
    ] == [("Lost", False), ("Removed", True), ("Succeeded", True)]
    assert rows["t", 0].finished_at == THEN
    assert rows["u", 0].finished_at == done.finished_at
    assert all(row.gone_at is not None for row in rows.values())
    assert due(database) == {str(job.uid)}
    forget_work(database)
    with database.transaction() as session:
        observations.lost(session, [live.uid], at=THEN)
    assert due(database) == set()
