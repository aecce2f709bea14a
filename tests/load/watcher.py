"""A process that watches jobs and pod groups, and notes when it saw what."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from typing import Any, Final, NamedTuple

import grpc

from hekla.rpc.channel import connect
from hekla.v1 import job_service_pb2, pod_group_service_pb2
from hekla.v1.job_service_pb2_grpc import JobServiceStub
from hekla.v1.pod_group_service_pb2_grpc import PodGroupServiceStub
from tests.load.shapes import NAMESPACE

PAUSE: Final = 0.2
LONGEST: Final = 3600.0
_WAITING: Final = frozenset({"", "Pending"})
_ENDED: Final = frozenset({"Completed", "Failed", "Aborted", "Terminated"})


@dataclass(slots=True)
class Seen:
    """What a watcher saw of one object. Times are seconds since the epoch."""

    name: str
    first: float
    phases: dict[str, float] = field(default_factory=dict)
    """When each phase was first seen, in that order."""
    version: int = -1
    """The newest version."""
    backwards: list[tuple[int, int]] = field(default_factory=list)
    """Versions that did not grow: (before, after)."""
    deleted: float | None = None
    owner: str = ""


@dataclass(slots=True)
class Views:
    """Everything a watcher saw, by uid."""

    jobs: dict[str, Seen] = field(default_factory=dict)
    groups: dict[str, Seen] = field(default_factory=dict)
    reopened: int = 0
    """How often a stream ended and was opened anew."""
    errors: list[str] = field(default_factory=list)


class Watcher:
    """The running watcher."""

    def __init__(
        self,
        process: multiprocessing.process.BaseProcess,
        asking: Connection,
        counts: tuple[Synchronized[int], ...],
    ) -> None:
        self._process = process
        self._asking = asking
        self._counts = counts

    def pids(self) -> list[int]:
        """Of the process."""
        return [self._process.pid] if self._process.pid is not None else []

    @property
    def inqueue(self) -> int:
        """How many groups were seen let in."""
        return self._counts[0].value

    @property
    def running(self) -> int:
        """How many jobs were seen running, or past that."""
        return self._counts[1].value

    @property
    def ended(self) -> int:
        """How many jobs were seen at their end."""
        return self._counts[2].value

    @property
    def deleted(self) -> int:
        """How many jobs were seen gone."""
        return self._counts[3].value

    def views(self) -> Views:
        """What it saw so far."""
        self._asking.send(None)
        views: Views = self._asking.recv()
        return views


@contextmanager
def watching(address: str, prefix: str) -> Iterator[Watcher]:
    """Watch jobs whose names begin so, and their groups; it has begun when this returns."""
    context = multiprocessing.get_context("spawn")
    asking, answering = context.Pipe()
    counts = tuple(context.Value("i", 0) for _ in range(4))
    process = context.Process(
        target=watch_all, args=(address, prefix, counts, answering), daemon=True
    )
    process.start()
    watcher = Watcher(process, asking, counts)
    watcher.views()
    try:
        yield watcher
    finally:
        process.kill()


def watch_all(
    address: str,
    prefix: str,
    counts: tuple[Synchronized[int], ...],
    answering: Connection,
) -> None:
    """Watch, and say what was seen whenever asked. Runs in a process of its own."""
    views, lock = Views(), threading.Lock()
    inqueue, running, ended, deleted = counts
    with connect(address) as channel:
        jobs, groups = JobServiceStub(channel), PodGroupServiceStub(channel)

        def open_jobs(cursor: str) -> Any:
            request = job_service_pb2.WatchJobsRequest(namespace=NAMESPACE, cursor=cursor)
            return jobs.WatchJobs(request, timeout=LONGEST)

        def open_groups(cursor: str) -> Any:
            request = pod_group_service_pb2.WatchPodGroupsRequest(
                namespace=NAMESPACE, cursor=cursor
            )
            return groups.WatchPodGroups(request, timeout=LONGEST)

        def note_job(change: Any) -> None:
            with lock:
                told = note(views.jobs, change.type, change.job, prefix, at=time.time())
            running.value += told.moved
            ended.value += told.phase in _ENDED
            deleted.value += told.gone

        def note_group(change: Any) -> None:
            with lock:
                told = note(views.groups, change.type, change.pod_group, prefix, at=time.time())
            inqueue.value += told.moved

        for start, take in ((open_jobs, note_job), (open_groups, note_group)):
            read = partial(_read, start, take, views)
            threading.Thread(target=read, daemon=True).start()
        while True:
            answering.recv()
            with lock:
                answering.send(views)


def _read(start: Callable[[str], Any], take: Callable[[Any], None], views: Views) -> None:
    """Read a stream, and open it again from where it was, for ever."""
    cursor = ""
    while True:
        try:
            for change in start(cursor):
                cursor = change.cursor
                if change.type != "BOOKMARK":
                    take(change)
        except grpc.RpcError as error:
            views.reopened += 1
            code = error.code()
            if code is grpc.StatusCode.OUT_OF_RANGE:
                cursor = ""
            elif code is not grpc.StatusCode.UNAVAILABLE:
                views.errors.append(f"{code.name}: {error.details()}")
        time.sleep(PAUSE)


class News(NamedTuple):
    """What a change told for the first time."""

    phase: str = ""
    """The phase, if it is new."""
    moved: bool = False
    """Whether the object is no longer pending."""
    gone: bool = False


def note(views: dict[str, Seen], kind: str, item: Any, prefix: str, *, at: float) -> News:
    """Note a change of one object, and say what is new in it."""
    if not item.metadata.name.startswith(prefix):
        return News()
    seen = views.setdefault(item.metadata.uid, Seen(item.metadata.name, at))
    version = int(item.metadata.resource_version)
    if version <= seen.version:
        seen.backwards.append((seen.version, version))
    seen.version = max(seen.version, version)
    for owner in item.metadata.owner_references:
        seen.owner = owner.uid
    gone = kind == "DELETED"
    if gone:
        seen.deleted = at
    phase = phase_of(item)  # of what is gone the last one, which may be news too
    if phase in seen.phases:
        return News(gone=gone)
    moved = phase not in _WAITING and not (seen.phases.keys() - _WAITING)
    seen.phases[phase] = at
    return News(phase, moved, gone)


def phase_of(item: Any) -> str:
    """The phase of a job or of a pod group."""
    status = item.status
    phase = status.state.phase if hasattr(status, "state") else status.phase
    return str(phase)
