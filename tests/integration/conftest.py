"""One database for all tests of one piece, which nobody else uses meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hekla.store.database import Database
from tests.support.emptying import empty
from tests.support.postgres import Server


@pytest.fixture(scope="session")
def _shared(postgres: Server) -> Iterator[Database]:
    database = Database(postgres.make_database("integration", template="template"))
    yield database
    database.close()


@pytest.fixture
def database(_shared: Database) -> Database:
    """An empty, migrated database that nobody else uses now."""
    empty(_shared)
    return _shared


@pytest.fixture
def own(postgres_url: str) -> Iterator[Database]:
    """A database of this test's own, which may be copied or change hands."""
    database = Database(postgres_url)
    yield database
    database.close()
