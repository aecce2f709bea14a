"""Fixtures that every test may ask for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from hekla.local.postgres import EmbeddedPostgres
from hekla.store.database import Database
from hekla.store.migrate import migrate
from tests.support.postgres import server

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """A server with a migrated database named ``template``, which nobody may connect to."""
    with server() as running:
        migrate(running.make_database("template"))
        yield running


@pytest.fixture
def postgres_url(postgres: EmbeddedPostgres) -> str:
    """The URL of an empty, migrated database of this test's own."""
    return postgres.make_database(f"test_{next(_numbers)}", template="template")


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    """An empty, migrated database of this test's own."""
    database = Database(postgres_url)
    yield database
    database.close()
