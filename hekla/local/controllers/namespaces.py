"""The end of a namespace: everything in it goes first."""

from __future__ import annotations

from collections.abc import Sequence

from hekla.local.kinds.registry import NAMESPACES, SERVICE_ACCOUNTS, Registry
from hekla.local.storage.memory import DELETED, Change, Entry, Storage
from hekla.local.storage.selection import Selection
from hekla.local.verbs.admission import DEFAULT_ACCOUNT
from hekla.local.verbs.deletions import Deletion
from hekla.local.verbs.objects import Objects


class Namespaces:
    """Empties namespaces under deletion, and drops them once they are empty."""

    def __init__(self, storage: Storage, objects: Objects, registry: Registry) -> None:
        self._storage = storage
        self._objects = objects
        self._registry = registry

    def begin(self) -> None:
        """Go on with what was under way."""
        for entry in list(self._storage.select(NAMESPACES)):
            if entry.deleting:
                self._empty(entry.name)
            else:
                self._objects.add_account(entry.name)
        self._storage.listen(self._hear)

    def _hear(self, changes: Sequence[Change]) -> None:
        doomed: set[str] = set()
        smaller: set[str] = set()
        for type_, entry, previous in changes:
            if entry.kind is NAMESPACES:
                if entry.deleting and type_ != DELETED and not (previous and previous.deleting):
                    doomed.add(entry.name)
            elif not entry.namespace:
                continue
            elif type_ == DELETED and self._terminating(entry.namespace):
                smaller.add(entry.namespace)
            elif type_ == DELETED and entry.kind is SERVICE_ACCOUNTS:
                self._replace_account(entry)
            elif previous is None and self._terminating(entry.namespace):
                # It was made just before the namespace was deleted.
                self._objects.delete_all([entry], Deletion())
                smaller.add(entry.namespace)
        for name in doomed:
            self._empty(name)
        for name in smaller - doomed:
            self._finish(name)

    def _replace_account(self, entry: Entry) -> None:
        if (
            entry.name == DEFAULT_ACCOUNT
            and self._storage.latest(NAMESPACES, "", entry.namespace) is not None
        ):
            self._objects.add_account(entry.namespace)

    def _terminating(self, name: str) -> bool:
        entry = self._storage.latest(NAMESPACES, "", name)
        return entry is not None and entry.deleting

    def _empty(self, name: str) -> None:
        for kind in self._registry:
            if kind.namespaced:
                self._objects.delete_all(
                    self._objects.select(Selection(kind, name)), Deletion()
                )
        self._finish(name)

    def _finish(self, name: str) -> None:
        """Drop a namespace that is empty and that nothing else holds."""
        entry = self._storage.latest(NAMESPACES, "", name)
        if entry is None or not entry.deleting or self._holds_something(name):
            return
        value = entry.object()
        value["spec"]["finalizers"] = []
        if value["metadata"].get("finalizers"):
            self._storage.put(NAMESPACES, value)
        else:
            self._storage.remove(NAMESPACES, value)

    def _holds_something(self, name: str) -> bool:
        return any(
            self._storage.latest(kind, name, entry.name) is not None
            for kind in self._registry
            if kind.namespaced
            for entry in self._storage.select(kind, name)
        )
