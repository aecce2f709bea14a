"""The feed: each change once, each object in order, whatever writers and readers do."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from sqlalchemy import text

from hekla.domain.errors import CursorExpiredError, UnavailableError
from hekla.store import feed
from hekla.store.database import Database, Session
from hekla.store.feed import BEGINNING, Batch, Change, Cursor
from tests.support.feed_writers import Told, Writers
from tests.support.postgres import Server
from tests.support.store import value


def start(database: Database) -> Cursor:
    with database.transaction() as session:
        return feed.start(session)


def since(database: Database, cursor: Cursor) -> Batch:
    with database.transaction() as session:
        return feed.since(session, cursor)


def say(session: Session, uid: str, version: int = 1) -> None:
    """Record a change now, not only when the transaction ends."""
    feed.record(session, Change("thing", uid, version, feed.MODIFIED))
    session.execute(text("select"))


def uids(batch: Batch) -> list[str]:
    return [change.uid for change in batch.changes]


def age_everything(database: Database) -> None:
    """Move what was recorded to the partition that is emptied next."""
    with database.transaction() as session:
        slot = value(session, feed._NEXT_SLOT.text)
        session.execute(text("update change set slot = :slot"), {"slot": slot})


def turn(database: Database) -> bool:
    with database.transaction() as session:
        return feed.turn(session)


@contextmanager
def open_elsewhere(postgres: Server) -> Iterator[psycopg.Connection]:
    """A transaction that has an xid, in another database of the server."""
    with psycopg.connect(postgres.url("postgres")) as connection:
        connection.execute("select pg_current_xact_id()")
        yield connection


def test_changes_come_once_and_with_all_that_was_recorded(database: Database) -> None:
    cursor = start(database)
    last = {"a": [1, None], "b": 2**63}
    with database.transaction() as session:
        feed.record(session)
        feed.record(
            session,
            Change("thing", "a", 1, feed.ADDED),
            Change("thing", "b", 7, feed.DELETED, last),
        )
        xid = int(value(session, "select pg_current_xact_id()::text"))

    batch = since(database, cursor)

    assert batch.changes == [
        Change("thing", "a", 1, feed.ADDED, None, xid),
        Change("thing", "b", 7, feed.DELETED, last, xid),
    ]
    assert uids(since(database, batch.cursor)) == []
    assert uids(since(database, cursor)) == ["a", "b"], "from one place one reads the same"


def test_a_slow_writer_is_neither_lost_nor_waited_for(database: Database) -> None:
    cursor = start(database)

    with database.transaction() as slow:
        say(slow, "slow")
        with database.transaction() as quick:
            say(quick, "quick")
        first = since(database, cursor)
    second = since(database, first.cursor)
    third = since(database, second.cursor)

    assert (uids(first), uids(second), uids(third)) == (["quick"], ["slow"], [])


def test_versions_are_in_order_though_the_later_one_has_the_earlier_xid(
    database: Database,
) -> None:
    writers = Writers(database, objects=1, seed=0)
    uid = writers.add("q000")
    cursor = start(database)

    with database.transaction() as early:
        early.execute(text("select pg_current_xact_id()"))
        writers.add("q000")
        between = since(database, cursor)
        writers.touch(early, ["q000"])
    after = since(database, between.cursor)
    everything = since(database, cursor)

    assert [(one.uid, one.version) for one in between.changes] == [(uid, 2)]
    assert [(one.uid, one.version) for one in after.changes] == [(uid, 3)]
    assert [one.version for one in everything.changes] == [2, 3]
    assert everything.changes[0].xid > everything.changes[1].xid


def test_what_was_taken_back_is_not_told(database: Database) -> None:
    cursor = start(database)

    with database.transaction() as session:
        say(session, "kept")
        lost = session.begin_nested()
        say(session, "lost")
        lost.rollback()
        kept = session.begin_nested()
        say(session, "kept too")
        kept.commit()

    assert uids(since(database, cursor)) == ["kept", "kept too"]


def test_a_transaction_open_elsewhere_holds_nothing_up(
    database: Database, postgres: Server
) -> None:
    with open_elsewhere(postgres):
        cursor = start(database)
        with database.transaction() as session:
            say(session, "a")
        first = since(database, cursor)
        second = since(database, first.cursor)

    assert (uids(first), uids(second)) == (["a"], [])


def test_each_change_is_read_once_and_in_order_whatever_writers_do(
    database: Database, postgres: Server
) -> None:
    writers = Writers(database, objects=40, seed=1)
    cursor = start(database)
    done = threading.Event()
    read: list[list[Told]] = [[], []]
    errors: list[Exception] = []

    def follow(number: int) -> None:
        dice = random.Random(number)
        at = cursor
        finishing = False
        try:
            while not finishing:
                finishing = done.is_set()
                batch = since(database, at)
                if dice.random() < 0.2 and not finishing:
                    continue  # it died before it noted the cursor
                read[number] += [Told(one.uid, one.version, one.type) for one in batch.changes]
                at = Cursor.parse(str(batch.cursor))
        except Exception as error:
            errors.append(error)

    with open_elsewhere(postgres):
        writing = writers.run(threads=4, transactions=60)
        reading = [threading.Thread(target=follow, args=(number,)) for number in range(2)]
        for thread in reading:
            thread.start()
        for thread in writing:
            thread.join()
        done.set()
        for thread in reading:
            thread.join()

    assert (writers.errors, errors) == ([], [])
    assert len(writers.told) > 400
    for found in read:
        assert sorted(found) == sorted(writers.told), "each change once"
        newest: dict[str, int] = {}
        for one in found:
            assert one.version == newest.get(one.uid, 0) + 1, "in order, without a gap"
            newest[one.uid] = one.version


def test_a_cursor_of_another_store_is_refused(database: Database) -> None:
    cursor = start(database)
    other = cursor._replace(incarnation=uuid4())

    for read in (feed.since, feed.check):
        with database.transaction() as session:
            with pytest.raises(CursorExpiredError, match="of another store"):
                read(session, other)
            read(session, cursor)


def test_a_cursor_from_the_future_of_a_store_that_was_set_back_is_refused(
    database: Database,
) -> None:
    here = start(database)
    low, high, _ = here.snapshot.split(":")
    ahead = here._replace(snapshot=f"{low}:{int(high) + 1_000_000}:")

    for read in (feed.since, feed.check):
        with (
            database.transaction() as session,
            pytest.raises(CursorExpiredError, match="of another store"),
        ):
            read(session, ahead)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    numbers=st.lists(
        st.integers(0, 3) | st.integers(2**63 - 2, 2**63 + 2) | st.integers(700, 3000),
        min_size=2,
        max_size=6,
    ),
    ours=st.booleans(),
)
def test_postgres_reads_every_cursor_that_is_taken_for_one(
    database: Database, numbers: list[int], *, ours: bool
) -> None:
    with database.transaction() as session:
        incarnation: UUID = value(session, "select incarnation from store")
        low, high, *running = sorted(numbers[:2]) + sorted(numbers[2:])
        name = incarnation if ours else uuid4()
        words = f"{name.hex}:{low}:{high}:{','.join(map(str, running))}"
        for read in (feed.since, feed.check):
            try:
                read(session, Cursor.parse(words))
            except CursorExpiredError:
                assert not (ours and words == str(feed.start(session)))


def test_the_ring_turns_and_who_missed_something_is_told(database: Database) -> None:
    before = start(database)
    with database.transaction() as session:
        say(session, "old")
    between = start(database)
    with database.transaction() as session:
        say(session, "new")
    read = since(database, before).cursor
    age_everything(database)

    assert turn(database)
    assert not turn(database), "it is empty"

    for lost in (before, between):
        for reader in (feed.since, feed.check):
            with (
                database.transaction() as session,
                pytest.raises(CursorExpiredError, match="too old"),
            ):
                reader(session, lost)
    assert uids(since(database, read)) == [], "who had read everything missed nothing"
    with database.transaction() as session:
        say(session, "later")
    assert uids(since(database, read)) == ["later"]


def test_only_the_partition_that_comes_next_is_emptied(database: Database) -> None:
    cursor = start(database)
    with database.transaction() as session:
        slot = value(session, feed._NEXT_SLOT.text)
        for other in range(feed.SLOTS):
            say(session, f"{other}")
            session.execute(
                text("update change set slot = :slot where uid = :uid"),
                {"slot": other, "uid": f"{other}"},
            )
    read = since(database, cursor).cursor

    assert turn(database)

    with database.transaction() as session:
        left = set(session.scalars(text("select slot from change")))
    assert left == set(range(feed.SLOTS)) - {slot}
    assert uids(since(database, read)) == []


def test_a_long_transaction_elsewhere_does_not_make_cursors_too_old(
    database: Database, postgres: Server
) -> None:
    with open_elsewhere(postgres):
        cursor = start(database)
        with database.transaction() as session:
            say(session, "old")
        age_everything(database)
        later = start(database)

        assert turn(database)

        assert uids(since(database, later)) == []
        with pytest.raises(CursorExpiredError):
            since(database, cursor)


def test_the_ring_does_not_turn_over_a_writer_that_is_not_done(database: Database) -> None:
    with database.transaction() as session:
        say(session, "old")
    age_everything(database)

    with database.transaction() as session:
        slot = value(session, feed._NEXT_SLOT.text)
        session.execute(
            text(
                "insert into change (slot, kind, uid, version, type)"
                " values (:slot, 'thing', 'late', 1, 'MODIFIED')"
            ),
            {"slot": slot},
        )
        cursor = start(database)
        with pytest.raises(UnavailableError, match="took too long"):
            turn(database)

    assert uids(since(database, cursor)) == ["late"]


def test_who_is_very_far_behind_lists_instead(database: Database) -> None:
    cursor = start(database)
    with database.transaction() as session:
        for uid in ("a", "b", "c"):
            say(session, uid)

    with database.transaction() as session:
        assert uids(feed.since(session, cursor, most=3)) == ["a", "b", "c"]
        with pytest.raises(CursorExpiredError, match="more than 2 changes"):
            feed.since(session, cursor, most=2)


def test_the_beginning_is_no_place_to_read_on_from(database: Database) -> None:
    assert Cursor.parse("") == BEGINNING
    assert str(Cursor.parse(str(start(database)))) == str(start(database))


def test_a_read_looks_only_at_what_is_new(database: Database) -> None:
    with database.transaction() as session:
        session.execute(
            text(
                "insert into change (slot, kind, uid, version, type)"
                " select i % 4, 'thing', i::text, 1, 'MODIFIED'"
                " from generate_series(1, 20000) i"
            )
        )
    with database.transaction() as slow:
        say(slow, "slow")
        with database.transaction() as session:
            say(session, "new")
        cursor = start(database)
        with database.transaction() as session:
            say(session, "newer")
    with database.transaction() as session:
        plan = session.scalars(
            text("explain (analyze, costs off, timing off) " + feed._SINCE.text),
            {"snapshot": cursor.snapshot, "limit": 10},
        ).all()

    assert not [line for line in plan if "Seq Scan on change" in line], "\n".join(plan)
    assert uids(since(database, cursor)) == ["slow", "newer"]


def test_the_age_of_the_oldest_transaction_is_known(
    database: Database, postgres: Server
) -> None:
    with open_elsewhere(postgres), database.transaction() as session:
        assert feed.oldest_transaction_seconds(session) > 0
