"""Looks at several jobs in one transaction come to what looks at each come to."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from hekla import failpoint
from hekla.domain.phases import JobAction, JobPhase
from hekla.kube.requests import Reply
from hekla.store import attempts, events, history, jobs, pod_groups, work
from hekla.store.database import Database
from services.controller.rounds import ROOM
from tests.support.controller_scene import LEASE, Driver
from tests.support.factories import make_job, make_task, policies
from tests.support.store import value


def submit(driver: Driver, name: str, *tasks: Any, **spec: Any) -> UUID:
    uid = uuid4()
    with driver.database.transaction() as session:
        jobs.insert_many(session, [(uid, make_job(*tasks, name=name, **spec))])
    return uid


def let_in(driver: Driver, *uids: UUID) -> None:
    """Have jobs wait for nothing but their pods."""
    driver.look(*uids)
    for uid in uids:
        driver.admit(uid)


def said(driver: Driver, uid: UUID) -> list[tuple[str, str]]:
    with driver.database.transaction() as session:
        return [(event.reason, event.message) for event in events.of_job(session, uid)]


def rows(driver: Driver, uid: UUID) -> dict[str, Any]:
    """What is stored of a job, but for instants."""
    stored = driver.job(uid)
    with driver.database.transaction() as session:
        group = pod_groups.of_job(session, uid)
        counts = attempts.counts(session, uid)
    status = stored.job.status
    return {
        "phase": status.state.phase,
        "why": (status.state.reason, status.state.message),
        "conditions": [one.status for one in status.conditions or []],
        "counts": (status.pending, status.running, status.succeeded, status.failed),
        "counters": stored.counters,
        "times": (stored.started_at is not None, stored.finished_at is not None),
        "group": None if group is None else (group.phase, group.group.spec.min_member),
        "attempts": counts,
        "events": said(driver, uid),
        "work": work_of(driver, uid),
    }


def work_of(driver: Driver, uid: UUID) -> int:
    with driver.database.transaction() as session:
        found = value(session, "select count(*) from work where uid = :uid", {"uid": str(uid)})
        return int(found)


def test_jobs_live_together_as_they_live_alone(driver: Driver) -> None:
    alone = [submit(driver, f"a{number}", make_task("t", 2)) for number in range(3)]
    together = [submit(driver, f"b{number}", make_task("t", 2)) for number in range(3)]
    every = [*alone, *together]

    def look() -> None:
        driver.look(*alone)
        assert driver.look_together(*together) == set()
        wanted = rows(driver, alone[0])
        assert [rows(driver, uid) for uid in every] == [wanted] * 6

    look()
    for uid in every:
        driver.admit(uid)
    look()
    assert len(driver.names("Pending")) == 12
    driver.each("Pending", driver.pods.start)
    look()
    driver.each("Running", lambda name: driver.pods.end(name, 0))
    look()

    assert {driver.phase(uid) for uid in every} == {JobPhase.COMPLETED}
    assert len(driver.pods.created) == 12


def test_a_job_that_ended_before_it_was_seen_to_run_was_in_both_phases(
    driver: Driver,
) -> None:
    uids = [submit(driver, f"j{number}") for number in range(2)]
    driver.look_together(*uids)
    for uid in uids:
        driver.admit(uid)
    driver.look_together(*uids)
    driver.each("Pending", driver.pods.start)
    driver.each("Running", lambda name: driver.pods.end(name, 0))

    assert driver.look_together(*uids) == set()

    for uid in uids:
        found = rows(driver, uid)
        assert found["conditions"] == ["Pending", "Running", "Completed"]
        assert [reason for reason, _ in found["events"]][-2:] == ["Running", "Completed"]
        assert found["times"] == (True, True)
        assert (found["group"], found["work"]) == (None, 0)


def special(driver: Driver, what: str) -> UUID:
    """A job that wants a look of its own."""
    tasks = [make_task("t", ROOM)] if what == "many pods" else []
    hears = policies(("PodFailed", "RestartJob")) if what == "a failure" else None
    uid = submit(driver, "special", *tasks, policies=hears)
    let_in(driver, uid)
    if what in ("many pods", "a refusal"):
        return uid
    driver.look(uid)
    driver.each("Pending", driver.pods.start)
    if what == "a failure":
        driver.each("Running", lambda name: driver.pods.end(name, 1))
    elif what == "a command":
        driver.ask(uid, JobAction.ABORT_JOB)
    elif what == "its deletion":
        with driver.database.transaction() as session:
            jobs.mark_deleting(session, uid)
    return uid


@pytest.mark.parametrize(
    "what", ["many pods", "a refusal", "a failure", "a command", "its deletion"]
)
def test_a_job_with_something_special_about_it_is_left_for_a_look_of_its_own(
    driver: Driver, what: str
) -> None:
    uid = special(driver, what)
    plain = submit(driver, "plain")
    before = rows(driver, uid) | {"work": 1}
    if what == "a refusal":
        refusal = Reply(403, None, "Forbidden", "exceeded quota")
        driver.pods.refuse = lambda _: refusal

    assert driver.look_together(uid, plain) == {uid}

    assert driver.job(plain).job.status.conditions, "the other one was looked at"
    after = rows(driver, uid)
    if what == "a refusal":  # known once it was tried
        assert after["attempts"].by_task == {"t": {"Planned": 1}}
    else:
        assert after == before
    driver.look(uid)
    assert rows(driver, uid) != before


def test_jobs_that_are_gone_or_claimed_by_others_are_left_alone(driver: Driver) -> None:
    gone, taken, plain = uuid4(), submit(driver, "taken"), submit(driver, "plain")
    claims = driver.claim(gone, taken, plain)
    driver.claim(taken)

    left = driver.rounds.look(claims)

    assert {UUID(claim.uid) for claim in left} == {gone, taken}
    assert not driver.job(taken).job.status.conditions
    assert driver.job(plain).job.status.conditions
    for claim in left:
        driver.passes.run(claim)
    assert not driver.job(taken).job.status.conditions
    assert work_of(driver, gone) == 0


@pytest.mark.parametrize(
    "where", ["controller.commit-unknown", "controller.recorded", "controller.acted"]
)
def test_what_a_round_recorded_and_did_not_do_is_done_by_the_next_looks(
    driver: Driver, where: str
) -> None:
    uids = [submit(driver, f"j{number}") for number in range(3)]
    let_in(driver, *uids)

    with failpoint.armed(f"{where}=raise"), pytest.raises(failpoint.FailpointError):
        driver.look_together(*uids)

    assert all(work_of(driver, uid) for uid in uids), "they are still claimed"
    driver.look(*uids)
    assert len(driver.pods.created) == 3
    driver.each("Pending", driver.pods.start)
    driver.look(*uids)
    assert {driver.phase(uid) for uid in uids} == {JobPhase.RUNNING}


def test_a_job_woken_while_its_pods_are_made_is_looked_at_again(
    driver: Driver, database: Database
) -> None:
    uids = [submit(driver, f"j{number}") for number in range(2)]
    let_in(driver, *uids)

    def wake(_: object) -> None:
        with database.transaction() as session:
            work.wake(session, jobs.KIND, str(uids[0]), urgent=True)

    driver.pods.refuse = wake
    assert driver.look_together(*uids) == set()

    with database.transaction() as session:
        claims = work.claim(session, [jobs.KIND], limit=9, lease=LEASE)
    assert [claim.uid for claim in claims] == [str(uids[0])]


def test_a_job_that_is_to_go_at_once_when_it_ends_is_seen_to_end(driver: Driver) -> None:
    uids = [submit(driver, f"j{number}", ttlSecondsAfterFinished=0) for number in range(2)]
    let_in(driver, *uids)
    driver.look(*uids)
    driver.each("Pending", driver.pods.start)
    driver.each("Running", lambda name: driver.pods.end(name, 0))

    for _ in range(3):
        driver.look(*driver.look_together(*uids))
        driver.observe()

    with driver.database.transaction() as session:
        for uid in uids:
            past = history.job(session, uid=uid)
            assert past.status.state.phase == JobPhase.COMPLETED
