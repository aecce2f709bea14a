"""The work queue: nothing is looked at twice at once, and no wake is lost."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import text

from hekla.domain.errors import ConflictError
from hekla.store import jobs, work
from hekla.store.database import Database, now
from hekla.store.work import Claim
from tests.support.store import MINUTE, add_job, due, value, wait_for_waiting

EXPIRED = timedelta(seconds=-1)
HOUR = timedelta(hours=1)
KIND = "thing"


def wake(database: Database, *uids: str, **how: object) -> None:
    with database.transaction() as session:
        work.wake(session, KIND, *(uids or ("a",)), **how)  # type: ignore[arg-type]


def claim(database: Database, *, limit: int = 10, lease: timedelta = MINUTE) -> Sequence[Claim]:
    with database.transaction() as session:
        return work.claim(session, [KIND], limit=limit, lease=lease)


def hold(database: Database, claim: Claim, **how: timedelta) -> None:
    with database.transaction() as session:
        work.hold(session, claim, **how)


def release(database: Database, claim: Claim, **how: object) -> None:
    with database.transaction() as session:
        work.release(session, claim, **how)  # type: ignore[arg-type]


def fail(database: Database, claim: Claim, backoff: timedelta) -> None:
    with database.transaction() as session:
        work.fail(session, claim, backoff=backoff)


def test_a_look_that_is_over_leaves_nothing_behind(database: Database) -> None:
    wake(database)
    [claimed] = claim(database)

    release(database, claimed)

    assert claim(database) == []
    with database.transaction() as session:
        assert value(session, "select count(*) from work") == 0


def test_only_kinds_that_were_asked_for_are_claimed(database: Database) -> None:
    wake(database)

    with database.transaction() as session:
        assert work.claim(session, ["other"], limit=9, lease=MINUTE) == []
        assert len(work.claim(session, ["other", KIND], limit=9, lease=MINUTE)) == 1


def test_what_has_been_due_longest_is_claimed_first_and_no_more_than_asked(
    database: Database,
) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    for uid, minutes in (("late", 30), ("first", 0), ("second", 10)):
        wake(database, uid, due_at=moment + timedelta(minutes=minutes))

    first, rest = claim(database, limit=2), claim(database, limit=2)

    assert {one.uid for one in first} == {"first", "second"}
    assert [one.uid for one in rest] == ["late"]


def test_nothing_is_claimed_before_its_time(database: Database) -> None:
    with database.transaction() as session:
        later = now(session) + HOUR

    wake(database, due_at=later)
    assert claim(database) == []

    wake(database)
    assert len(claim(database)) == 1, "an earlier reason counts"


def test_workers_at_the_same_time_never_share_an_object(database: Database) -> None:
    wake(database, *(f"o{number}" for number in range(400)))
    taken: Counter[str] = Counter()
    lock = threading.Lock()

    def take() -> None:
        while claims := claim(database, limit=7):
            with lock:
                taken.update(one.uid for one in claims)
            for one in claims:
                release(database, one)

    workers = [threading.Thread(target=take) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert len(taken) == 400
    assert set(taken.values()) == {1}


def test_a_wake_during_a_look_is_not_lost(database: Database) -> None:
    wake(database)
    [claimed] = claim(database)

    wake(database)
    assert claim(database) == [], "somebody is looking"
    release(database, claimed)

    assert [again.uid for again in claim(database)] == ["a"]


def test_a_wake_during_a_look_is_not_lost_behind_a_timer(database: Database) -> None:
    wake(database)
    [claimed] = claim(database)

    wake(database)
    release(database, claimed, due_at=datetime(2099, 1, 1, tzinfo=UTC))

    assert len(claim(database)) == 1


def test_who_lost_a_claim_can_neither_record_nor_release(database: Database) -> None:
    wake(database)
    [slow] = claim(database, lease=EXPIRED)
    [quick] = claim(database)

    with pytest.raises(ConflictError, match="claim on thing a was lost"):
        hold(database, slow)
    with pytest.raises(ConflictError):
        hold(database, slow, renew=MINUTE)
    release(database, slow)
    release(database, slow, due_at=datetime(2020, 1, 1, tzinfo=UTC))
    fail(database, slow, timedelta(0))

    assert claim(database) == [], "the quick worker's claim still stands"
    hold(database, quick)


def test_a_claim_that_expired_and_nobody_took_still_counts(database: Database) -> None:
    wake(database)
    [slow] = claim(database, lease=EXPIRED)

    hold(database, slow)
    release(database, slow)

    assert claim(database) == []


def test_who_holds_a_claim_is_told_the_time_it_counts_by(database: Database) -> None:
    wake(database)
    [claimed] = claim(database)

    with database.transaction() as session:
        before = now(session)
        assert before <= work.hold(session, claimed) <= now(session)


def test_a_renewed_claim_is_not_taken(database: Database) -> None:
    wake(database)
    [claimed] = claim(database, lease=EXPIRED)

    hold(database, claimed, renew=MINUTE)

    assert claim(database) == []


def test_nobody_takes_a_claim_while_its_holder_records(database: Database) -> None:
    wake(database)
    [slow] = claim(database, lease=EXPIRED)

    with database.transaction() as session:
        work.hold(session, slow)
        assert claim(database) == [], "it is skipped, not waited for"

    assert len(claim(database)) == 1


def test_a_wake_does_not_wait_for_a_pass_that_records(database: Database) -> None:
    wake(database)
    [claimed] = claim(database)

    with database.transaction() as session:
        work.hold(session, claimed, renew=MINUTE)
        with database.transaction() as other:
            other.execute(text("set local lock_timeout = '1s'"))
            work.wake(other, KIND, "a")
        work.release(session, claimed)

    assert len(claim(database)) == 1


def test_a_pass_and_a_deletion_that_cross_do_not_stop_each_other(database: Database) -> None:
    stored = add_job(database)
    with database.transaction() as session:
        [claimed] = work.claim(session, [jobs.KIND], limit=1, lease=MINUTE)
    deleted: list[int] = []

    def delete() -> None:
        with database.transaction() as session:
            deleted.append(jobs.mark_deleting(session, stored.uid).version)

    with database.transaction() as session:
        work.hold(session, claimed, renew=MINUTE)
        jobs.record(
            session, stored, status=stored.job.status, counters={"evictions": 1},
            started_at=None, finished_at=None,
        )  # fmt: skip
        deleting = threading.Thread(target=delete)
        deleting.start()
        wait_for_waiting(database)
        work.release(session, claimed)
    deleting.join()

    assert deleted == [3]
    assert due(database) == {str(stored.uid)}


def test_a_wake_does_not_undo_a_back_off(database: Database) -> None:
    wake(database)
    [claimed] = claim(database)

    fail(database, claimed, HOUR)
    wake(database)

    assert claim(database) == []


@pytest.mark.parametrize("when", ["after the failure", "during the look"])
def test_an_urgent_wake_ends_a_back_off(database: Database, when: str) -> None:
    wake(database)
    [claimed] = claim(database)

    if when == "during the look":
        wake(database, urgent=True)
    fail(database, claimed, HOUR)
    if when == "after the failure":
        wake(database, urgent=True)

    [again] = claim(database)
    assert again.failures == 1
    fail(database, again, HOUR)
    assert claim(database) == [], "it was urgent once"


def test_an_object_that_is_woken_all_the_time_rests_between_looks(database: Database) -> None:
    wake(database)
    [claimed] = claim(database)

    wake(database)
    release(database, claimed, rest=HOUR)
    wake(database)

    assert claim(database) == []


def test_an_urgent_wake_during_a_look_is_not_put_to_rest(database: Database) -> None:
    wake(database)
    [claimed] = claim(database)

    wake(database, urgent=True)
    wake(database)
    release(database, claimed, rest=HOUR)

    assert len(claim(database)) == 1


def test_failures_are_counted_until_a_look_goes_well(database: Database) -> None:
    wake(database)
    for failures in range(3):
        [claimed] = claim(database)
        assert claimed.failures == failures
        fail(database, claimed, timedelta(0))
    [claimed] = claim(database)
    wake(database)
    release(database, claimed)

    [claimed] = claim(database)
    assert claimed.failures == 0


def test_a_released_object_is_looked_at_again_at_its_time(database: Database) -> None:
    wake(database)
    [claimed] = claim(database)
    release(database, claimed, due_at=datetime(2099, 1, 1, tzinfo=UTC))
    assert claim(database) == []

    wake(database)
    [claimed] = claim(database)
    release(database, claimed, due_at=datetime(2020, 1, 1, tzinfo=UTC))

    assert len(claim(database)) == 1


def test_a_reason_that_is_taken_back_wakes_nobody(database: Database) -> None:
    def give() -> None:
        with database.transaction() as session:
            work.wake(session, KIND, "a")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        give()

    assert claim(database) == []


def test_wakes_of_the_same_objects_in_any_order_do_not_wait_in_a_circle(
    database: Database,
) -> None:
    uids = [f"o{number:03}" for number in range(50)]
    failed: list[Exception] = []

    def wake_often(order: list[str]) -> None:
        try:
            for _ in range(20):
                wake(database, *order)
        except Exception as error:
            failed.append(error)

    workers = [
        threading.Thread(target=wake_often, args=(order,))
        for order in (uids, uids[::-1], uids[25:] + uids[:25])
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert failed == []
    with database.transaction() as session:
        assert value(session, "select sum(wake_seq) from work") == 50 * (60 - 1)


def test_what_is_due_is_counted_and_the_oldest_timed(database: Database) -> None:
    with database.transaction() as session:
        assert work.depth(session, [KIND]) == (0, 0.0)
        moment = now(session)
    wake(database, "a", due_at=moment - MINUTE)
    wake(database, "b")
    wake(database, "c", due_at=moment + HOUR)

    with database.transaction() as session:
        count, seconds = work.depth(session, [KIND])
        assert work.depth(session, ["other"]) == (0, 0.0)

    assert count == 2
    assert 60 <= seconds < 120


@pytest.mark.parametrize(
    ("due_at", "not_before"),
    [
        pytest.param("-1 hour", "1 hour", id="held back"),
        pytest.param("1 hour", None, id="not due"),
    ],
)
def test_a_claim_looks_only_at_what_it_may_take(
    database: Database, due_at: str, not_before: str | None
) -> None:
    with database.transaction() as session:
        session.execute(
            text(
                "insert into work (kind, uid, due_at, not_before)"
                " select :kind, 'o' || i, clock_timestamp() + cast(:due_at as interval),"
                " clock_timestamp() + cast(:not_before as interval)"
                " from generate_series(1, 5000) i"
            ),
            {"kind": KIND, "due_at": due_at, "not_before": not_before},
        )
    wake(database)

    with database.transaction() as session:
        session.execute(text("set local enable_seqscan = off"))
        session.execute(text("set local enable_bitmapscan = off"))
        plan = session.scalars(
            text("explain (analyze, costs off, timing off) " + work._CLAIM.text),
            {"kinds": [KIND], "limit": 10, "lease": MINUTE, "token": uuid4()},
        ).all()

    looked_at = [int(line.split(":")[1]) for line in plan if "Rows Removed" in line]
    assert sum(looked_at) < 10, "\n".join(plan)
