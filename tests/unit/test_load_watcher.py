"""What the watcher of a load notes of the changes it is told."""

from __future__ import annotations

from hekla.v1 import job_pb2
from tests.load.watcher import News, Seen, note


def changed(version: int, phase: str) -> job_pb2.Job:
    job = job_pb2.Job()
    job.metadata.name, job.metadata.uid = "load-1", "u"
    job.metadata.resource_version = str(version)
    job.status.state.phase = phase
    return job


def test_an_end_that_is_told_with_the_removal_counts() -> None:
    """Changes that are read at once are told as one: the last."""
    views: dict[str, Seen] = {}

    first = note(views, "ADDED", changed(1, "Pending"), "load-", at=1.0)
    last = note(views, "DELETED", changed(5, "Completed"), "load-", at=2.0)

    assert first == News("Pending")
    assert last == News("Completed", moved=True, gone=True)
    assert views["u"].phases == {"Pending": 1.0, "Completed": 2.0}
    assert views["u"].deleted == 2.0


def test_a_phase_counts_once() -> None:
    views: dict[str, Seen] = {}
    note(views, "MODIFIED", changed(2, "Completed"), "load-", at=1.0)

    assert note(views, "DELETED", changed(3, "Completed"), "load-", at=2.0) == News(gone=True)
