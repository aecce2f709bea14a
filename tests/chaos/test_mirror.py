"""The mirror under many more orders of things than the gate has time for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from hekla.store.database import Database
from tests.support.local_cluster import LocalCluster
from tests.support.mirror_model import check, world
from tests.support.postgres import Server

pytestmark = pytest.mark.long

EXAMPLES: Final = int(os.environ.get("MIRROR_EXAMPLES", "200"))


def test_both_sides_agree_in_the_end_whatever_happens(postgres: Server, tmp_path: Path) -> None:
    database = Database(postgres.make_database("mirror_chaos", template="template"))
    cluster = LocalCluster(tmp_path / "cluster", "--nodes=0").start()
    with world(database, cluster) as found:
        check(found, examples=EXAMPLES, steps=50, derandomize=False)
    database.close()
    assert cluster.end() == 0
