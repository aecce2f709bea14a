"""One database for all of these tests, emptied before each: to make one takes far longer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from hekla.store import history
from hekla.store.database import Database
from tests.support.postgres import Server

FILLED = [
    *("attempt", "trigger", "command", "job_event", "pod_group", "job", "queue"),
    *("flow_step", "job_flow", "job_template", "job_flow_history"),
    *("job_history", "attempt_history", "work", "change", "lease", "request", "bind"),
]
"""Every table but the store's own row; who is referred to comes last."""


@pytest.fixture(scope="package")
def _used(postgres: Server) -> Iterator[Database]:
    database = Database(postgres.make_database("store_tests", template="template"))
    yield database
    database.close()


@pytest.fixture
def own(postgres_url: str) -> Iterator[Database]:
    """A database of this test's own, which may be copied or change hands."""
    database = Database(postgres_url)
    yield database
    database.close()


@pytest.fixture
def database(_used: Database) -> Database:
    """An empty, migrated database that nobody else uses now."""
    with _used.transaction() as session:
        for table in FILLED:
            session.execute(text(f"delete from {table}"))
        history.drop_partitions(session, datetime(2999, 1, 1, tzinfo=UTC))
        session.execute(
            text(
                "update store set incarnation = gen_random_uuid(), system = '',"
                " feed_horizon = '0'"
            )
        )
    return _used


@pytest.fixture
def direct(postgres: Server, database: Database) -> str:
    """Where ``database`` is past any pooling proxy: for what belongs to a session."""
    return postgres.direct_url(str(database.engine.url.database))
