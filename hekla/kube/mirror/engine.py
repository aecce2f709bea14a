"""Keeps one kind on both sides: looks at what is due, decides, acts, and shows statuses.

One thread takes in what the watch brings, another does the work; whoever knows of changed rows
calls ``mark``. Nothing is remembered that could not be found again: what is marked is read
afresh, and after every full list everything is looked at. So a crash, a missed event or a
failed act at any point costs a look, and one object that cannot be taken holds up no other.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

from hekla import failpoint
from hekla.domain.errors import (
    ConflictError,
    UnavailableError,
)
from hekla.domain.names import Key
from hekla.kube.client import KubeClient
from hekla.kube.events import RELISTED, WatchEvent
from hekla.kube.mirror import bodies
from hekla.kube.mirror.board import Board, Due
from hekla.kube.mirror.complaints import Complaints
from hekla.kube.mirror.custom import Custom, read
from hekla.kube.mirror.deciding import (
    Create,
    Delete,
    Refuse,
    Rewrite,
    Row,
    Show,
)
from hekla.kube.mirror.rows import DeposedError, Mirrored
from hekla.kube.mirror.taking import Look, Taker, show_row
from hekla.kube.mirror.writing import Writer
from hekla.kube.subscription import Subscription
from hekla.lifecycle import repeating
from hekla.telemetry import metrics

log = logging.getLogger(__name__)

BATCH: Final = 500
"""Objects looked at together."""
STATUS_RATE: Final = 200.0
"""Statuses of one kind written in a second, unless told otherwise."""
IDLE: Final = 1.0


class Engine:
    """The mirror of one kind."""

    def __init__(
        self,
        mirrored: Mirrored,
        kube: KubeClient,
        *,
        status_rate: float = STATUS_RATE,
        clock: Callable[[], float] = time.monotonic,
        appeared: Callable[[Custom], None] | None = None,
    ) -> None:
        """Take what a service brings along.

        Args:
            mirrored: the kind.
            kube: the API server.
            status_rate: statuses a second.
            clock: monotonic seconds.
            appeared: told of every custom resource that is new or has ended, by whichever
                thread learns of it; must not block.
        """
        self.kind = mirrored
        self._kube = kube
        self._clock = clock
        self._appeared = appeared
        self._board = Board(status_rate, clock, appeared)
        self._writer = Writer(mirrored, kube, self._board)
        self._complaints = Complaints(mirrored, self._board, self._writer)
        self._taker = Taker(mirrored, self._board, self._writer, self._complaints, clock)
        self._listed = threading.Event()
        self._look_at_all = False
        self.deposed = threading.Event()
        """Set once the rows say that this process does not lead any more."""

    # ---- what others tell it, and may ask

    def mark(self, keys: Iterable[Key]) -> None:
        """Have objects of these names looked at: their rows changed, or may have."""
        self._board.mark(keys)

    def mark_all(self) -> None:
        """Have every object looked at: changes may have been missed."""
        self._look_at_all = True
        self._board.woken.set()

    def known(self, key: Key) -> Custom | None:
        """The custom resource of that name, as far as is known, without its object."""
        return self._board.head(key)

    @property
    def listed(self) -> bool:
        """Whether all custom resources were seen once: before that nothing is done."""
        return self._listed.is_set()

    @property
    def waiting(self) -> int:
        """How many objects are due, or have a status that is to be written."""
        return self._board.waiting

    # ---- running

    @contextmanager
    def running(self) -> Iterator[None]:
        """Watch and work in threads until the block ends."""
        subscription = self._kube.watch(self.kind.resource)
        name = self.kind.name
        watching = threading.Thread(
            target=self._watch, args=[subscription], name=f"watch-{name}", daemon=True
        )
        watching.start()
        ended = threading.Event()

        def work() -> bool:
            if not ended.is_set():
                self._work()
            return not ended.is_set()

        try:
            with repeating(f"mirror-{name}", work, idle=timedelta(seconds=IDLE)):
                try:
                    yield
                finally:
                    ended.set()
                    self._board.woken.set()
        finally:
            subscription.close()
            watching.join(timeout=10)

    def _watch(self, subscription: Subscription) -> None:
        for batch in subscription:
            self.take(batch)

    def _work(self) -> None:
        """One round, and a pause until the next is due."""
        self._board.woken.clear()
        pause: float | None = IDLE
        if self.listed and not self.deposed.is_set():
            pause = self.work_once()
        self._board.woken.wait(IDLE if pause is None else min(pause, IDLE))

    # ---- what the watch brings

    def take(self, batch: Sequence[WatchEvent]) -> None:
        """Take in one batch of the watch."""
        if batch and batch[0].type == RELISTED:
            listed = [one for one in map(self._read, batch[0].object) if one is not None]
            news = self._board.replace(listed)
            self._look_at_all = True
            self._listed.set()
        else:
            found = [(event, self._read(event.object)) for event in batch]
            news = self._board.take(
                (event, custom) for event, custom in found if custom is not None
            )
        if self._appeared is not None:
            for custom in news:
                self._appeared(custom)
        self._board.woken.set()

    def _read(self, raw: Any) -> Custom | None:
        try:
            return read(self.kind.resource, raw)
        except ValueError:
            log.exception("object cannot be read", extra={"kind": self.kind.name})
            return None

    # ---- one round

    def work_once(self) -> float | None:
        """Look at what is due and write statuses; return the seconds until there is more.

        None if nothing is known to come. Whatever it raises, what it looked at is looked at
        again.
        """
        if self._look_at_all:
            self._look_at_all = False
            try:
                self._board.mark(self.kind.rows.keys())
            except BaseException:
                self._look_at_all = True
                raise
        due = self._board.due(BATCH)
        if due.keys:
            self._guarded(due.keys, lambda: self._look(due))
        self._show()
        metrics.mirror_waiting.labels(self.kind.name).set(self._board.waiting)
        return self._board.pause()

    def _guarded(self, keys: Collection[Key], act: Callable[[], None]) -> None:
        try:
            act()
        except DeposedError as error:
            log.warning("mirror deposed", extra={"kind": self.kind.name, "error": str(error)})
            self._board.put_off(keys)
            self.deposed.set()
        except (UnavailableError, ConflictError) as error:
            log.warning("mirror waits", extra={"kind": self.kind.name, "error": str(error)})
            self._board.put_off(keys)
        except BaseException:
            self._board.put_off(keys)
            raise

    def _look(self, due: Due) -> None:
        rows = self.kind.rows.read(due.keys)
        looks = []
        for key in due.keys:
            custom, row = due.customs.get(key), rows.get(key)
            looks.append(self._decided(key, custom, row))
        self._taker.take(looks)
        failpoint.hit("mirror.row-taken")
        self._write(looks)
        failpoint.hit("mirror.custom-written")
        for look in looks:
            if not look.failed:
                self._tell(look)
        self._board.settled(look.key for look in looks if not look.failed)

    def _decided(self, key: Key, custom: Custom | None, row: Row | None) -> Look:
        try:
            steps = self.kind.decide(custom, row, self.kind.rules)
        except Exception:  # one item of a batch: others do not wait for it
            log.exception("not decided", extra={"kind": self.kind.name, "key": str(key)})
            self._board.put_off([key])
            return Look(key, custom, row, (), failed=True)
        return Look(key, custom, row, steps)

    # ---- custom resources

    def _write(self, looks: Sequence[Look]) -> None:
        going = [look for look in looks if not look.failed]
        steps = [step for look in going for step in look.steps]
        failed = self._writer.create([step for step in steps if isinstance(step, Create)])
        failed |= self._writer.rewrite([step for step in steps if isinstance(step, Rewrite)])
        failed |= self._writer.delete([step for step in steps if isinstance(step, Delete)])
        for look in going:
            look.failed = look.key in failed

    def _tell(self, look: Look) -> None:
        """Have the row's status shown, or what is wrong with the custom resource."""
        if look.custom is None:
            self._complaints.forget(look.key)
        told = False
        for step in look.steps:
            if isinstance(step, Refuse):
                self._complaints.say(step.custom, step.reason, step.message)
                told = True
            elif isinstance(step, Show):
                show_row(self._board, step)
                told = True
        if not told and look.row is not None:
            self._board.hide(look.key)

    def _show(self) -> None:
        """Write the statuses whose turn it is."""
        kind = self.kind
        due: list[tuple[Key, Any]] = []
        since: dict[Key, float] = {}
        for one, custom in self._board.shown(BATCH):
            patch = bodies.show(
                kind.resource, custom, one.status, status_apart=kind.status_apart
            )
            if patch is not None:
                due.append((one.key, patch))
                since[one.key] = one.since
        if due:
            self._guarded(since, lambda: self._write_statuses(due, since))

    def _write_statuses(self, due: Sequence[tuple[Key, Any]], since: dict[Key, float]) -> None:
        failed = self._writer.statuses(due)
        now = self._clock()
        for key, heard in since.items():
            if key in failed:
                self._complaints.forget(key)
            else:
                metrics.mirror_seconds.labels(self.kind.name, "out").observe(now - heard)
