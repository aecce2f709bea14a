"""Passes over jobs that end, are removed, come again under their name, or are not theirs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from hekla.domain.errors import AlreadyExistsError, NotFoundError
from hekla.domain.phases import JobAction, JobPhase
from hekla.store import history, jobs, pod_groups, work
from hekla.store.database import Database
from hekla.store.jobs import StoredJob
from services.controller.passes import Outcome
from tests.support.controller_scene import LEASE, Driver
from tests.support.factories import make_task
from tests.support.passes import EVICTED_ENDS_IT, delete, said, submit
from tests.support.pod_api import Pod
from tests.support.store import value

# The end.


def shown(driver: Driver, uid: UUID) -> StoredJob:
    return driver.job(uid)


@pytest.mark.parametrize(
    ("codes", "phase"), [((0, 0, 0), JobPhase.COMPLETED), ((0, 1, 0), JobPhase.FAILED)]
)
def test_a_finished_job_is_not_touched_again(
    driver: Driver, codes: Sequence[int], phase: JobPhase
) -> None:
    uid = submit(driver, make_task("t", 3))
    driver.start(uid)
    for name, code in zip(driver.names("Running"), codes, strict=True):
        driver.pods.end(name, code)
    driver.observe()
    for _ in range(3):
        driver.look(uid)
    ended = shown(driver, uid)

    for _ in range(10):
        assert driver.look(uid) == [Outcome.DONE]
    driver.observer.take(driver.pods.relist())
    driver.look(uid)

    status = ended.job.status
    counts = (status.succeeded or 0, status.failed or 0, status.running or 0)
    assert driver.phase(uid) is phase
    assert counts == (codes.count(0), 3 - codes.count(0), 0)
    assert status.running_duration
    assert [one.status for one in status.conditions or ()][-1] == phase
    assert shown(driver, uid) == ended


@pytest.mark.parametrize(
    ("action", "phase"),
    [
        (JobAction.ABORT_JOB, JobPhase.ABORTED),
        (JobAction.TERMINATE_JOB, JobPhase.TERMINATED),
        (JobAction.COMPLETE_JOB, JobPhase.COMPLETED),
    ],
)
def test_a_job_that_is_stopped_keeps_what_ended_by_itself(
    driver: Driver, action: JobAction, phase: JobPhase
) -> None:
    uid = submit(driver, make_task("t", 3), minSuccess=3)
    driver.start(uid)
    driver.pods.end("j-t-0", 0)
    driver.observe()
    driver.ask(uid, action)
    driver.look(uid)
    driver.stop_pods(uid)
    for _ in range(3):
        driver.look(uid)

    assert driver.phase(uid) is phase
    assert driver.job(uid).job.status.succeeded == 1
    assert driver.names() == ["j-t-0"]
    with driver.database.transaction() as session:
        assert pod_groups.of_job(session, uid) is None


def test_a_job_lives_as_long_after_its_end_as_it_says(driver: Driver) -> None:
    now, later = (
        submit(driver, ttlSecondsAfterFinished=0),
        submit(driver, name="later", ttlSecondsAfterFinished=30),
    )
    never = submit(driver, name="never")
    for uid in (now, later, never):
        driver.start(uid)
        driver.end(uid)
        driver.look(uid)
    driver.stop_pods(now)

    with driver.database.transaction() as session:
        assert history.job(session, uid=now).status.state.phase == JobPhase.COMPLETED
    driver.look(later)
    ended = driver.job(later).finished_at
    assert ended is not None
    with driver.database.transaction() as session:
        assert value(session, "select due_at from work") == ended + timedelta(seconds=30)
        session.execute(text("update job set finished_at = finished_at - interval '30 s'"))
    driver.look(later, never)
    driver.stop_pods(later)
    with pytest.raises(NotFoundError):
        driver.job(later)
    assert driver.phase(never) is JobPhase.COMPLETED


def test_a_job_that_has_not_ended_is_never_too_old(driver: Driver) -> None:
    uid = submit(driver, ttlSecondsAfterFinished=0)
    driver.start(uid)
    driver.ask(uid, JobAction.ABORT_JOB)
    driver.look(uid)
    driver.stop_pods(uid)

    driver.look(uid)

    assert driver.phase(uid) is JobPhase.ABORTED, "it may be resumed"


def test_a_clock_that_was_wrong_deletes_nothing_early(driver: Driver) -> None:
    uid = submit(driver, ttlSecondsAfterFinished=1)
    driver.start(uid)
    driver.end(uid)
    driver.look(uid)
    ahead = datetime.now(UTC) + timedelta(minutes=10)
    with driver.database.transaction() as session:
        session.execute(text("update job set finished_at = :at"), {"at": ahead})

    driver.look(uid)

    assert driver.phase(uid) is JobPhase.COMPLETED


# Jobs that come and go.


def test_a_new_job_knows_nothing_of_an_old_one_of_its_name(driver: Driver) -> None:
    old = submit(driver, make_task("t", 3), policies=EVICTED_ENDS_IT)
    driver.start(old)
    delete(driver, old)
    driver.look(old)
    with pytest.raises(AlreadyExistsError):
        submit(driver, make_task("t", 3), policies=EVICTED_ENDS_IT)
    last_words = list(driver.pods.events)
    driver.stop_pods(old)

    new = submit(driver, make_task("t", 3), policies=EVICTED_ENDS_IT)
    driver.start(new)
    driver.observer.take(last_words)
    driver.observer.take(last_words)
    driver.look(new)

    status = driver.job(new).job.status
    assert (status.state.phase, status.running) == ("Running", 3)
    assert (status.retry_count, status.version) == (0, 0)
    assert driver.names("Running") == ["j-t-0", "j-t-1", "j-t-2"]


def test_news_of_a_removed_jobs_pods_make_nothing(driver: Driver) -> None:
    uid = submit(driver)
    driver.start(uid)
    driver.pods.end("j-t-0", 0)
    update = driver.pods.take_events()
    delete(driver, uid)
    driver.look(uid)
    driver.pods.mark_deleted("j-t-0")
    driver.observe()
    driver.look(uid)
    assert driver.look(uid) == [Outcome.GONE]
    made = len(driver.pods.created)

    driver.observer.take(update)
    driver.observer.take(driver.pods.relist())
    with driver.database.transaction() as session:
        claims = work.claim(session, [jobs.KIND], limit=10, lease=LEASE)
    for claim in claims:
        driver.passes.run(claim)

    assert len(driver.pods.created) == made
    assert driver.names() == []


def test_a_pass_over_a_job_that_vanished_ends_quietly(
    driver: Driver, database: Database
) -> None:
    assert driver.look(uuid4()) == [Outcome.GONE]

    with database.transaction() as session:
        assert value(session, "select count(*) from work") == 0


def test_who_lost_the_claim_writes_nothing(driver: Driver) -> None:
    uid = submit(driver)
    with driver.database.transaction() as session:
        [slow] = work.claim(session, [jobs.KIND], limit=1, lease=timedelta(0))
    with driver.database.transaction() as session:
        [quick] = work.claim(session, [jobs.KIND], limit=1, lease=LEASE)

    assert driver.passes.run(slow) is Outcome.LOST
    assert said(driver, uid) == []
    with driver.database.transaction() as session:
        assert pod_groups.of_job(session, uid) is None
    assert driver.passes.run(quick) is Outcome.DONE


def test_a_look_that_was_wanted_meanwhile_is_not_lost(driver: Driver) -> None:
    uid = submit(driver)
    driver.look(uid)
    driver.admit(uid)

    def wake(_: Pod) -> None:
        with driver.database.transaction() as session:
            work.wake(session, jobs.KIND, str(uid))

    driver.pods.refuse = wake
    driver.look(uid)

    with driver.database.transaction() as session:
        assert value(session, "select claim_token is null from work")
