"""Who is looked at when, and what becomes of a job that cannot be looked at."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from hekla.domain.errors import InvalidError, UnavailableError
from hekla.lifecycle import repeating
from hekla.store import events, jobs, nudge as nudges, work
from hekla.store.database import Database, now
from hekla.store.dispatcher import Dispatcher
from hekla.store.nudge import Nudge
from hekla.store.work import Claim
from services.controller.passes import tell_owner
from tests.support.controller_scene import LEASE, Driver
from tests.support.store import add_job, due, value
from tests.support.waiting import wait_until

Together = Callable[[Sequence[Claim]], Sequence[Claim]]

SLACK_SECONDS = 2.0
"""Seconds that a look may take on a machine with much else to do."""


def make(
    database: Database,
    look: Callable[[Claim], object],
    *,
    workers: int = 2,
    requeues: int = 3,
    together: Together | None = None,
) -> Dispatcher:
    dispatcher, _ = make_hearing(
        database, look, workers=workers, requeues=requeues, together=together
    )
    return dispatcher


def make_hearing(
    database: Database,
    look: Callable[[Claim], object],
    *,
    workers: int = 2,
    requeues: int = 3,
    together: Together | None = None,
) -> tuple[Dispatcher, Nudge]:
    """A dispatcher, and by what it hears of changes once that runs."""
    nudge = Nudge(database.url)
    database.on_change(nudge.poke)
    dispatcher = Dispatcher(
        database,
        nudge,
        look,
        kinds=[jobs.KIND],
        workers=workers,
        max_requeues=requeues,
        lease=LEASE,
        tell=partial(tell_owner, failures=requeues),
        together=together,
    )
    return dispatcher, nudge


@contextmanager
def dispatching(dispatcher: Dispatcher) -> Iterator[None]:
    """Claims come, as in the service, until the block ends."""
    with (
        dispatcher.draining(),
        repeating("claims", dispatcher.claim_once, idle=timedelta(0)),
    ):
        yield


def work_row(database: Database, uid: UUID, what: str) -> Any:
    with database.transaction() as session:
        return value(session, f"select {what} from work where uid = :uid", {"uid": str(uid)})


def clock(database: Database) -> datetime:
    with database.transaction() as session:
        return now(session)


def wait_until_put_off(database: Database, uid: UUID, failures: int) -> datetime:
    """Until when it is put off after so many failures, none of which it gets over meanwhile."""

    def found() -> datetime | None:
        with database.transaction() as session:
            statement = "select not_before from work where uid = :uid and failures = :failures"
            values = {"uid": str(uid), "failures": failures}
            return session.execute(text(statement), values).scalar()

    return wait_until(found, what=f"failure {failures}")


def hurry(database: Database) -> None:
    """Nobody is put off any more."""
    with database.transaction() as session:
        session.execute(text("update work set not_before = null"))


def test_due_jobs_are_looked_at_and_then_forgotten(database: Database) -> None:
    driver = Driver(database)
    uids = {add_job(database, f"j{number}").uid for number in range(5)}

    with dispatching(make(database, driver.passes.run)):
        wait_until(lambda: due(database) == set(), what="every job to be looked at")

    for uid in uids:
        assert driver.job(uid).job.status.conditions
    with database.transaction() as session:
        assert value(session, "select count(*) from work") == 0


def test_jobs_that_are_due_together_are_looked_at_together(database: Database) -> None:
    driver = Driver(database)
    uids = {add_job(database, f"j{number}").uid for number in range(5)}
    alone, rounds = [], []

    def together(claims: Sequence[Claim]) -> Sequence[Claim]:
        rounds.append(len(claims))
        first, *others = claims
        return [first, *driver.rounds.look(others)]

    def look(claim: Claim) -> None:
        alone.append(UUID(claim.uid))
        driver.passes.run(claim)

    with dispatching(make(database, look, together=together)):
        wait_until(lambda: due(database) == set(), what="every job to be looked at")

    assert rounds == [5]
    assert len(alone) == 1
    for uid in uids:
        assert driver.job(uid).job.status.conditions
    with database.transaction() as session:
        assert value(session, "select count(*) from work") == 0


def test_jobs_that_cannot_be_looked_at_together_are_one_by_one(database: Database) -> None:
    driver = Driver(database)
    uids = {add_job(database, f"j{number}").uid for number in range(5)}

    def together(_: Sequence[Claim]) -> Sequence[Claim]:
        raise UnavailableError("the connection broke")

    # So few are under way at once that what is over must not count any more.
    with dispatching(make(database, driver.passes.run, workers=1, together=together)):
        wait_until(lambda: due(database) == set(), what="every job to be looked at")
        uids |= {add_job(database, f"k{number}").uid for number in range(5)}
        wait_until(lambda: due(database) == set(), what="the later ones to be looked at")

    for uid in uids:
        assert driver.job(uid).job.status.conditions


def test_a_job_that_failed_before_does_not_spoil_the_looks_of_others(
    database: Database,
) -> None:
    driver = Driver(database)
    bad, *good = (add_job(database, f"j{number}").uid for number in range(4))
    with database.transaction() as session:
        failed = text("update work set failures = 1 where uid = :uid")
        session.execute(failed, {"uid": str(bad)})
    seen: set[UUID] = set()

    def together(claims: Sequence[Claim]) -> Sequence[Claim]:
        seen.update(UUID(claim.uid) for claim in claims)
        return driver.rounds.look(claims)

    with dispatching(make(database, driver.passes.run, together=together)):
        wait_until(lambda: due(database) == set(), what="every job to be looked at")

    assert seen == set(good)
    assert driver.job(bad).job.status.conditions


def test_a_job_that_comes_later_is_looked_at_at_once(database: Database) -> None:
    seen = threading.Event()

    with dispatching(make(database, lambda _: seen.set())):
        add_job(database)

        assert seen.wait(20)


@pytest.mark.parametrize(
    ("error", "longest"),
    [
        pytest.param(RuntimeError("a fault of ours"), 60, id="an error that nobody expected"),
        pytest.param(InvalidError("no quantity"), 10, id="an object that cannot be read"),
        pytest.param(UnavailableError("no answer"), 10, id="something that is away"),
    ],
)
def test_one_job_that_cannot_be_looked_at_holds_up_no_other(
    database: Database, error: Exception, longest: float
) -> None:
    driver = Driver(database)
    bad = add_job(database, "bad").uid
    good = [add_job(database, f"good-{number}").uid for number in range(3)]

    may_fail = threading.Semaphore(0)

    def look(claim: Claim) -> None:
        if claim.uid == str(bad):
            may_fail.acquire(timeout=20)
            raise error
        driver.passes.run(claim)

    pauses = []
    with dispatching(make(database, look)):
        for tries in range(1, 10):
            began = clock(database)
            may_fail.release()
            pauses.append((wait_until_put_off(database, bad, tries) - began).total_seconds())
            hurry(database)
        wait_until(
            lambda: all(driver.job(uid).job.status.conditions for uid in good),
            what="the others to be looked at",
        )

    for tries, pause in enumerate(pauses):
        rule = min(0.5 * 2**tries, longest)
        assert rule <= pause < rule + SLACK_SECONDS


def test_the_owner_is_told_when_a_job_was_tried_many_times(database: Database) -> None:
    uid = add_job(database).uid

    may_fail = threading.Semaphore(0)

    def look(_: Claim) -> None:
        may_fail.acquire(timeout=20)
        raise RuntimeError("a fault of ours")

    def said() -> list[str]:
        with database.transaction() as session:
            return [event.reason for event in events.of_job(session, uid)]

    with dispatching(make(database, look, requeues=3)):
        for tries in range(1, 7):
            may_fail.release()
            wait_until_put_off(database, uid, tries)
            assert said() == ([] if tries < 3 else ["ControllerError"])
            hurry(database)


def test_a_job_that_vanished_while_it_failed_troubles_nobody(database: Database) -> None:
    uid = add_job(database).uid
    tries = Counter[str]()

    def look(claim: Claim) -> None:
        tries[claim.uid] += 1
        with database.transaction() as session:
            session.execute(text("delete from job"))
        raise RuntimeError("a fault of ours")

    with dispatching(make(database, look, requeues=1)):
        wait_until(lambda: tries[str(uid)], what="the look")
        other = add_job(database, "other").uid
        wait_until(lambda: tries[str(other)], what="the other look")


def test_on_the_way_out_passes_under_way_end_and_others_are_given_back(
    database: Database,
) -> None:
    uids = [add_job(database, f"j{number}").uid for number in range(6)]
    begun, go_on = threading.Semaphore(0), threading.Event()
    looked_at: list[str] = []

    def look(claim: Claim) -> None:
        begun.release()
        go_on.wait(10)
        looked_at.append(claim.uid)
        with database.transaction() as session:
            work.release(session, claim)

    stopping = dispatching(make(database, look, workers=2))
    stopping.__enter__()
    for _ in range(2):
        assert begun.acquire(timeout=10)
    wait_until(
        lambda: all(work_row(database, uid, "claim_token") for uid in uids),
        what="every job to be claimed",
    )
    leaving = threading.Thread(target=stopping.__exit__, args=(None, None, None))
    leaving.start()
    leaving.join(0.1)
    assert leaving.is_alive(), "it waits for the passes"
    go_on.set()
    leaving.join(10)

    assert not leaving.is_alive()
    assert len(looked_at) == 2
    assert due(database) == {str(uid) for uid in uids} - set(looked_at)
    with database.transaction() as session:
        claims = work.claim(session, [jobs.KIND], limit=10, lease=LEASE)
    assert len(claims) == 4, "others may take them at once"


def test_no_more_is_claimed_than_is_looked_at_soon(database: Database) -> None:
    for number in range(20):
        add_job(database, f"j{number}")
    go_on = threading.Event()

    def look(claim: Claim) -> None:
        go_on.wait(10)
        with database.transaction() as session:
            work.release(session, claim)

    def claimed() -> int:
        with database.transaction() as session:
            return int(
                value(session, "select count(*) from work where claim_token is not null")
            )

    with dispatching(make(database, look, workers=2)):
        wait_until(lambda: claimed() == 8, what="four for each worker to be claimed")
        go_on.set()
        wait_until(lambda: due(database) == set(), what="the rest to be looked at")


def test_what_is_put_off_is_looked_at_when_its_time_comes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nudges, "SELDOM_SECONDS", 600.0)  # nobody is found by polling
    add_job(database)
    looks = Counter[str]()

    def look(claim: Claim) -> None:
        looks[claim.uid] += 1
        with database.transaction() as session:
            if looks[claim.uid] < 3:
                work.fail(session, claim, backoff=timedelta(milliseconds=300))
            else:
                work.release(session, claim)

    dispatcher, nudge = make_hearing(database, look)
    with nudge.running():
        wait_until(lambda: nudge.patience == 600, what="its own voice to be heard")
        with dispatching(dispatcher):
            wait_until(lambda: max(looks.values(), default=0) == 3, what="the third look")
            nudge.hurry()

    assert due(database) == set()


def test_who_hears_of_changes_looks_seldom_by_itself(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    seldom = 4 * nudges.POLL_SECONDS
    monkeypatch.setattr(nudges, "SELDOM_SECONDS", seldom)
    dispatcher, nudge = make_hearing(database, lambda _: None)
    looked_at: list[float] = []

    def look() -> bool:
        looked_at.append(time.monotonic())
        return dispatcher.claim_once()

    with nudge.running():
        wait_until(lambda: nudge.patience == seldom, what="its own voice to be heard")
        with repeating("claims", look, idle=timedelta(0)):
            wait_until(lambda: len(looked_at) > 3, what="some looks")
            nudge.hurry()
        assert nudge.patience < seldom

    gaps = [later - earlier for earlier, later in itertools.pairwise(looked_at[:4])]
    assert max(gaps) >= seldom, "the first may be hurried by what was said before"
