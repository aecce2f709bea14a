"""Incarnations, and what the store needs now and then."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from sqlalchemy import text

from hekla.domain.errors import CursorExpiredError, UnavailableError
from hekla.store import binds, feed, history, incarnation, leases, maintenance, requests
from hekla.store.database import Database
from hekla.store.feed import Change
from hekla.store.maintenance import NOTHING, maintain_once
from hekla.store.requests import RequestKey
from tests.integration.store.test_store_feed import age_everything
from tests.integration.store.test_store_leases import bind
from tests.support.postgres import Server
from tests.support.store import MINUTE, add_job, value

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
MONTHS = tuple(f"{table}_2026_{month}" for table in history.TABLES for month in ("03", "04"))


def name_of(database: Database) -> UUID:
    with database.transaction() as session:
        found: UUID = value(session, "select incarnation from store")
        return found


def forge(database: Database, system: str) -> None:
    with database.transaction() as session:
        session.execute(text("update store set system = :system"), {"system": system})


def system_of(database: Database) -> str:
    with database.transaction() as session:
        return str(value(session, "select system from store"))


def test_a_new_store_keeps_its_incarnation(database: Database) -> None:
    before = name_of(database)

    assert not incarnation.settle(database)
    assert not incarnation.settle(database)

    assert name_of(database) == before
    server, timeline, oid = system_of(database).split("/")
    assert int(server) > 0
    assert timeline == "00000001"
    assert int(oid) > 0


@pytest.mark.parametrize("part", [0, 1, 2], ids=["server", "timeline", "database"])
def test_a_restored_copy_gets_an_incarnation_of_its_own(database: Database, part: int) -> None:
    incarnation.settle(database)
    before = name_of(database)
    with database.transaction() as session:
        cursor = feed.start(session)
    parts = system_of(database).split("/")
    parts[part] = "77"
    forge(database, "/".join(parts))

    assert incarnation.settle(database)

    assert name_of(database) != before
    with database.transaction() as session, pytest.raises(CursorExpiredError):
        feed.since(session, cursor)
    assert not incarnation.settle(database), "once"


def test_a_copy_made_on_the_same_server_is_another_store(
    postgres: Server, own: Database
) -> None:
    incarnation.settle(own)
    before = name_of(own)
    own.close()  # nobody may be connected to what is copied
    source = str(own.engine.url.database)

    copy = Database(postgres.make_database(f"{source}_copy", template=source))

    assert name_of(copy) == before
    assert incarnation.settle(copy)
    assert name_of(copy) != before
    assert not incarnation.settle(own), "the first one stays what it was"
    assert name_of(own) == before
    copy.close()


def test_of_services_that_start_together_one_settles(database: Database) -> None:
    forge(database, "another")
    settled: list[bool] = []
    services = [
        threading.Thread(target=lambda: settled.append(incarnation.settle(database)))
        for _ in range(5)
    ]
    for service in services:
        service.start()
    for service in services:
        service.join()

    assert sorted(settled) == [False] * 4 + [True]


def test_what_is_due_is_done_once(database: Database) -> None:
    fill(database)

    done = maintain_once(database, NOW)

    assert done == replace(NOTHING, turned=True, made=MONTHS, requests=2, binds=1)
    assert done
    again = maintain_once(database, NOW)
    assert again == NOTHING
    assert not again
    with database.transaction() as session:
        assert value(session, "select count(*) from request") == 1
        assert value(session, "select count(*) from bind") == 1
        assert value(session, "select count(*) from change") == 0


def fill(database: Database) -> None:
    with database.transaction() as session:
        feed.record(session, Change("thing", "a", 1, feed.ADDED))
        for number in range(3):
            requests.record(session, RequestKey("a", "m", f"{number}"), b"", uids=[])
        session.execute(
            text(
                "update request set created_at = created_at - interval '25 hours'"
                " where id < '2'"
            )
        )
        leases.acquire(session, "s", holder="h", ttl=MINUTE)
        binds.record(session, "s", epoch=1, binds=[bind("p"), bind("q")])
        binds.settle(session, bound=["p"], failed=[])
        session.execute(text("update bind set created_at = created_at - interval '1 day'"))
    age_everything(database)


def test_a_restored_store_is_found_while_services_run(database: Database) -> None:
    maintain_once(database, NOW)
    forge(database, "another")

    assert maintain_once(database, NOW) == replace(NOTHING, restored=True)


@pytest.mark.parametrize(
    ("kept", "dropped"),
    [
        pytest.param(timedelta(days=30), 0, id="not all of March is old"),
        pytest.param(timedelta(days=8), len(history.TABLES), id="all of it is"),
        pytest.param(None, 0, id="it is kept for ever"),
    ],
)
def test_history_is_kept_as_long_as_it_is_to_be(
    database: Database, kept: timedelta | None, dropped: int
) -> None:
    maintain_once(database, NOW)
    job = add_job(database)
    with database.transaction() as session:
        history.retire(session, job)
        session.execute(text("update job_history set removed_at = '2026-03-10 12:00+00'"))

    done = maintain_once(database, datetime(2026, 4, 10, tzinfo=UTC), history_kept=kept)

    assert len(done.dropped) == dropped
    assert len(done.made) == len(history.TABLES), "May"
    with database.transaction() as session:
        assert value(session, "select count(*) from job_history") == (0 if dropped else 1)


def test_replicas_that_maintain_together_do_each_thing_once(database: Database) -> None:
    fill(database)
    done: list[maintenance.Maintained] = []
    failed: list[Exception] = []

    def maintain() -> None:
        try:
            done.append(maintain_once(database, NOW))
        except Exception as error:
            failed.append(error)

    replicas = [threading.Thread(target=maintain) for _ in range(4)]
    for replica in replicas:
        replica.start()
    for replica in replicas:
        replica.join()

    assert failed == []
    assert sum(one.turned for one in done) == 1
    assert sum(one.requests for one in done) == 2
    assert sum(one.binds for one in done) == 1
    assert sorted(name for one in done for name in one.made) == sorted(MONTHS)


def test_what_another_replica_is_at_is_left_to_it(database: Database) -> None:
    fill(database)

    with database.transaction() as session:
        for step in range(1, 9):
            key = {"key": maintenance.FIRST_KEY + step}
            session.execute(text("select pg_advisory_xact_lock(:key)"), key)
        assert maintain_once(database, NOW) == NOTHING

    assert maintain_once(database, NOW).turned


def test_a_step_that_cannot_be_done_now_leaves_the_others_theirs(database: Database) -> None:
    fill(database)
    with database.transaction() as session:
        session.execute(text("select count(*) from change"))  # a reader that does not end

        done = maintain_once(database, NOW)

    assert done == replace(NOTHING, made=MONTHS, requests=2, binds=1)
    assert maintain_once(database, NOW).turned


def test_postgres_that_is_away_is_told(database: Database) -> None:
    away = Database("postgresql://hekla@/none?host=/nonexistent", pool_timeout=0.1)

    with pytest.raises(UnavailableError):
        maintain_once(away, NOW)


def test_the_store_is_maintained_by_a_plain_user(own: Database, postgres: Server) -> None:
    """Managed servers give no superuser: the owner of the tables is enough."""
    with own.transaction() as session:
        session.execute(text("drop role if exists plain"))
        session.execute(text("create role plain login password 'plain'"))
        session.execute(text("grant plain to current_user"))
        session.execute(text("grant all on schema public to plain"))
        for table in session.scalars(
            text(
                "select c.oid::regclass::text from pg_class c"
                " where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')"
            )
        ).all():
            session.execute(text(f"alter table {table} owner to plain"))
    fill(own)
    name = own.engine.url.database
    plain = Database(postgres.url(str(name), user="plain"))

    assert maintain_once(plain, NOW) == replace(
        NOTHING, turned=True, made=MONTHS, requests=2, binds=1
    )
    plain.close()
    with own.transaction() as session:
        session.execute(text("reassign owned by plain to current_user"))
        session.execute(text("drop owned by plain"))
        session.execute(text("drop role plain"))
