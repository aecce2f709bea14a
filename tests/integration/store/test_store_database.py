"""Transactions, and what callers are told when Postgres fails them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from uuid import uuid4

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import IntegrityError, InternalError

from hekla.domain.errors import ConflictError, NotFoundError, UnavailableError
from hekla.domain.names import Key
from hekla.store import database as databases, feed, jobs, requests, work
from hekla.store.database import Database, Session
from hekla.store.feed import Change
from hekla.store.requests import RequestKey
from tests.support.cut import Loss, Proxy
from tests.support.objects import make_job
from tests.support.postgres import Server
from tests.support.store import value, wait_for_waiting
from tests.support.waiting import wait_until


@pytest.fixture
def small(database: Database) -> Iterator[Database]:
    """The same store, with one connection only, for which nobody waits long."""
    small = Database(database.url, pool_size=1, pool_timeout=0.05)
    yield small
    small.close()


def put(session: Session, name: str) -> None:
    session.execute(
        text("insert into lease (name, epoch, holder, until) values (:name, 1, '', now())"),
        {"name": name},
    )


def names(database: Database) -> set[str]:
    with database.transaction() as session:
        return set(session.scalars(text("select name from lease")))


def terminate(database: Database, session: Session) -> None:
    """Have the connection of a session broken by the server."""
    pid = value(session, "select pg_backend_pid()")
    with database.transaction() as other:
        other.execute(text("select pg_terminate_backend(:pid)"), {"pid": pid})
    wait_until_gone(database, pid)


def wait_until_gone(database: Database, pid: int) -> None:
    def gone() -> bool:
        with database.transaction() as look:
            there = "select count(*) from pg_stat_activity where pid = :pid"
            return bool(value(look, there, {"pid": pid}) == 0)

    wait_until(gone, what="the connection to break")


def test_a_transaction_that_ends_is_kept_and_one_that_raises_is_not(
    database: Database,
) -> None:
    def fail() -> None:
        with database.transaction() as session:
            put(session, "lost")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with database.transaction() as session:
        put(session, "kept")

    assert names(database) == {"kept"}


def test_a_snapshot_sees_one_instant_and_writes_nothing(database: Database) -> None:
    with database.snapshot() as session:
        before = value(session, "select count(*) from lease")
        with database.transaction() as other:
            put(other, "a")
        assert value(session, "select count(*) from lease") == before
    with database.transaction() as session:
        assert value(session, "show transaction_isolation") == "read committed"
    with pytest.raises(InternalError, match="read-only"), database.snapshot() as session:
        put(session, "b")


def test_others_are_told_of_a_change_once_it_is_there_to_see(database: Database) -> None:
    told: list[set[str]] = []
    watched = Database(database.url)
    watched.on_change(lambda: told.append(names(database)))

    def fail() -> None:
        with watched.transaction() as session:
            work.wake(session, "thing", "a")
            raise KeyError

    with watched.transaction() as session:
        put(session, "quiet")
    with pytest.raises(KeyError):
        fail()
    assert told == []
    with watched.transaction() as session:
        put(session, "a")
        feed.record(session, Change("thing", "a", 1, feed.ADDED))
    with watched.transaction() as session:
        work.wake(session, "thing", "a")
    watched.close()

    assert told == [{"quiet", "a"}, {"quiet", "a"}]


def test_a_connection_that_breaks_in_a_transaction_is_unavailable(
    database: Database, small: Database
) -> None:
    def in_the_midst() -> None:
        with small.transaction() as session:
            put(session, "lost")
            terminate(database, session)
            put(session, "lost too")

    def before_the_commit() -> None:
        with small.transaction() as session:
            put(session, "lost")
            terminate(database, session)

    for broken in (in_the_midst, before_the_commit):
        with pytest.raises(UnavailableError):
            broken()

    with small.transaction() as session:
        put(session, "kept")
    assert names(database) == {"kept"}


def test_a_connection_that_broke_while_nobody_used_it_is_replaced(
    database: Database, direct: str
) -> None:
    used = Database(direct, pool_size=1)
    with used.transaction() as session:
        put(session, "a")
        pid = value(session, "select pg_backend_pid()")
    with database.transaction() as other:
        other.execute(text("select pg_terminate_backend(:pid)"), {"pid": pid})
    wait_until_gone(database, pid)

    with used.transaction() as session:
        put(session, "b")

    assert names(database) == {"a", "b"}
    used.close()


def test_a_server_that_is_not_there_is_unavailable() -> None:
    away = Database("postgresql://hekla@/none?host=/nonexistent")

    with pytest.raises(UnavailableError, match="not reachable"), away.transaction() as session:
        session.execute(text("select 1"))
    assert "not reachable" in str(databases.ping(away))
    away.close()


def test_a_store_that_answers_is_usable(database: Database) -> None:
    assert databases.ping(database) is None
    with database.transaction() as session:
        assert databases.now(session).tzinfo is not None


def test_a_call_for_which_no_connection_is_left_is_unavailable(small: Database) -> None:
    with small.transaction() as session:
        put(session, "a")
        with (
            pytest.raises(UnavailableError, match="all database connections are in use"),
            small.transaction() as other,
        ):
            put(other, "b")

    assert names(small) == {"a"}


@pytest.mark.parametrize(
    ("limit", "statement"),
    [
        pytest.param("statement_timeout", "select pg_sleep(60)", id="a statement"),
        pytest.param("lock_timeout", "lock table lease", id="a lock"),
    ],
)
def test_what_takes_too_long_is_given_up(
    database: Database, limit: str, statement: str
) -> None:
    def wait() -> None:
        with database.transaction() as session:
            session.execute(text(f"set local {limit} = '20ms'"))
            session.execute(text(statement))

    with database.transaction() as holder:
        put(holder, "a")
        with pytest.raises(UnavailableError, match="took too long"):
            wait()


def test_every_connection_has_its_limits(database: Database) -> None:
    with database.transaction() as session:
        limits = [
            value(session, f"show {name}")
            for name in ("statement_timeout", "idle_in_transaction_session_timeout")
        ]
    assert limits == ["5s", "10s"]


def test_a_limit_of_ones_own_stays_within_the_transaction(direct: str) -> None:
    """Behind a pooling proxy the connection is somebody else's afterwards."""
    hurried = Database(direct, pool_size=1, statement_timeout="70ms")
    with hurried.transaction() as session:
        assert value(session, "show statement_timeout") == "70ms"
    with hurried.engine.connect() as connection:
        assert connection.execute(text("show statement_timeout")).scalar_one() == "5s"
    hurried.close()


def test_a_transaction_that_was_left_idle_is_unavailable(database: Database) -> None:
    def idle() -> None:
        with database.transaction() as session:
            put(session, "lost")
            pid = value(session, "select pg_backend_pid()")
            session.execute(text("set local idle_in_transaction_session_timeout = '1ms'"))
            wait_until_gone(database, pid)
            put(session, "lost too")

    with pytest.raises(UnavailableError):
        idle()

    assert names(database) == set()


# Only superusers may set it; for others the test takes a second.
FAST_DEADLOCKS = text(
    "select set_config('deadlock_timeout', '20ms', true)"
    " from pg_roles where rolname = current_user and rolsuper"
)


def test_transactions_that_wait_for_each_other_may_try_again(database: Database) -> None:
    for name in ("a", "b"):
        with database.transaction() as session:
            put(session, name)
    failed: list[Exception] = []

    def cross(first: str, second: str, met: threading.Barrier) -> None:
        try:
            with database.transaction() as session:
                session.execute(FAST_DEADLOCKS)
                for name in (first, second):
                    session.execute(
                        text("update lease set epoch = epoch + 1 where name = :name"),
                        {"name": name},
                    )
                    if name == first:
                        met.wait()
        except ConflictError as error:
            failed.append(error)

    met = threading.Barrier(2)
    crossing = [
        threading.Thread(target=cross, args=(*order, met)) for order in (("a", "b"), ("b", "a"))
    ]
    for thread in crossing:
        thread.start()
    for thread in crossing:
        thread.join()

    assert [str(error) for error in failed] == ["someone else changed the same rows; try again"]


def test_a_transaction_that_another_overtook_may_try_again(database: Database) -> None:
    with database.transaction() as session:
        put(session, "a")

    def overtaken() -> None:
        with database.transaction() as session:
            session.execute(text("set transaction isolation level repeatable read"))
            value(session, "select count(*) from lease")
            with database.transaction() as other:
                other.execute(text("update lease set epoch = 2"))
            session.execute(text("update lease set epoch = 3"))

    with pytest.raises(ConflictError):
        overtaken()


def test_a_broken_rule_of_ours_is_no_domain_error(database: Database) -> None:
    with database.transaction() as session:
        put(session, "a")
    with pytest.raises(IntegrityError) as caught, database.transaction() as session:
        put(session, "a")

    assert databases.is_duplicate(caught.value)
    with pytest.raises(IntegrityError) as caught, database.transaction() as session:
        session.execute(
            text("insert into command (job_uid, action) values (:u, '')"), {"u": uuid4()}
        )
    assert not databases.is_duplicate(caught.value)


def under_way(database: Database) -> bool:
    """Whether another connection to the same database is in a transaction."""
    others = (
        "select exists (select from pg_stat_activity where datname = current_database()"
        " and pid <> pg_backend_pid() and xact_start is not null)"
    )
    with database.transaction() as session:
        return bool(value(session, others))


@pytest.mark.parametrize("loss", [Loss.THE_COMMIT, Loss.THE_ANSWER])
def test_a_call_whose_commit_nobody_heard_of_is_repeated_and_done_once(
    database: Database, postgres: Server, loss: Loss
) -> None:
    key, body = RequestKey("alice", "CreateJob", "1"), b"body"
    name = database.engine.url.database

    def call(store: Database) -> bool:
        """Create a job; return whether it was done already."""
        with store.transaction() as session:
            if requests.find(session, key, body) is not None:
                return True
            [stored] = jobs.insert_many(session, [(uuid4(), make_job("j"))])
            assert requests.record(session, key, body, uids=[stored.uid])
        return False

    with Proxy.before(postgres.address) as proxy:
        url = make_url(postgres.direct_url(str(name))).set(host="127.0.0.1", port=proxy.port)
        direct = url.difference_update_query(["host"]).render_as_string(hide_password=False)
        with closing(Database(direct, pool_size=1)) as shaky:
            with shaky.transaction() as session:
                session.execute(text("select 1"))
            proxy.loss = loss
            with pytest.raises(UnavailableError):
                call(shaky)
            proxy.loss = Loss.NOTHING
            # Who comes again sooner than the server is done is told so: see the next test.
            wait_until(lambda: not under_way(database), what="the lost call's end")
            done = call(shaky)

    assert done == (loss is Loss.THE_ANSWER)
    with database.transaction() as session:
        found = requests.find(session, key, body)
        stored = jobs.get(session, Key("default", "j"))
    assert found is not None
    assert found.uids == [stored.uid]


def test_a_call_that_waits_for_its_own_lost_commit_sees_it(
    database: Database,
) -> None:
    """A first try may still commit while the second is under way: the second waits for it."""
    key = RequestKey("alice", "CreateJob", "1")
    answers: list[bool] = []

    def repeat() -> None:
        with database.transaction() as session:
            answers.append(requests.record(session, key, b"", uids=[]))
        with database.transaction() as session:
            jobs.get(session, Key("default", "j"))

    with database.transaction() as session:
        requests.record(session, key, b"", uids=[])
        jobs.insert_many(session, [(uuid4(), make_job("j"))])
        second = threading.Thread(target=repeat)
        second.start()
        wait_for_waiting(database)
        with database.transaction() as other, pytest.raises(NotFoundError):
            jobs.get(other, Key("default", "j"))
    second.join()

    assert answers == [False]
