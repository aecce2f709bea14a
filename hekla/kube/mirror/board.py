"""What the threads of one engine share: what is known, what is due, what is to be shown."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hekla.domain.names import Key
from hekla.kube.events import DELETED, WatchEvent
from hekla.kube.mirror.custom import Custom
from hekla.kube.mirror.known import Known
from hekla.kube.mirror.marks import Marks
from hekla.kube.mirror.showing import Showing, Waiting


class Due(NamedTuple):
    """Objects whose turn it is, with the custom resources of those that have one."""

    keys: Sequence[Key]
    customs: Mapping[Key, Custom]


class Board:
    """Safe for threads; nothing here waits."""

    def __init__(
        self,
        status_rate: float,
        clock: Callable[[], float],
        appeared: Callable[[Custom], None] | None = None,
    ) -> None:
        """``appeared`` is told of custom resources that an answer tells of first."""
        self._clock = clock
        self._appeared = appeared
        self._lock = threading.Lock()
        self._known = Known()
        self._marks = Marks()
        self._showing = Showing(status_rate)
        self._heard_at: dict[Key, float] = {}
        """When the first news came of what is marked."""
        self.woken = threading.Event()
        """Set when there may be something to do."""

    # ---- what is known

    def head(self, key: Key) -> Custom | None:
        """The custom resource of that name, as far as is known, without its object."""
        with self._lock:
            return self._known.head(key)

    def replace(self, customs: Sequence[Custom]) -> Sequence[Custom]:
        """Take all there are; return those that were not known."""
        with self._lock:
            before = self._known.uids()
            self._mark(list(self._known.replace(customs)))
        return [custom for custom in customs if custom.uid not in before]

    def take(self, events: Iterable[tuple[WatchEvent, Custom]]) -> Sequence[Custom]:
        """Take what a watch shows; return those that are new or have ended."""
        news: list[Custom] = []
        with self._lock:
            for event, custom in events:
                if event.type == DELETED:
                    self._known.remove(custom)
                    self._showing.forget(custom.key)
                    news.append(custom)
                else:
                    before = self._known.head(custom.key)
                    if not self._known.put(custom):
                        continue
                    if before is None or before.uid != custom.uid:
                        news.append(custom)
                self._mark([custom.key])
        return news

    def hear(self, custom: Custom) -> None:
        """Take an answer to a request."""
        with self._lock:
            before = self._known.head(custom.key)
            new = self._known.hear(custom) and (before is None or before.uid != custom.uid)
            if new:
                self._mark([custom.key])  # the watch will bring nothing new of it
        if new and self._appeared is not None:
            self._appeared(custom)

    def seen_to_go(self, key: Key, uid: str) -> bool:
        """Whether the end of that custom resource was seen.

        That the name is another one's, as far as is known, proves nothing: what is known may
        be older than the row.
        """
        with self._lock:
            return self._known.seen_to_go(key, uid)

    def leaves_dependents(self, key: Key, uid: str) -> bool:
        """Whether that custom resource was deleted so that what it owns stays."""
        with self._lock:
            return self._known.leaves_dependents(key, uid)

    # ---- what is due

    def mark(self, keys: Iterable[Key]) -> None:
        """Have these looked at."""
        with self._lock:
            self._mark(keys)
        self.woken.set()

    def _mark(self, keys: Iterable[Key]) -> None:
        now = self._clock()
        for key in keys:
            self._marks.mark([key], now)
            self._heard_at.setdefault(key, now)

    def put_off(self, keys: Iterable[Key]) -> None:
        """Have these looked at again after a while, longer each time."""
        now = self._clock()
        with self._lock:
            for key in keys:
                self._marks.put_off(key, now)

    def due(self, most: int) -> Due:
        """Those whose turn it is."""
        with self._lock:
            keys = self._marks.take(self._clock(), most)
            found = [(key, self._known.get(key)) for key in keys]
        return Due(keys, {key: custom for key, custom in found if custom is not None})

    def settled(self, keys: Iterable[Key]) -> None:
        """Nothing failed with these."""
        with self._lock:
            for key in keys:
                self._marks.settled([key])
                self._heard_at.pop(key, None)

    def heard_at(self, key: Key) -> float | None:
        """When the first news came of what is being looked at."""
        with self._lock:
            return self._heard_at.get(key)

    # ---- what is to be shown

    def show(self, key: Key, uid: str, status: Mapping[str, Any], *, urgent: bool) -> None:
        """Have a custom resource get this status in its turn."""
        with self._lock:
            now = self._clock()
            since = self._heard_at.get(key, now)
            self._showing.want(key, uid, status, since, urgent=urgent)

    def hide(self, key: Key) -> None:
        """A custom resource has its status."""
        with self._lock:
            self._showing.drop(key)

    def shown(self, most: int) -> Sequence[tuple[Waiting, Custom]]:
        """Statuses whose turn it is, with the custom resources they are for."""
        with self._lock:
            taken = self._showing.take(self._clock(), most)
            found = [(one, self._known.get(one.key)) for one in taken]
        return [
            (one, custom)
            for one, custom in found
            if custom is not None and custom.uid == one.uid
        ]

    # ---- when

    @property
    def waiting(self) -> int:
        """How many are due, or wait to be shown."""
        with self._lock:
            return len(self._marks) + len(self._showing)

    def pause(self) -> float | None:
        """In how many seconds something has its turn; None if nothing waits."""
        with self._lock:
            now = self._clock()
            instants = [self._marks.next_at(), self._showing.next_at(now)]
        ahead = [at - now for at in instants if at is not None]
        return max(0.0, min(ahead)) if ahead else None
