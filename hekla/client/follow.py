"""Following one object through its life, whatever happens to the connection."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, TypeVar

from hekla.api.job import Job
from hekla.api.meta import ObjectMeta
from hekla.client.records import Change, ChangeType
from hekla.domain.errors import CursorExpiredError, NotFoundError, UnavailableError


class HasMetadata(Protocol):
    """An object of the API."""

    @property
    def metadata(self) -> ObjectMeta:
        """Who it is."""
        ...


Object = TypeVar("Object", bound=HasMetadata)
Object_co = TypeVar("Object_co", bound=HasMetadata, covariant=True)


class Source(Protocol[Object_co]):
    """Calls on the objects of one kind."""

    def get(self, namespace: str, name: str) -> Object_co:
        """One object."""
        ...

    def cursor(self, namespace: str = "") -> str:
        """Where to watch from so that nothing is missed from now on."""
        ...

    def watch(
        self,
        namespace: str = "",
        name: str = "",
        *,
        cursor: str = "",
        timeout: timedelta | None = None,
        on_outage: Callable[[UnavailableError], None] | None = None,
    ) -> Iterator[Change[Object_co]]:
        """Changes after ``cursor``."""
        ...


@dataclass(frozen=True, slots=True)
class Sighting:
    """A job as it was at one time."""

    job: Job
    gone: bool
    """It is deleted, with its pods and its group; this is what it last was."""


def follow(
    jobs: Source[Job],
    job: Job,
    *,
    cursor: str,
    timeout: timedelta | None = None,
    on_outage: Callable[[UnavailableError], None] | None = None,
) -> Generator[Sighting]:
    """What becomes of ``job`` after ``cursor``; ends when it is gone, or ``timeout`` is over.

    ``cursor`` is to be older than ``job`` (see ``Jobs.cursor``), so that nothing is missed.
    """
    for found, gone in followed(jobs, job, cursor=cursor, timeout=timeout, on_outage=on_outage):
        yield Sighting(found, gone=gone)


def followed(
    source: Source[Object],
    known: Object,
    *,
    cursor: str,
    timeout: timedelta | None = None,
    on_outage: Callable[[UnavailableError], None] | None = None,
) -> Generator[tuple[Object, bool]]:
    """As ``follow`` for an object of any kind: each state, and whether it is gone."""
    end = None if timeout is None else time.monotonic() + timeout.total_seconds()
    namespace, name, uid = known.metadata.namespace, known.metadata.name, known.metadata.uid
    while (left := None if end is None else end - time.monotonic()) is None or left > 0:
        span = None if left is None else timedelta(seconds=left)
        try:
            for change in source.watch(
                namespace, name, cursor=cursor, timeout=span, on_outage=on_outage
            ):
                cursor, found = change.cursor, change.object
                # One of the same name that was there before, or came after, is another one.
                if found is None or found.metadata.uid != uid:
                    continue
                known = found
                yield known, change.type is ChangeType.DELETED
                if change.type is ChangeType.DELETED:
                    return
        except CursorExpiredError:
            cursor = source.cursor(namespace)
            now = _found(source, namespace, name, uid)
            yield now or known, now is None
            if now is None:
                return
            known = now


def _found(source: Source[Object], namespace: str, name: str, uid: str) -> Object | None:
    try:
        found = source.get(namespace, name)
    except NotFoundError:
        return None
    return found if found.metadata.uid == uid else None
