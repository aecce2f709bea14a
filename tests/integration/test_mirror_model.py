"""Custom resources and rows agree in the end, whatever happens."""

from __future__ import annotations

from pathlib import Path

from hekla.store.database import Database
from tests.support.local_cluster import LocalCluster
from tests.support.mirror_model import check, world
from tests.support.postgres import Server


def test_both_sides_agree_in_the_end_whatever_happens(postgres: Server, tmp_path: Path) -> None:
    database = Database(postgres.make_database("mirror_model", template="template"))
    cluster = LocalCluster(tmp_path / "cluster", "--nodes=0").start()
    with world(database, cluster) as found:
        check(found, examples=8, steps=30, derandomize=True)
    database.close()
    assert cluster.end() == 0
