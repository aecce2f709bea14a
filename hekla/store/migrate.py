"""Brings a database to the schema this code knows, and tells when it is not there."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from hekla.domain.errors import PreconditionError
from hekla.store import flow_schema, own_schema, schema  # noqa: F401 - the tables
from hekla.store.database import Database, domain_errors
from hekla.store.tables import Base

ONE_AT_A_TIME: Final = 4_711_001
"""Key of the advisory lock that migrations hold."""
PATIENCE: Final = "10min"
"""For so long a statement of a migration may take, and another migration be waited for."""


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    return config


def migrate(url: str) -> str:
    """Run what is missing, one process at a time; return the revision reached.

    Raises:
        UnavailableError: Postgres is away.
        PreconditionError: the database has a schema newer than this code.
    """
    database = Database(url, pool_size=1)
    try:
        # One transaction with its settings and its lock, so that a pooling proxy may be in
        # between: what holds for a session would stay with somebody else's connection.
        with domain_errors(), database.engine.connect() as connection, connection.begin():
            connection.execute(text(f"set local statement_timeout = '{PATIENCE}'"))
            connection.execute(
                text("select pg_advisory_xact_lock(:key)"), {"key": ONE_AT_A_TIME}
            )
            _refuse_newer(connection)
            command.upgrade(_config(connection), "head")
            return str(MigrationContext.configure(connection).get_current_revision())
    finally:
        database.close()


def head() -> str:
    """The revision this code knows."""
    return str(ScriptDirectory.from_config(_config()).get_current_head())


def current(database: Database) -> str | None:
    """The revision the database is at; None if it has none.

    Raises:
        UnavailableError: Postgres is away.
    """
    with domain_errors(), database.engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def purge(database: Database) -> None:
    """Drop everything that migrations made, jobs and history included.

    Raises:
        UnavailableError: Postgres is away, or somebody uses the tables.
    """
    with domain_errors(), database.engine.begin() as connection:
        connection.execute(text("set local lock_timeout = '3s'"))
        Base.metadata.drop_all(connection)
        connection.execute(text("drop table if exists alembic_version"))


def check(database: Database) -> None:
    """Make sure that the database has the schema this code knows.

    Raises:
        UnavailableError: Postgres is away.
        PreconditionError: it has another; the message says what to do.
    """
    with domain_errors(), database.engine.connect() as connection:
        current = MigrationContext.configure(connection).get_current_revision()
        if current != head():
            _refuse_newer(connection)
            found = f"at {current}" if current else "empty"
            raise PreconditionError(
                f"the database is {found} and needs {head()}: run `hekla migrate`"
            )


def _refuse_newer(connection: Connection) -> None:
    current = MigrationContext.configure(connection).get_current_revision()
    known = {
        script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()
    }
    if current is not None and current not in known:
        raise PreconditionError(
            f"the database is at {current}, which this version of Hekla does not know:"
            " it was migrated by a newer one"
        )
