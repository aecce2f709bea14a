"""Migrations lead to the tables that the code declares, and from nowhere else."""

from __future__ import annotations

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text

from hekla.domain.errors import PreconditionError, UnavailableError
from hekla.store import flow_schema, migrate, own_schema, schema
from hekla.store.database import Database
from hekla.store.tables import Base
from tests.support.postgres import Server

TABLES = (flow_schema, own_schema, schema)
"""Modules whose import declares them."""
BY_HAND = {"change_0", "change_1", "change_2", "change_3"} | {
    "job_history_default",
    "attempt_history_default",
    "job_flow_history_default",
}


def test_the_migrated_schema_is_the_declared_one(database: Database) -> None:
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection)
        differences = compare_metadata(context, Base.metadata)

    missing = [
        difference
        for difference in differences
        if not (difference[0] == "remove_table" and difference[1].name in BY_HAND)
        and not (difference[0] == "remove_index" and difference[1].table.name in BY_HAND)
    ]
    assert missing == []


def test_migrating_again_changes_nothing(postgres_url: str) -> None:
    assert migrate.migrate(postgres_url) == migrate.head()


def test_services_refuse_a_schema_they_do_not_know(postgres: Server, own: Database) -> None:
    migrate.check(own)
    empty = Database(postgres.make_database("never_migrated"))
    with pytest.raises(PreconditionError, match="hekla migrate"):
        migrate.check(empty)
    empty.close()

    with own.transaction() as session:
        session.execute(text("update alembic_version set version_num = '9999'"))

    with pytest.raises(PreconditionError, match="newer"):
        migrate.check(own)
    with pytest.raises(PreconditionError, match="newer"):
        migrate.migrate(own.url)


def test_a_server_that_is_away_is_unavailable() -> None:
    database = Database("postgresql://nobody@/nothing?host=/nonexistent")

    with pytest.raises(UnavailableError), database.transaction() as session:
        session.execute(text("select 1"))
