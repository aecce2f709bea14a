"""Statements that need no answer of each other travel together: one round trip for many.

A round trip costs more than most of our statements take. ``ask`` puts several questions at
once; ``later`` has a write wait for the end of the transaction, where all of them go with the
commit. What is waiting is sent before the session executes anything else, so nobody sees a
difference but in time.

They go as one text, with the values written into it by psycopg (as literals, properly quoted),
since a pipeline of statements takes several times the processor time: it waits for each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar, cast

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import namedtuple_row
from sqlalchemy import ClauseElement, Connection, TextClause, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import ORMExecuteState, Session as PlainSession, SessionTransaction

from hekla.store import prepared

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Values = Mapping[str, Any]

BEGIN: Final = "begin"
BEGIN_SNAPSHOT: Final = "begin isolation level repeatable read read only"
_WAITING: Final = "waiting"
_OPENING: Final = "opening"


class Question(Generic[T_co]):
    """A statement, which is a constant of its module, and how its answer is read."""

    def __init__(
        self,
        statement: ClauseElement,
        values: Values,
        read: Callable[[Sequence[Any]], T_co],
    ) -> None:
        self._statement = statement
        self._values = values
        self._read = read
        self._rows: Sequence[Any] | None = None

    @property
    def answer(self) -> T_co:
        """What the rows mean; it was asked before."""
        assert self._rows is not None, "nobody has asked"
        return self._read(self._rows)


class Session(PlainSession):
    """A session whose waiting writes are not lost when a savepoint is rolled back."""

    def begin_nested(self) -> SessionTransaction:
        """Begin a savepoint."""
        _send_waiting(self)
        return super().begin_nested()


def ask(session: Session, *questions: Question[Any]) -> None:
    """Put questions in this order; each then has its answer."""
    if not questions:
        return
    sent = [_Sent(question._statement, question._values) for question in questions]
    _send(session, [*_take(session), *sent])
    for question, one in zip(questions, sent, strict=True):
        question._rows = one.rows


def answer(session: Session, question: Question[T]) -> T:
    """The answer to one question."""
    ask(session, question)
    return question.answer


def rows_of(statement: ClauseElement, values: Values) -> Question[Sequence[Any]]:
    """A question that is answered by the rows as they are."""
    return Question(statement, values, lambda rows: rows)


def later(session: Session, statement: TextClause, values: Values) -> None:
    """Execute a write that nobody waits for at the end, or before anything else is executed."""
    if session.in_nested_transaction():
        session.execute(statement, values)  # it is lost if the savepoint is
        return
    session.info.setdefault(_WAITING, []).append(_Sent(statement, values))


def finish(session: Session) -> None:
    """Send what is waiting, and commit with it."""
    waiting = _take(session)
    if waiting:
        _send(session, waiting, commit=True)


class _Sent:
    """One statement that travels with others."""

    def __init__(self, statement: ClauseElement, values: Values) -> None:
        self.statement = statement
        self.values = values
        self.rows: Sequence[Any] = ()


def _take(session: PlainSession) -> list[_Sent]:
    waiting: list[_Sent] = session.info.get(_WAITING) or []
    if waiting:
        session.info[_WAITING] = []
    return waiting


@event.listens_for(Session, "do_orm_execute")
def _before_others(state: ORMExecuteState) -> None:
    _send_waiting(state.session)


def _send_waiting(session: PlainSession) -> None:
    waiting = _take(session)
    if waiting:
        _send(session, waiting)


def opening(connection: Connection, words: str | None) -> None:
    """Have the transaction of ``connection`` begin with these words; None has none begin."""
    connection.info[_OPENING] = words


def begin_if_due(connection: Connection) -> None:
    """Begin the transaction before something else than a batch is executed."""
    raw = _raw(connection)
    words = connection.info.get(_OPENING)
    if words is not None and raw.pgconn.transaction_status == TransactionStatus.IDLE:
        raw.execute(words)


def _raw(connection: Connection) -> psycopg.Connection[Any]:
    return cast("psycopg.Connection[Any]", connection.connection.driver_connection)


def _send(session: PlainSession, statements: Sequence[_Sent], *, commit: bool = False) -> None:
    connection = session.connection()
    raw = _raw(connection)
    try:
        cursor = psycopg.ClientCursor(raw, row_factory=namedtuple_row)
        words: str | None = connection.info.get(_OPENING)
        idle = raw.pgconn.transaction_status == TransactionStatus.IDLE
        known = prepared.ready(raw, connection.info)
        # What is sent, and whose answer comes back.
        sent: list[tuple[str, _Sent | None]] = []
        new: set[str] = set()
        if words is not None and idle:
            sent.append((words, None))
        if (
            known
            and idle
            and words != BEGIN_SNAPSHOT
            and prepared.plans_are_old(connection.info, time.monotonic())
        ):
            sent.append((prepared.FORGET_PLANS, None))
        for one in statements:
            found = prepared.text_of(one.statement)
            if known is None:
                sent.append((cursor.mogrify(found.plain, one.values), one))
                continue
            if found.name not in known and found.name not in new:
                new.add(found.name)
                sent.append((found.declaration, None))
            sent.append((cursor.mogrify(found.execution, one.values), one))
        if commit and words is not None:
            sent.append(("COMMIT", None))
        cursor.execute(";".join(text for text, _ in sent))
        for _, asked in sent:
            if asked is not None:
                asked.rows = cursor.fetchall() if cursor.description is not None else ()
            cursor.nextset()
        if known is not None:
            known |= new
    except psycopg.Error as error:
        stale = prepared.is_stale(error)
        broken = raw.broken or raw.closed or stale
        if broken:
            connection.invalidate(error)
        else:
            prepared.doubt(connection.info)
        raise DBAPIError.instance(
            "", None, error, psycopg.Error, connection_invalidated=bool(broken)
        ) from error
