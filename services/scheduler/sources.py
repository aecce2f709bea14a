"""Where the cache's events come from: watches of Kubernetes and streams of the controller."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any, Final

from hekla import lifecycle
from hekla.domain.errors import CursorExpiredError, DomainError
from hekla.kube.client import KubeClient
from hekla.kube.events import RELISTED, WatchEvent
from hekla.kube.resources import NODES, PODS, PRIORITYCLASSES, Resource
from hekla.kube.subscription import Subscription
from services.scheduler.clients import BOOKMARK, UNREADABLE, Controller, News
from services.scheduler.core.objects import Group, Queue
from services.scheduler.events import GONE, Batch, Change, Event, Full, Kind
from services.scheduler.inbox import Inbox

SILENCE: Final = timedelta(seconds=30)
"""A stream that has not said anything for so long, not even a bookmark, counts as lagging."""
RETRY: Final = timedelta(milliseconds=500)

_WATCHED: Final[tuple[tuple[Kind, Resource, str], ...]] = (
    (Kind.NODE, NODES, "node"),
    (Kind.POD, PODS, "pod"),
    (Kind.PRIORITY_CLASS, PRIORITYCLASSES, "priority_class"),
)

log = logging.getLogger(__name__)


@contextmanager
def watching(client: KubeClient, put: Callable[[Event], None]) -> Iterator[None]:
    """Hand over what happens in Kubernetes until the block ends."""
    with ExitStack() as running:
        for kind, resource, name in _WATCHED:
            subscription = client.watch(
                resource, project=f"services.scheduler.projection:{name}"
            )
            thread = threading.Thread(
                target=_forward,
                args=(kind, subscription, put),
                name=f"watch-{resource.plural}",
            )
            thread.start()
            running.callback(thread.join)
            running.callback(subscription.close)
        yield


def _forward(kind: Kind, subscription: Subscription, put: Callable[[Event], None]) -> None:
    for batch in subscription:
        put(_event(kind, batch))


def _event(kind: Kind, batch: list[WatchEvent]) -> Event:
    if batch[0].type == RELISTED:
        return Full(kind, batch[0].object)
    return Batch(kind, [Change(*event) for event in batch])


class Stream:
    """One stream of the controller, followed for ever."""

    def __init__(self, kind: Kind, controller: Controller, inbox: Inbox) -> None:
        self.kind = kind
        self._controller = controller
        self._inbox = inbox
        self._stop = threading.Event()
        self._cursor = ""
        self._heard_at: float | None = None
        self._failure = "not connected yet"

    def problem(self) -> str | None:
        """Why what is known may be old, or None."""
        heard_at = self._heard_at
        if heard_at is None:
            return f"{self.kind}: {self._failure}"
        silence = time.monotonic() - heard_at
        if silence > SILENCE.total_seconds():
            return f"{self.kind}: nothing heard for {silence:.0f} s"
        return None

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follow it until the block ends. Close the channel before, or it takes a while."""
        with lifecycle.repeating(
            f"stream-{self.kind}", self._follow, idle=RETRY, stop=self._stop
        ):
            try:
                yield
            finally:
                self._stop.set()

    def stop(self) -> None:
        """Do not connect again."""
        self._stop.set()

    def _follow(self) -> bool:
        try:
            with self._controller.watch(self.kind, self._cursor) as news:
                self._take(news)
        except CursorExpiredError as error:
            log.warning("stream begins anew", extra={"kind": self.kind, "reason": str(error)})
            self._cursor = ""
            self._heard_at = None
            return True
        except DomainError as error:
            self._failure = str(error)
        connected = self._heard_at is not None
        self._heard_at = None
        if connected and not self._stop.is_set():
            log.warning("stream lost", extra={"kind": self.kind, "reason": self._failure})
        return connected  # once more at once: another replica may serve it

    def _take(self, news: Iterator[News]) -> None:
        # From an empty cursor all there is comes first, up to a bookmark: only then is it
        # known what is gone, and only then does a cursor stand for all of it.
        listing: dict[str, Any] | None = None if self._cursor else {}
        for cursor, changes in news:
            if listing is None:
                self._hear()
                found = [change for change in changes if change.object is not None]
                if found:
                    self._inbox.put(Batch(self.kind, found))
                self._cursor = cursor
            elif changes[0].type == BOOKMARK:
                self._inbox.put(Full(self.kind, list(listing.values())))
                listing = None
                self._hear()
                self._cursor = cursor
            else:
                _add(listing, changes)

    def _hear(self) -> None:
        if self._heard_at is None:
            log.info("stream connected", extra={"kind": self.kind})
        self._heard_at = time.monotonic()


def _add(listing: dict[str, Any], changes: Iterable[Change]) -> None:
    for type_, found in changes:
        if type_ == GONE:
            listing.pop(key(found), None)
        elif type_ != UNREADABLE:
            listing[key(found)] = found


def key(found: Group | Queue) -> str:
    """What tells objects of one kind apart."""
    return found.uid if isinstance(found, Group) else found.name
