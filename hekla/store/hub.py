"""One reader of the feed in a process, for any number of watchers.

The reader takes the feed and the objects it names in one snapshot, so that an object is
exactly as new as its last change. A watcher that begins, or resumes, first subscribes and
then catches up in a snapshot of its own; what reaches it twice is told by whether that
snapshot saw the transaction. So versions only grow, and nothing is lost.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from hekla.domain.errors import CursorExpiredError, ExhaustedError, UnavailableError
from hekla.store import feed
from hekla.store.database import Database, Session
from hekla.store.feed import BEGINNING, Cursor
from hekla.telemetry import metrics

log = logging.getLogger(__name__)

LONGEST_QUEUE: Final = 1_000
LONG_PAUSE: Final = timedelta(minutes=1)
"""After such a pause the reader makes sure that the ring has not gone round under it."""
BOOKMARK_SECONDS: Final = 10.0

_UNREADABLE: Final = object()

Rendered = TypeVar("Rendered")

Loader = Callable[[Session, Sequence[str] | None], Mapping[str, Any]]
"""Objects of a kind by uid, as models or as what is stored of them: those named, or all."""


@dataclass(slots=True)
class Item:
    """One object's news."""

    kind: str
    type: str
    """ADDED may also come to who knows the object: its first change is among those merged."""
    uid: str
    xid: int
    object: Any
    """A model or, also for DELETED, what is stored of one."""
    _rendered: Any = field(default=None)

    def rendered(self, render: Callable[[Any], Rendered]) -> Rendered | None:
        """``render(object)``, done once however many watchers ask.

        None if this version cannot read the object, which is then logged.
        """
        if self._rendered is None:
            try:
                self._rendered = render(self.object)
            except ValidationError:
                log.exception("stored object cannot be read", extra={"uid": self.uid})
                self._rendered = _UNREADABLE
        return None if self._rendered is _UNREADABLE else self._rendered


@dataclass(frozen=True, slots=True)
class News:
    """Items of one step of the reader, and the cursor after the last of them."""

    items: Sequence[Item]
    before: Cursor
    after: Cursor


class Subscription:
    """What one watcher has yet to read."""

    def __init__(self, kinds: Collection[str]) -> None:
        self.kinds = frozenset(kinds)
        self._queue: deque[News] = deque()
        self._waiting = 0
        self._changed = threading.Condition()
        self._end: Exception | None = None

    def put(self, news: News) -> None:
        """Add news; a watcher too far behind is ended instead, to resume."""
        items = [item for item in news.items if item.kind in self.kinds]
        with self._changed:
            if self._end is not None:
                return
            if self._waiting and self._waiting + len(items) > LONGEST_QUEUE:
                self._queue.clear()
                metrics.feed_dropped.inc()
                self._end = ExhaustedError(
                    "the watcher reads too slowly; resume from its last cursor"
                )
            elif items or not self._queue:
                self._queue.append(News(items, news.before, news.after))
                self._waiting += len(items)
            else:
                last = self._queue[-1]
                self._queue[-1] = News(last.items, last.before, news.after)
            self._changed.notify_all()

    def end(self, reason: Exception) -> None:
        """Wake the watcher for the last time."""
        with self._changed:
            self._end = self._end or reason
            self._changed.notify_all()

    def get(self, timeout: float) -> News | None:
        """The next news, or None if there is none within ``timeout`` seconds.

        Raises:
            ExhaustedError: the watcher was too slow.
            UnavailableError: the process is stopping.
            CursorExpiredError: the feed was lost; the watcher lists again.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._end, timeout)
            if self._queue:
                news = self._queue.popleft()
                self._waiting -= len(news.items)
                return news
            if self._end is not None:
                raise self._end
            return None


class Hub:
    """Reads the feed and hands it out."""

    def __init__(
        self,
        database: Database,
        loaders: Mapping[str, Loader],
        *,
        long_pause: timedelta = LONG_PAUSE,
    ) -> None:
        self._database = database
        self._loaders = loaders
        self._long_pause = long_pause
        self._subscriptions: set[Subscription] = set()
        self._lock = threading.Lock()
        self._cursor: Cursor | None = None
        self._read_until: datetime | None = None
        self._read_at = time.monotonic()

    @property
    def seconds_behind(self) -> float:
        """How long ago the feed was last read."""
        return time.monotonic() - self._read_at

    def read_once(self) -> bool:
        """Hand out what is new; return whether there was anything.

        Raises:
            CursorExpiredError: something was missed; every watcher lists again.
            UnavailableError: Postgres is away; the next call reads on from here.
        """
        try:
            news = self._news()
        except CursorExpiredError as error:
            with self._lock:
                self._cursor = None
                for subscription in self._subscriptions:
                    subscription.end(error)
            raise
        self._read_at = time.monotonic()
        with self._lock:
            self._cursor = news.after
            for subscription in self._subscriptions:
                subscription.put(news)
        return bool(news.items)

    def _news(self) -> News:
        before = self._cursor
        with self._database.snapshot() as session:
            if before is None:
                here = feed.start(session)
                return News((), here, here)
            batch = feed.since(session, before)
            # Who subscribes later than this catches up in a later snapshot.
            items = self._load(session, batch.changes, self._watched())
        last, self._read_until = self._read_until, batch.at
        if last is None or batch.at - last > self._long_pause:
            # The ring may have gone round under us.
            with self._database.transaction() as session:
                feed.check(session, before)
        return News(items, before, batch.cursor)

    def _watched(self) -> Collection[str]:
        with self._lock:
            return {kind for one in self._subscriptions for kind in one.kinds}

    def _load(
        self, session: Session, changes: Sequence[feed.Change], kinds: Collection[str]
    ) -> Sequence[Item]:
        newest: dict[tuple[str, str], feed.Change] = {}
        added: set[tuple[str, str]] = set()
        for change in changes:
            if change.kind not in kinds:
                continue
            key = (change.kind, change.uid)
            if change.type == feed.ADDED:
                added.add(key)
            newest.pop(key, None)  # so that the order is that of the last changes
            newest[key] = change
        wanted: dict[str, list[str]] = {}
        for (kind, uid), change in newest.items():
            if change.type != feed.DELETED:
                wanted.setdefault(kind, []).append(uid)
        found = {kind: self._loaders[kind](session, uids) for kind, uids in wanted.items()}
        items = []
        for (kind, uid), change in newest.items():
            if change.type == feed.DELETED:
                items.append(Item(kind, feed.DELETED, uid, change.xid, change.last))
            elif uid in found[kind]:
                type_ = feed.ADDED if (kind, uid) in added else feed.MODIFIED
                items.append(Item(kind, type_, uid, change.xid, found[kind][uid]))
        return items

    @contextmanager
    def subscribed(self, kinds: Collection[str]) -> Iterator[Subscription]:
        """A subscription, until the block ends."""
        subscription = Subscription(kinds)
        with self._lock:
            self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            with self._lock:
                self._subscriptions.discard(subscription)

    def watch(
        self,
        kind: str,
        cursor: str,
        *,
        going: Callable[[], bool],
        bookmark: float = BOOKMARK_SECONDS,
    ) -> Generator[tuple[Cursor, Item | None], None, None]:
        """Everything of ``kind`` after ``cursor`` (or, if it is empty, all there is first).

        Yields items, each with the cursor to resume from once it is dealt with, and now and
        then (after ``bookmark`` quiet seconds) a cursor alone, until ``going`` says no more.

        Raises:
            CursorExpiredError, ExhaustedError, UnavailableError: see :class:`Subscription`.
        """
        with self.subscribed([kind]) as subscription:
            caught_up = self._catch_up(kind, Cursor.parse(cursor))
            yield from _in_steps(caught_up)
            position = caught_up.after
            yield position, None
            told = time.monotonic()
            while going():
                news = subscription.get(timeout=0.5)
                if news is not None and not position.covers(news.before):
                    # The reader began only after we caught up: what lies between is ours.
                    news = self._catch_up(kind, position)
                # Snapshots of one server are ordered: each sees all that an earlier one does.
                if news is not None and news.after.covers(position):
                    fresh = [item for item in news.items if not position.sees(item.xid)]
                    yield from _in_steps(News(fresh, position, news.after))
                    position = news.after
                    told = time.monotonic() if fresh else told
                if time.monotonic() - told > bookmark:
                    yield position, None
                    told = time.monotonic()

    def _catch_up(self, kind: str, since: Cursor) -> News:
        with self._database.snapshot() as session:
            if since == BEGINNING:
                here = feed.start(session)
                everything = self._loaders[kind](session, None)
                items = [
                    Item(kind, feed.ADDED, uid, 0, found) for uid, found in everything.items()
                ]
                return News(items, BEGINNING, here)
            batch = feed.since(session, since)
            news = News(self._load(session, batch.changes, [kind]), since, batch.cursor)
        with self._database.transaction() as session:
            # Afterwards: what the ring dropped before we read is dropped by now.
            feed.check(session, since)
        return news

    def stop(self) -> None:
        """End every watcher."""
        with self._lock:
            for subscription in self._subscriptions:
                subscription.end(UnavailableError("the service is stopping; resume elsewhere"))


def _in_steps(news: News) -> Iterator[tuple[Cursor, Item | None]]:
    """Items with cursors: only the last one's passes them all."""
    for position, item in enumerate(news.items, start=1):
        yield (news.after if position == len(news.items) else news.before), item
