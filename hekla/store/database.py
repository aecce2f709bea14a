"""Connections and transactions.

SQL errors become the domain's at the border of a transaction: a server that is away, a
statement that took too long or a deadlock is ``UnavailableError`` or ``ConflictError``, which
callers may be told of; what breaks a constraint is ours and passes through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from select import POLLIN, poll as select_poll
from typing import Any, Final

import orjson
from sqlalchemy import Connection, DateTime, create_engine, event, func, select, text
from sqlalchemy.exc import (
    DBAPIError,
    DisconnectionError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    TimeoutError as PoolTimeout,
)
from sqlalchemy.orm import sessionmaker

from hekla.domain.errors import AlreadyExistsError, ConflictError, UnavailableError
from hekla.store import batch, prepared
from hekla.store.batch import Session
from hekla.store.objects import to_text

__all__ = ["Database", "Session", "now"]

SETTINGS: Final = (
    "statement_timeout = '5s'",
    "idle_in_transaction_session_timeout = '10s'",
    # Our statements are short: to compile one takes a hundred times as long as to execute it.
    "jit = off",
)
POOL_TIMEOUT_SECONDS: Final = 5.0
APPLICATION: Final = "hekla"
"""What our connections are called in ``pg_stat_activity``."""
CONNECT: Final[Mapping[str, Any]] = {
    "application_name": APPLICATION,
    "connect_timeout": 5,
    # Prepared statements do not survive a transaction-pooling proxy: see ``prepared``.
    "prepare_threshold": None,
    # A server that the network lost is noticed in seconds, not in hours.
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
SERIALIZATION_FAILURES: Final = frozenset({"40001", "40P01"})
"""SQLSTATEs of transactions that may simply be tried again."""
NO_ROOM: Final = "53"
"""How SQLSTATEs begin of a server whose disk, memory or connections are used up."""
OVERLAPS: Final = frozenset({"attempt_live_key", "attempt_current_key"})
"""Constraints that only two who plan the same pods break."""
TOO_SLOW: Final = frozenset({"57014", "55P03"})
"""SQLSTATEs of statements that were given up because they, or a lock, took too long."""


def normalized(url: str) -> str:
    """The URL with the driver that is installed named in it."""
    for scheme in ("postgresql://", "postgres://"):
        if url.startswith(scheme):
            return "postgresql+psycopg://" + url.removeprefix(scheme)
    return url


class Database:
    """A pool of connections to Postgres. One for each process."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        pool_timeout: float = POOL_TIMEOUT_SECONDS,
        statement_timeout: str | None = None,
    ) -> None:
        """Connect when it is first used.

        A ``statement_timeout`` of its own is set in each transaction: what is set for a session
        would stay with a connection that a pooling proxy gives to others next.
        """
        self.url = normalized(url)
        self.engine = create_engine(
            self.url,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=pool_timeout,
            # We begin transactions ourselves, together with their first statement.
            isolation_level="AUTOCOMMIT",
            # A large float comes back from JSONB as digits only; orjson reads a float again.
            json_serializer=to_text,
            json_deserializer=orjson.loads,
            connect_args=dict(CONNECT),
        )

        @event.listens_for(self.engine, "connect")
        def configure(connection: Any, record: Any) -> None:
            connection.execute(";".join(f"set {setting}" for setting in SETTINGS))
            prepared.configure(connection, record.info)
            connection.commit()

        @event.listens_for(self.engine, "checkout")
        def look(connection: Any, _record: Any, _proxy: Any) -> None:
            if _may_be_broken(connection) and not self._answers(connection):
                raise DisconnectionError("the server has closed the connection")

        @event.listens_for(self.engine, "begin")
        def begin(connection: Connection) -> None:
            batch.opening(connection, batch.BEGIN)

        @event.listens_for(self.engine, "before_cursor_execute")
        def before_execute(connection: Connection, *_: Any) -> None:
            batch.begin_if_due(connection)

        self._sessions = sessionmaker(self.engine, class_=Session, expire_on_commit=False)
        self._statement_timeout = statement_timeout
        self._after_commit: Callable[[], None] | None = None

    def _answers(self, connection: Any) -> bool:
        try:
            return bool(self.engine.dialect.do_ping(connection))
        except self.engine.dialect.loaded_dbapi.Error:
            return False

    def on_change(self, poke: Callable[[], None]) -> None:
        """Have ``poke`` called after each commit of a transaction that changed objects."""
        self._after_commit = poke

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Commit at the end of the block, or roll back if it raises.

        Raises:
            UnavailableError: Postgres is away or too slow; whether a commit that was under
                way took place is unknown.
            ConflictError: a deadlock or a serialisation failure; try again.
        """
        with domain_errors():
            with self._sessions.begin() as session:
                if self._statement_timeout is not None:
                    limit = f"set local statement_timeout = '{self._statement_timeout}'"
                    session.execute(text(limit))
                yield session
                batch.finish(session)
            if session.info.get("changed") and self._after_commit is not None:
                self._after_commit()

    @contextmanager
    def snapshot(self) -> Iterator[Session]:
        """Read only, and everything as of one instant.

        Raises:
            UnavailableError: Postgres is away or too slow.
        """
        with domain_errors(), self._sessions.begin() as session:
            batch.opening(session.connection(), batch.BEGIN_SNAPSHOT)
            yield session

    def ask(self, *questions: batch.Question[Any]) -> None:
        """Put questions that need no transaction, in one round trip.

        Raises:
            UnavailableError: Postgres is away or too slow.
        """
        with domain_errors(), self._sessions() as session:
            batch.opening(session.connection(), None)
            batch.ask(session, *questions)

    def close(self) -> None:
        """Give every connection back."""
        self.engine.dispose()


def _may_be_broken(connection: Any) -> bool:
    """Whether the server said something while nobody asked: mostly that it hangs up.

    That costs no round trip, as a ping at each use would.
    """
    poll = select_poll()
    poll.register(connection.fileno(), POLLIN)
    return bool(poll.poll(0))


@contextmanager
def domain_errors() -> Iterator[None]:
    try:
        yield
    except PoolTimeout as error:
        raise UnavailableError("all database connections are in use; try again") from error
    except (OperationalError, InterfaceError) as error:
        state = getattr(error.orig, "sqlstate", None)
        if state in SERIALIZATION_FAILURES:
            raise ConflictError("someone else changed the same rows; try again") from error
        if state in TOO_SLOW:
            raise UnavailableError(f"Postgres took too long: {_reason(error)}") from error
        if state is not None and state.startswith(NO_ROOM):
            raise UnavailableError(f"Postgres has no room for it: {_reason(error)}") from error
        raise UnavailableError(f"Postgres is not reachable: {_reason(error)}") from error
    except IntegrityError as error:
        if _constraint(error) in OVERLAPS:
            raise ConflictError("someone else did the same just now; try again") from error
        if _constraint(error) == "pod_group_namespace_name_key":
            raise AlreadyExistsError("a pod group of that name exists already") from error
        raise
    except DBAPIError as error:
        if error.connection_invalidated:
            raise UnavailableError(
                f"the connection to Postgres broke: {_reason(error)}"
            ) from error
        raise


def _constraint(error: IntegrityError) -> str | None:
    return getattr(getattr(error.orig, "diag", None), "constraint_name", None)


def is_duplicate(error: IntegrityError) -> bool:
    """Whether a row was refused because one with its key exists."""
    return getattr(error.orig, "sqlstate", None) == "23505"


def _reason(error: DBAPIError) -> str:
    return str(error.orig).strip().splitlines()[0] if error.orig else type(error).__name__


def now(session: Session) -> datetime:
    """The time, by the one clock that all processes share."""
    moment = func.clock_timestamp(type_=DateTime(timezone=True))
    return session.scalars(select(moment)).one()


def ping(database: Database) -> str | None:
    """Why Postgres cannot be used, or None: a readiness check."""
    try:
        with database.transaction() as session:
            session.execute(text("select 1"))
    except UnavailableError as error:
        return str(error)
    return None
