"""Statements that travel together: as if they had gone one after the other."""

from __future__ import annotations

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from hekla.domain.errors import UnavailableError
from hekla.store import batch
from hekla.store.batch import Question
from hekla.store.database import Database, Session
from tests.support.store import value

PUT = text("insert into lease (name, epoch, holder, until) values (:name, 1, 'x', now())")
NAMES = text("select name from lease order by name")
ONE = text("select 1 as one")
WRONG = text("select 1 / (:zero)::int")


def put(session: Session, name: str) -> None:
    batch.later(session, PUT, {"name": name})


def names() -> Question[list[str]]:
    return Question(NAMES, {}, lambda rows: [row.name for row in rows])


def kept(database: Database) -> list[str]:
    with database.transaction() as session:
        return batch.answer(session, names())


def one() -> Question[int]:
    return Question(ONE, {}, lambda rows: int(rows[0].one))


def test_each_question_has_its_own_answer(database: Database) -> None:
    first, none, last = one(), names(), one()

    with database.transaction() as session:
        batch.ask(session, first, none, last)
        batch.ask(session)

    assert (first.answer, none.answer, last.answer) == (1, [], 1)


def test_questions_can_be_put_outside_of_a_transaction(database: Database) -> None:
    put_now = batch.rows_of(PUT, {"name": "a"})
    there = names()

    database.ask(put_now, there)

    assert there.answer == ["a"]
    assert kept(database) == ["a"]
    with database.transaction() as session:
        assert value(session, "select count(*) from lease") == 1, "others begin as ever"


def test_what_waits_is_written_with_the_commit(database: Database) -> None:
    with database.transaction() as session:
        put(session, "a")
        put(session, "b")
        assert kept(database) == []

    assert kept(database) == ["a", "b"]


def test_what_waits_is_there_for_whatever_is_asked_next(database: Database) -> None:
    with database.transaction() as session:
        put(session, "a")
        assert session.scalars(text("select name from lease")).all() == ["a"]
        put(session, "b")
        assert batch.answer(session, names()) == ["a", "b"]

    assert kept(database) == ["a", "b"]


def test_what_waits_is_lost_with_its_transaction(database: Database) -> None:
    def fail() -> None:
        with database.transaction() as session:
            put(session, "a")
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert kept(database) == []


def test_what_waits_outlives_a_savepoint_that_came_later(database: Database) -> None:
    with database.transaction() as session:
        put(session, "before")
        point = session.begin_nested()
        put(session, "inside")
        point.rollback()
        put(session, "after")

    assert kept(database) == ["after", "before"]


def test_a_write_that_is_refused_takes_all_of_its_transaction_with_it(
    database: Database,
) -> None:
    def at_the_end() -> None:
        with database.transaction() as session:
            put(session, "a")
            put(session, "a")

    def before_a_question() -> None:
        with database.transaction() as session:
            put(session, "b")
            put(session, "b")
            batch.ask(session, names())

    for twice in (at_the_end, before_a_question):
        with pytest.raises(IntegrityError, match="lease_pkey"):
            twice()

    assert kept(database) == []


def test_a_question_that_fails_is_an_error_and_the_connection_goes_on(
    database: Database,
) -> None:
    def ask() -> None:
        with database.transaction() as session:
            put(session, "a")
            batch.ask(session, one(), batch.rows_of(WRONG, {"zero": 0}), one())

    with pytest.raises(Exception, match="division by zero"):
        ask()

    assert kept(database) == []


def test_a_connection_that_breaks_under_questions_is_unavailable(database: Database) -> None:
    def ask() -> None:
        with database.transaction() as session:
            pid = value(session, "select pg_backend_pid()")
            with database.transaction() as other:
                other.execute(text("select pg_terminate_backend(:pid, 5000)"), {"pid": pid})
            put(session, "a")
            batch.ask(session, one())

    with pytest.raises(UnavailableError):
        ask()

    assert kept(database) == []


def test_a_commit_that_breaks_with_what_waits_is_unavailable(database: Database) -> None:
    def commit() -> None:
        with database.transaction() as session:
            pid = value(session, "select pg_backend_pid()")
            put(session, "a")
            with database.transaction() as other:
                other.execute(text("select pg_terminate_backend(:pid, 5000)"), {"pid": pid})

    with pytest.raises(UnavailableError):
        commit()

    assert kept(database) == []


def test_only_a_transaction_that_is_over_is_told_of(database: Database) -> None:
    seen: list[list[str]] = []
    with_poke = Database(database.url)
    with_poke.on_change(lambda: seen.append(kept(database)))

    with with_poke.transaction() as session:
        put(session, "a")
        session.info["changed"] = True
    with_poke.close()

    assert seen == [["a"]]
