"""Watches: what changed after a resource version, then what changes from now on.

Each kind has a feed: its last changes and its live watchers. A watcher that asks for more
than the feed remembers is told to list again (410); one that does not read is closed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final

import orjson

from hekla.local.answers.forms import Form, Plain
from hekla.local.kinds import errors
from hekla.local.kinds.registry import Kind
from hekla.local.serving.faults import Faults
from hekla.local.storage.memory import ADDED, DELETED, MODIFIED, Change, Entry, Storage
from hekla.local.storage.selection import Selection

UNREAD: Final = 20_000
"""Events that a watcher may leave unread."""


class _Event:
    """A change and the lines that tell of it, made once for all watchers."""

    __slots__ = ("_lines", "change")

    def __init__(self, change: Change) -> None:
        self.change = change
        self._lines: dict[tuple[str, str], bytes] = {}

    def line(self, type_: str, form: Form) -> bytes:
        """The object as it is now, under that type."""
        found = self._lines.get((type_, form.key))
        if found is None:
            found = event_line(type_, form.one(self.change.entry))
            self._lines[type_, form.key] = found
        return found

    def left(self, previous: Entry, form: Form) -> bytes:
        """That the object left a selection: its state before, at the version of the change."""
        found = self._lines.get(("", form.key))
        if found is None:
            value = previous.object()
            value["metadata"]["resourceVersion"] = str(self.change.version)
            before = previous._replace(raw=orjson.dumps(value))
            found = self._lines["", form.key] = event_line(DELETED, form.one(before))
        return found

    def line_for(self, selection: Selection, form: Form) -> bytes | None:
        """What a watcher of ``selection`` hears, if anything."""
        type_, entry, previous = self.change
        if selection.everything:
            return self.line(type_, form)
        was = previous is not None and selection.matches(previous)
        if type_ == DELETED:
            return self.line(DELETED, form) if was else None
        if selection.matches(entry):
            return self.line(MODIFIED if was else ADDED, form)
        return self.left(previous, form) if was and previous is not None else None


class Watcher:
    """One watch: lines to send, in order."""

    def __init__(self, selection: Selection, since: int, form: Form) -> None:
        self.selection = selection
        self.since = since
        self.form = form
        self._lines: list[bytes] = []
        self._woken = asyncio.Event()
        self.closed = False

    def offer(self, event: _Event) -> None:
        """Take in an event, unless it is not meant or known already."""
        if event.change.version <= self.since:
            return
        line = event.line_for(self.selection, self.form)
        if line is not None:
            self.push(line)

    def push(self, line: bytes) -> None:
        """Take in a line, or several as one."""
        if len(self._lines) >= UNREAD:
            self.close()
            return
        self._lines.append(line)
        self._woken.set()

    def close(self) -> None:
        """End the watch; the client resumes where it was."""
        self.closed = True
        self._woken.set()

    async def take(self, timeout: float) -> bytes:
        """The lines that came, as soon as there are some; nothing after ``timeout`` seconds."""
        if not self._lines and not self.closed:
            try:
                async with asyncio.timeout(timeout):
                    await self._woken.wait()
            except TimeoutError:
                return b""
        return self.rest()

    def rest(self) -> bytes:
        """The lines that wait now."""
        self._woken.clear()
        lines, self._lines = self._lines, []
        return b"".join(lines)


class _Feed:
    """The history of one kind and who listens to it."""

    def __init__(self, start: int) -> None:
        self.compacted = start
        """The newest version of which events may have been forgotten."""
        self.events: deque[_Event] = deque()
        self.watchers: set[Watcher] = set()


class Watches:
    """All feeds. The fault mode may hold changes back before the feeds hear of them."""

    def __init__(self, storage: Storage, faults: Faults, *, history: int) -> None:
        self._storage = storage
        self._faults = faults
        self._history = history
        self._start = self.released = storage.version
        self._feeds: dict[str, _Feed] = {}
        self._held: deque[tuple[float, Sequence[Change]]] = deque()
        self._closed = False
        storage.listen(self._hear)

    def open(self, selection: Selection, since: int, form: Form | None = None) -> Watcher:
        """A watcher of what happens after ``since``, told in that form, else plainly.

        Raises:
            ApiError: the events after ``since`` are no longer known.
        """
        feed = self._feed(selection.kind)
        if since < feed.compacted:
            raise errors.expired(f"too old resource version: {since} ({feed.compacted})")
        watcher = Watcher(selection, since, form or Plain(selection.kind))
        missed = []
        for event in reversed(feed.events):
            if event.change.version <= since:
                break
            missed.append(event)
        for event in reversed(missed):
            watcher.offer(event)
        feed.watchers.add(watcher)
        if self._closed:
            watcher.close()
        return watcher

    def compacted(self, kind: Kind) -> int:
        """The newest version of which events of a kind may have been forgotten."""
        return self._feed(kind).compacted

    def leave(self, watcher: Watcher) -> None:
        """Forget a watcher."""
        self._feed(watcher.selection.kind).watchers.discard(watcher)

    def forget(self, kind: Kind) -> None:
        """End the watches of a kind that is served no more; what it was is forgotten."""
        feed = self._feed(kind)
        for watcher in feed.watchers:
            watcher.close()
        self._feeds[kind.resource] = _Feed(self._storage.version)

    def close(self) -> None:
        """End all watches, and those that come, for the server stops."""
        self._closed = True
        for feed in self._feeds.values():
            for watcher in feed.watchers:
                watcher.close()

    def _feed(self, kind: Kind) -> _Feed:
        feed = self._feeds.get(kind.resource)
        if feed is None:
            feed = self._feeds[kind.resource] = _Feed(self._start)
        return feed

    def _hear(self, changes: Sequence[Change]) -> None:
        delay = self._faults.watch_delay_seconds
        if not delay and not self._held:
            self._release(changes)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + delay
        if self._held:
            due = max(due, self._held[-1][0])  # never before what came earlier
        else:
            loop.call_at(due, self._release_due)
        self._held.append((due, changes))

    def _release_due(self) -> None:
        loop = asyncio.get_running_loop()
        while self._held and self._held[0][0] <= loop.time():
            self._release(self._held.popleft()[1])
        if self._held:
            loop.call_at(self._held[0][0], self._release_due)

    def _release(self, changes: Sequence[Change]) -> None:
        for change in changes:
            feed = self._feed(change.entry.kind)
            event = _Event(change)
            feed.events.append(event)
            if len(feed.events) > self._history:
                feed.compacted = feed.events.popleft().change.version
            for watcher in feed.watchers:
                watcher.offer(event)
        self.released = changes[-1].version


def event_line(type_: str, raw: bytes) -> bytes:
    """One event as it goes over the wire."""
    return b'{"type":"%b","object":%b}\n' % (type_.encode(), raw)


def bookmark_line(form: Form, version: int, *, initial_end: bool = False) -> bytes:
    """That the watcher has heard everything up to ``version``."""
    metadata: dict[str, object] = {"resourceVersion": str(version), "creationTimestamp": None}
    if initial_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return event_line("BOOKMARK", form.mark(metadata))
