"""Following one job through its life, whatever happens to the connection."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from hekla.api.job import Job
from hekla.client.records import ChangeType
from hekla.domain.errors import CursorExpiredError, NotFoundError, UnavailableError

if TYPE_CHECKING:
    from hekla.client.jobs import Jobs


@dataclass(frozen=True, slots=True)
class Sighting:
    """A job as it was at one time."""

    job: Job
    gone: bool
    """It is deleted, with its pods and its group; this is what it last was."""


def follow(
    jobs: Jobs,
    job: Job,
    *,
    cursor: str,
    timeout: timedelta | None = None,
    on_outage: Callable[[UnavailableError], None] | None = None,
) -> Generator[Sighting]:
    """What becomes of ``job`` after ``cursor``; ends when it is gone, or ``timeout`` is over.

    ``cursor`` is to be older than ``job`` (see ``Jobs.cursor``), so that nothing is missed.
    """
    end = None if timeout is None else time.monotonic() + timeout.total_seconds()
    namespace, name, uid = job.metadata.namespace, job.metadata.name, job.metadata.uid
    while (left := None if end is None else end - time.monotonic()) is None or left > 0:
        span = None if left is None else timedelta(seconds=left)
        try:
            for change in jobs.watch(
                namespace, name, cursor=cursor, timeout=span, on_outage=on_outage
            ):
                cursor, found = change.cursor, change.object
                # One of the same name that was there before, or came after, is another job.
                if found is None or found.metadata.uid != uid:
                    continue
                job = found
                yield Sighting(job, gone=change.type is ChangeType.DELETED)
                if change.type is ChangeType.DELETED:
                    return
        except CursorExpiredError:
            cursor = jobs.cursor(namespace)
            found = _found(jobs, namespace, name, uid)
            yield Sighting(found or job, gone=found is None)
            if found is None:
                return
            job = found


def _found(jobs: Jobs, namespace: str, name: str, uid: str) -> Job | None:
    try:
        found = jobs.get(namespace, name)
    except NotFoundError:
        return None
    return found if found.metadata.uid == uid else None
