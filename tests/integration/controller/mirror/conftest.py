"""One cluster, one database and one mirror for all of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hekla.store.database import Database
from tests.support.mirror_scene import MirrorScene, mirror_scene
from tests.support.postgres import Server


@pytest.fixture(scope="package")
def scene(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MirrorScene]:
    database = Database(postgres.make_database("mirror_tests", template="template"))
    with mirror_scene(database, tmp_path_factory.mktemp("mirror")) as found:
        yield found
    database.close()


@pytest.fixture
def mirrored_scene(scene: MirrorScene) -> MirrorScene:
    if not scene.mirroring:
        scene.start()
    return scene
