"""The end of a namespace: everything in it goes first."""

from __future__ import annotations

from collections.abc import Sequence

from hekla.local.objects import Deletion, Objects
from hekla.local.registry import NAMESPACES, Registry
from hekla.local.selection import Selection
from hekla.local.storage import DELETED, Change, Storage


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
        self._storage.listen(self._hear)

    def _hear(self, changes: Sequence[Change]) -> None:
        touched = set()
        for type_, entry, previous in changes:
            if entry.kind is NAMESPACES:
                if entry.deleting and type_ != DELETED and not (previous and previous.deleting):
                    touched.add(entry.name)
            elif type_ == DELETED and self._terminating(entry.namespace):
                touched.add(entry.namespace)
        for name in touched:
            self._empty(name)

    def _terminating(self, name: str) -> bool:
        entry = self._storage.latest(NAMESPACES, "", name)
        return entry is not None and entry.deleting

    def _empty(self, name: str) -> None:
        left = False
        for kind in self._registry:
            if kind.namespaced:
                inside = self._objects.select(Selection(kind, name))
                self._objects.delete_all(inside, Deletion())
                left = left or any(
                    self._storage.latest(kind, name, entry.name)
                    for entry in self._storage.select(kind, name)
                )
        entry = self._storage.latest(NAMESPACES, "", name)
        if not left and entry is not None and entry.deleting:
            value = entry.object()
            value["spec"]["finalizers"] = []
            if value["metadata"].get("finalizers"):
                self._storage.put(NAMESPACES, value)
            else:
                self._storage.remove(NAMESPACES, value)
