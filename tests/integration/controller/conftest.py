"""One database and one controller for all of these tests; tables are emptied before each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hekla.store import queues
from hekla.store.database import Database
from tests.support.controller_scene import Driver, Scene, scene
from tests.support.postgres import Server

FILLED = [
    *("attempt", "trigger", "command", "job_event", "pod_group", "job", "queue"),
    *("job_history", "attempt_history", "work", "lease", "request"),
]
"""Tables in an order in which they can be emptied. The feed goes on: a hub reads it."""


@pytest.fixture(scope="package")
def _used(postgres: Server) -> Iterator[Database]:
    database = Database(postgres.make_database("controller_tests", template="template"))
    yield database
    database.close()


@pytest.fixture(scope="package")
def _serving(_used: Database) -> Iterator[Scene]:
    with scene(_used) as served:
        yield served


def empty(database: Database) -> None:
    """Leave nothing but the queues root and default."""
    with database.transaction() as session:
        session.connection().exec_driver_sql(
            ";".join(f"delete from {table}" for table in FILLED)
        )
        queues.make_well_known(session)


@pytest.fixture
def database(_used: Database) -> Database:
    """A database with the queues root and default and nothing else, which nobody else uses."""
    empty(_used)
    return _used


@pytest.fixture(scope="module")
def emptied(_serving: Scene, _used: Database) -> Scene:
    """A controller whose database is emptied once, for a module that needs no more."""
    empty(_used)
    return _serving


@pytest.fixture
def served(_serving: Scene, database: Database) -> Scene:
    """A controller with an empty database."""
    assert _serving.database is database
    return _serving


@pytest.fixture
def driver(database: Database) -> Driver:
    """Who makes passes, over pods in memory."""
    return Driver(database)
