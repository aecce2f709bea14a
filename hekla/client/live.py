"""What a list finds, and then each change of it, for as long as somebody wants to know."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TypeVar

from hekla.api.job import Job
from hekla.api.pod_group import PodGroup
from hekla.api.queue import Queue
from hekla.client.records import Change, ChangeType, Listing
from hekla.domain.errors import CursorExpiredError

T = TypeVar("T", Job, PodGroup, Queue)


def live(
    listed: Callable[[], Listing[T]],
    watched: Callable[[str, timedelta | None], Iterator[Change[T]]],
    *,
    timeout: timedelta | None,
) -> Iterator[Change[T]]:
    """Each object as ADDED, then what becomes of it; ends when ``timeout`` is over.

    A cursor that grew too old is replaced by a new list, and what is missing from it is
    DELETED as it was last seen.
    """
    end = None if timeout is None else time.monotonic() + timeout.total_seconds()
    known: dict[str, T] = {}
    while (left := None if end is None else end - time.monotonic()) is None or left > 0:
        found = listed()
        present = {item.metadata.uid for item in found.items}
        for uid in [uid for uid in known if uid not in present]:
            yield Change(found.cursor, ChangeType.DELETED, known.pop(uid))
        for item in found.items:
            yield from _seen(known, found.cursor, item)
        try:
            for change in watched(
                found.cursor, None if left is None else timedelta(seconds=left)
            ):
                thing = change.object
                if thing is None:
                    continue
                if change.type is not ChangeType.DELETED:
                    yield from _seen(known, change.cursor, thing)
                elif known.pop(thing.metadata.uid, None) is not None:
                    yield Change(change.cursor, ChangeType.DELETED, thing)
        except CursorExpiredError:
            continue
        return


def _seen(known: dict[str, T], cursor: str, item: T) -> Iterator[Change[T]]:
    uid = item.metadata.uid
    before = known.get(uid)
    known[uid] = item
    if before is None:
        yield Change(cursor, ChangeType.ADDED, item)
    elif before != item:
        yield Change(cursor, ChangeType.MODIFIED, item)
