"""One controller and one flow service for all of these tests, each in its own namespace."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import pytest

from hekla.store.database import Database
from tests.support.controller_scene import scene
from tests.support.flow_scene import FlowScene, flow_scene
from tests.support.postgres import Server

_numbers = itertools.count()


@pytest.fixture(scope="package")
def _running(postgres: Server) -> Iterator[FlowScene]:
    database = Database(postgres.make_database("flow_tests", template="template"))
    try:
        with scene(database) as served, flow_scene(database, served) as running:
            yield running
    finally:
        database.close()


@pytest.fixture
def flows(_running: FlowScene) -> FlowScene:
    """The service, in a namespace of this test's own."""
    return dataclasses.replace(_running, namespace=f"n{next(_numbers)}")
