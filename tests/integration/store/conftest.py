"""What is about sessions of Postgres."""

from __future__ import annotations

import pytest

from hekla.store.database import Database
from tests.support.postgres import Server


@pytest.fixture
def direct(postgres: Server, database: Database) -> str:
    """Where ``database`` is past any pooling proxy: for what belongs to a session."""
    return postgres.direct_url(str(database.engine.url.database))
