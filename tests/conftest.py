"""Fixtures that every test may ask for."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest

from hekla.store.database import Database
from hekla.store.migrate import migrate
from tests.support.postgres import Server, chosen

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server with a migrated database named ``template``.

    Nobody may be connected to it, or it could not be copied.
    """
    with chosen(os.environ) as running:
        running.make_database("template")
        migrate(running.direct_url("template"))  # a proxy would stay connected
        yield running


@pytest.fixture
def postgres_url(postgres: Server) -> str:
    """The URL of an empty, migrated database of this test's own."""
    return postgres.make_database(f"test_{next(_numbers)}", template="template")


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    """An empty, migrated database of this test's own."""
    database = Database(postgres_url)
    yield database
    database.close()
