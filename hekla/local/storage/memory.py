"""Every object of every kind, in memory, with one resource version for all.

Writers see what was written before them at once (``latest``); everybody else sees a write
only when the journal has it on the disk (``get``, ``select``, listeners). So nothing that
was shown or answered is ever lost, and whoever awaits ``settled()`` reads their own writes.
Objects are kept as the bytes that are answered, which cannot be changed by mistake.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, NamedTuple

import orjson

from hekla.local.kinds import errors
from hekla.local.kinds.registry import Kind, Object, Registry
from hekla.local.storage.journal import Journal, JournalError, Row

LARGEST: Final = 3 * 2**19
"""Bytes of one object, as in etcd: 1.5 MiB."""
ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"

log = logging.getLogger(__name__)


class Entry(NamedTuple):
    """One version of one object."""

    kind: Kind
    namespace: str
    name: str
    uid: str
    version: int
    labels: Mapping[str, str]
    fields: tuple[str, ...]
    """The values of ``kind.fields``, in that order."""
    deleting: bool
    raw: bytes

    def object(self) -> Object:
        """A fresh copy of the object, for the caller to change."""
        parsed: Object = orjson.loads(self.raw)
        return parsed

    def field(self, name: str) -> str:
        """The value of one of the kind's fields."""
        return self.fields[list(self.kind.fields).index(name)]


class Change(NamedTuple):
    """One step in the history of one object."""

    type: str
    entry: Entry
    """The new state; of a deletion the last state, with the deletion's version."""
    previous: Entry | None

    @property
    def version(self) -> int:
        """The resource version it made."""
        return self.entry.version


Listener = Callable[[Sequence[Change]], None]
_Address = tuple[str, str, str]


class Storage:
    """The objects. Belongs to one event loop; only the journal has a thread of its own."""

    def __init__(self, journal: Journal, registry: Registry) -> None:
        self._journal = journal
        self._registry = registry
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._objects: dict[str, dict[str, dict[str, Entry]]] = {}
        self._pending: dict[_Address, Change] = {}
        self._gathering: list[Change] = []
        self._gathering_done: asyncio.Future[None] | None = None
        self._writing_done: asyncio.Future[None] | None = None
        self._listeners: list[Listener] = []
        self.version = self._last = journal.version()
        self._unserved: dict[str, list[Row]] = {}
        for row in journal.rows():
            self._unserved.setdefault(row.resource, []).append(row)
        for kind in registry:
            self.serve(kind)

    def serve(self, kind: Kind) -> None:
        """Take in the objects of a kind that the journal had when nobody served it."""
        for row in self._unserved.pop(kind.resource, []):
            if row.raw is not None:
                self._place(_stated(kind, row.raw))

    def restate(self, kind: Kind) -> None:
        """Read the objects of a kind anew, as its definition says by now."""
        for space in self._objects.get(kind.resource, {}).values():
            for name, entry in space.items():
                space[name] = _stated(kind, entry.raw)

    def listen(self, listener: Listener) -> None:
        """Call ``listener`` with every batch of changes, in order, once it lasts."""
        self._listeners.append(listener)

    def get(self, kind: Kind, namespace: str, name: str) -> Entry | None:
        """The object as it lasts."""
        return self._objects.get(kind.resource, {}).get(namespace, {}).get(name)

    def read(self, namespace: str, kind: Kind, name: str) -> Object | None:
        """A copy of the object as it lasts, as the pods of a namespace find it."""
        entry = self.get(kind, namespace if kind.namespaced else "", name)
        return None if entry is None else entry.object()

    def select(self, kind: Kind, namespace: str | None = None) -> Iterator[Entry]:
        """All objects of a kind as they last, or those of one namespace."""
        spaces = self._objects.get(kind.resource, {})
        if namespace is not None:
            yield from spaces.get(namespace, {}).values()
            return
        for space in spaces.values():
            yield from space.values()

    def latest(self, kind: Kind, namespace: str, name: str) -> Entry | None:
        """The object as the next writer must see it."""
        change = self._pending.get((kind.resource, namespace, name))
        if change is None:
            return self.get(kind, namespace, name)
        return None if change.type == DELETED else change.entry

    def put(self, kind: Kind, value: Object) -> Entry:
        """Write ``value``, which gets the next resource version, and return it as an entry."""
        entry = self._next_entry(kind, value)
        previous = self.latest(kind, entry.namespace, entry.name)
        return self._record(Change(MODIFIED if previous else ADDED, entry, previous))

    def remove(self, kind: Kind, value: Object) -> Entry:
        """Drop the object whose last state is ``value``."""
        entry = self._next_entry(kind, value)
        previous = self.latest(kind, entry.namespace, entry.name)
        return self._record(Change(DELETED, entry, previous))

    def imagine(self, kind: Kind, value: Object) -> Entry:
        """``value`` as an entry that is not written, for a dry run."""
        value["metadata"].setdefault("resourceVersion", str(self._last))
        kind = self._kept(kind, value)
        return entry_of(kind, value, orjson.dumps(value))

    async def settled(self) -> None:
        """Return when everything written so far lasts.

        Raises:
            JournalError: it does not, and none of it has happened.
        """
        done = self._gathering_done or self._writing_done
        if done is not None:
            await asyncio.shield(done)

    async def close(self) -> None:
        """Finish what is being written, then close the journal."""
        while self._gathering_done or self._writing_done:
            try:
                await self.settled()
            except JournalError:
                break
        self._thread.shutdown(wait=True)
        self._journal.close()

    def _kept(self, kind: Kind, value: Object) -> Kind:
        """The version in which ``value`` is kept; there is no other conversion."""
        if kind.schema is None:
            return kind
        kept = self._registry.kept(kind)
        value["apiVersion"] = kept.api_version
        return kept

    def _next_entry(self, kind: Kind, value: Object) -> Entry:
        kind = self._kept(kind, value)
        self._last += 1
        value["metadata"]["resourceVersion"] = str(self._last)
        raw = orjson.dumps(value)
        if len(raw) > LARGEST:
            raise errors.too_large(LARGEST)
        return entry_of(kind, value, raw)

    def _record(self, change: Change) -> Entry:
        entry = change.entry
        self._pending[entry.kind.resource, entry.namespace, entry.name] = change
        self._gathering.append(change)
        if self._gathering_done is None:
            loop = asyncio.get_running_loop()
            self._gathering_done = loop.create_future()
            if self._writing_done is None:
                # Not at once: all that this turn of the loop writes goes into one transaction.
                loop.call_soon(self._write)
        return entry

    def _write(self) -> None:
        changes, self._gathering = self._gathering, []
        done, self._gathering_done = self._gathering_done, None
        if done is None:
            return
        self._writing_done = done
        rows = {}
        for type_, entry, _ in changes:
            row = Row(entry.kind.resource, entry.namespace, entry.name, entry.raw)
            rows[row[:3]] = row._replace(raw=None) if type_ == DELETED else row
        loop = asyncio.get_running_loop()
        written = loop.run_in_executor(
            self._thread, self._journal.write, list(rows.values()), changes[-1].version
        )
        written.add_done_callback(partial(self._written, changes, done))

    def _written(
        self,
        changes: Sequence[Change],
        done: asyncio.Future[None],
        written: asyncio.Future[None],
    ) -> None:
        self._writing_done = None
        error = written.exception()
        if error is None:
            self._publish(changes)
            done.set_result(None)
            self._write()
            return
        # What was gathered meanwhile may rest on what failed, so it fails too.
        self._pending.clear()
        self._gathering.clear()
        for future in (done, self._gathering_done):
            if future is not None:
                future.set_exception(error)
                future.exception()  # heard, even if nobody waits
        self._gathering_done = None

    def _publish(self, changes: Sequence[Change]) -> None:
        for change in changes:
            entry = change.entry
            address = (entry.kind.resource, entry.namespace, entry.name)
            if change.type == DELETED:
                self._objects[address[0]][address[1]].pop(entry.name, None)
            else:
                self._place(entry)
            if self._pending.get(address) is change:
                del self._pending[address]
        self.version = changes[-1].version
        for listener in self._listeners:
            try:
                listener(changes)
            except Exception:  # what lasts was done, whatever one listener makes of it
                log.exception("listener failed", extra={"version": self.version})

    def _place(self, entry: Entry) -> None:
        spaces = self._objects.setdefault(entry.kind.resource, {})
        spaces.setdefault(entry.namespace, {})[entry.name] = entry


def _stated(kind: Kind, raw: bytes) -> Entry:
    """What was kept as ``raw``, as the definition of its kind reads it."""
    value = orjson.loads(raw)
    if kind.schema is not None:
        value["apiVersion"] = kind.api_version
        kind.schema.settle(value)
        raw = orjson.dumps(value)
    return entry_of(kind, value, raw)


def entry_of(kind: Kind, value: Object, raw: bytes) -> Entry:
    """``value``, whose bytes are ``raw``, with what is asked of it often."""
    metadata = value["metadata"]
    return Entry(
        kind,
        metadata.get("namespace", ""),
        metadata["name"],
        metadata["uid"],
        int(metadata["resourceVersion"]),
        metadata.get("labels") or {},
        tuple([field.of(value) for field in kind.fields.values()]),
        "deletionTimestamp" in metadata,
        raw,
    )
