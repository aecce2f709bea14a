"""Garbage collection by owner references: what nobody owns any more is deleted.

An owner is gone when it does not exist or has another uid than the reference says. A delete in
the foreground waits for what the object owns, one that orphans first takes the references off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from hekla.local.kinds import errors
from hekla.local.kinds.metadata import FOREGROUND, ORPHAN
from hekla.local.kinds.registry import Kind, Object, Registry
from hekla.local.storage.journal import JournalError
from hekla.local.storage.memory import DELETED, Change, Entry, Storage
from hekla.local.tasks import Tasks
from hekla.local.verbs.deletions import Deletion
from hekla.local.verbs.objects import Objects

_TOGETHER: Final = 200
_RETRY: Final = 1.0
_OWNED: Final = b'"ownerReferences"'
_MARKS: Final = (FOREGROUND.encode(), ORPHAN.encode())

log = logging.getLogger(__name__)

_Address = tuple[Kind, str, str]


class _Sorted(NamedTuple):
    """The owner references of an object, by what has become of the owners."""

    there: list[Object]
    waiting: list[Object]
    """Of owners that are deleted in the foreground."""
    gone: list[Object]


class Collector:
    """Looks at what changes, and at what that may concern, one after the other."""

    def __init__(
        self, storage: Storage, objects: Objects, registry: Registry, tasks: Tasks
    ) -> None:
        self._storage = storage
        self._objects = objects
        self._registry = registry
        self._tasks = tasks
        self._owners: dict[_Address, frozenset[str]] = {}
        self._owned: dict[str, dict[_Address, None]] = {}
        self._due: dict[_Address, None] = {}
        self._working = False

    def begin(self) -> None:
        """Look at everything once, then at what changes."""
        for kind in self._registry:
            for entry in self._storage.select(kind):
                self._learn(entry)
        self._storage.listen(self._hear)
        self._arm()

    def _hear(self, changes: Sequence[Change]) -> None:
        for change in changes:
            entry = change.entry
            if change.type == DELETED:
                self._forget(entry)
            else:
                self._learn(entry)
        self._arm()

    def _learn(self, entry: Entry) -> None:
        address = _address(entry)
        raw = entry.raw
        uids: frozenset[str] = frozenset()
        if _OWNED in raw:
            uids = frozenset(owner["uid"] for owner in _owners(entry.object()))
        before = self._owners.get(address, frozenset())
        if uids != before:
            self._index(address, before, uids)
            self._due[address] = None
        if entry.deleting and any(mark in raw for mark in _MARKS):
            self._due[address] = None

    def _forget(self, entry: Entry) -> None:
        address = _address(entry)
        uids = self._owners.get(address, frozenset())
        self._index(address, uids, frozenset())
        self._due |= self._owned.get(entry.uid, {})
        for uid in uids:  # an owner may wait for this
            self._due |= dict.fromkeys(self._by_uid(uid, entry))

    def _index(self, address: _Address, before: frozenset[str], after: frozenset[str]) -> None:
        for uid in before - after:
            self._owned[uid].pop(address, None)
            if not self._owned[uid]:
                del self._owned[uid]
        for uid in after - before:
            self._owned.setdefault(uid, {})[address] = None
        if after:
            self._owners[address] = after
        else:
            self._owners.pop(address, None)

    def _by_uid(self, uid: str, dependent: Entry) -> Iterator[_Address]:
        for owner in _owners(dependent.object()):
            found = self._find(owner, dependent)
            if owner["uid"] == uid and found is not None and found.uid == uid:
                yield _address(found)

    def _arm(self) -> None:
        if self._due and not self._working:
            self._working = True
            self._tasks.spawn(self._work(), name="garbage collection")

    async def _work(self) -> None:
        try:
            while self._due:
                chosen = list(self._due)[:_TOGETHER]
                for address in chosen:
                    del self._due[address]
                    try:
                        self._look(address)
                    except errors.ApiError as error:
                        if error.code not in {404, 409}:  # else somebody was faster
                            log.warning("not collected", extra={"error": str(error)})
                try:
                    await self._storage.settled()
                except JournalError:
                    self._due |= dict.fromkeys(chosen)
                    await asyncio.sleep(_RETRY)
        finally:
            self._working = False
            self._arm()

    def _look(self, address: _Address) -> None:
        entry = self._storage.latest(*address)
        if entry is None:
            return
        value = entry.object()
        finalizers = value["metadata"].get("finalizers", [])
        if entry.deleting and ORPHAN in finalizers:
            self._orphan(entry)
        elif entry.deleting and FOREGROUND in finalizers:
            self._delete_owned(entry)
        elif not entry.deleting and _owners(value):
            self._judge(entry, value)

    def _judge(self, entry: Entry, value: Object) -> None:
        """Delete an object that lost its owners, or take the references to lost ones off."""
        found = self._sorted(entry, value)
        if found.there:
            if found.waiting or found.gone:
                self._objects.disown(entry, {owner["uid"] for owner in found.there})
            return
        if not (found.waiting or found.gone):
            return
        how = "Foreground" if found.waiting and self._owned.get(entry.uid) else None
        self._objects.delete(
            entry.kind, entry.namespace, entry.name, Deletion(uid=entry.uid, propagation=how)
        )

    def _delete_owned(self, owner: Entry) -> None:
        blocking = False
        for address in list(self._owned.get(owner.uid, {})):
            entry = self._storage.latest(*address)
            if entry is None:
                continue
            value = entry.object()
            mine = [each for each in _owners(value) if each["uid"] == owner.uid]
            if mine and not entry.deleting:
                self._judge(entry, value)
            still = self._storage.latest(*address) is not None
            blocking |= still and any(each.get("blockOwnerDeletion") for each in mine)
        if not blocking:
            self._objects.release(owner, FOREGROUND)

    def _orphan(self, owner: Entry) -> None:
        for address in list(self._owned.get(owner.uid, {})):
            entry = self._storage.latest(*address)
            if entry is not None:
                uids = {each["uid"] for each in _owners(entry.object())}
                self._objects.disown(entry, uids - {owner.uid})
        self._objects.release(owner, ORPHAN)

    def _sorted(self, entry: Entry, value: Object) -> _Sorted:
        found = _Sorted([], [], [])
        for owner in _owners(value):
            kind = self._kind(owner)
            if kind is None or (kind.namespaced and not entry.kind.namespaced):
                found.there.append(owner)  # nobody can tell
                continue
            present = self._find(owner, entry)
            if present is None or present.uid != owner["uid"]:
                found.gone.append(owner)
            elif present.deleting and FOREGROUND in present.object()["metadata"].get(
                "finalizers", []
            ):
                found.waiting.append(owner)
            else:
                found.there.append(owner)
        return found

    def _find(self, owner: Object, dependent: Entry) -> Entry | None:
        kind = self._kind(owner)
        if kind is None:
            return None
        namespace = dependent.namespace if kind.namespaced else ""
        return self._storage.latest(kind, namespace, owner["name"])

    def _kind(self, owner: Object) -> Kind | None:
        kind = self._registry.named(owner["apiVersion"], owner["kind"])
        return None if kind is None else self._registry.kept(kind)


def _address(entry: Entry) -> _Address:
    return entry.kind, entry.namespace, entry.name


def _owners(value: Object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = value["metadata"].get("ownerReferences", [])
    return found
