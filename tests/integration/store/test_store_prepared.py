"""Statements are planned once a connection, and nothing depends on it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from hekla.domain.errors import UnavailableError
from hekla.store import batch, prepared
from hekla.store.batch import Session
from hekla.store.database import Database

LEASES = text("select * from lease where name = :name")
COUNTED = text("select count(*) as many from lease where holder like 'x%' and epoch = :epoch")
WRONG = text("select 1 / (:zero)::int")


@pytest.fixture
def alone(own: Database) -> Iterator[Database]:
    """A database that is used through one connection."""
    with_one = Database(own.url, pool_size=1)
    yield with_one
    with_one.close()


def leases(session: Session, name: str) -> int:
    return len(batch.answer(session, batch.rows_of(LEASES, {"name": name})))


def known(database: Database) -> list[str]:
    with database.transaction() as session:
        return list(session.scalars(text("select statement from pg_prepared_statements")))


def test_a_statement_is_prepared_once_and_executed_with_other_values(alone: Database) -> None:
    for name in ("a", "b", "a"):
        with alone.transaction() as session:
            assert leases(session, name) == 0
            counted = batch.answer(session, batch.rows_of(COUNTED, {"epoch": 1}))
            assert counted[0].many == 0, "a percent sign is a percent sign"

    assert sorted("from lease where name" in one for one in known(alone)) == [False, True]


def test_what_an_error_kept_from_being_prepared_is_prepared_later(alone: Database) -> None:
    with pytest.raises(DBAPIError), alone.transaction() as session:
        batch.ask(
            session, batch.rows_of(WRONG, {"zero": 0}), batch.rows_of(LEASES, {"name": "a"})
        )

    with alone.transaction() as session:
        assert leases(session, "a") == 0
        assert batch.answer(session, batch.rows_of(WRONG, {"zero": 1})) == [(1,)]


def test_plans_are_forgotten_every_ten_seconds() -> None:
    info: dict[object, object] = {}

    due = [prepared.plans_are_old(info, now) for now in (5.0, 6.0, 14.9, 15.1, 16.0, 40.0)]

    assert due == [True, False, False, True, False, True]


def test_a_connection_that_knows_nothing_any_more_is_replaced(alone: Database) -> None:
    with alone.transaction() as session:
        leases(session, "a")
        session.execute(text("deallocate all"))  # as if a proxy had given us another server

    with pytest.raises(UnavailableError), alone.transaction() as session:
        leases(session, "a")
    with alone.transaction() as session:
        assert leases(session, "a") == 0


def test_a_table_that_a_migration_changed_is_read_by_new_connections(alone: Database) -> None:
    with alone.transaction() as session:
        leases(session, "a")
    with psycopg.connect(alone.url.replace("+psycopg", "")) as other:
        other.execute("alter table lease add column since timestamptz")

    with pytest.raises(UnavailableError, match="cached plan"), alone.transaction() as session:
        leases(session, "a")
    with alone.transaction() as session:
        assert leases(session, "a") == 0


def test_nothing_is_prepared_where_the_process_id_is_no_servers(alone: Database) -> None:
    """As a pooling proxy tells one; found by asking the server for its own."""
    with psycopg.connect(alone.url.replace("+psycopg", "")) as one:
        there: dict[object, object] = {}
        prepared.configure(one, there)
        assert prepared.ready(one, there) == set()

        class Proxied:
            """A connection through a proxy, which hands on what it is asked."""

            info = type("Info", (), {"backend_pid": one.info.backend_pid + 1})
            execute = one.execute

        behind: dict[object, object] = {}
        prepared.configure(Proxied(), behind)  # type: ignore[arg-type]
        assert prepared.ready(one, behind) is None
