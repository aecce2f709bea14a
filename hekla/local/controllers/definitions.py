"""Serves the kinds that CustomResourceDefinitions define, as long as they are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hekla.domain import timestamps
from hekla.local.kinds.registry import DEFINITIONS, Kind, Object, Registry
from hekla.local.rules import definitions as rules
from hekla.local.storage.memory import DELETED, Change, Entry, Storage
from hekla.local.storage.selection import Selection
from hekla.local.verbs.deletions import Deletion
from hekla.local.verbs.objects import Objects

CLOSED = "create not allowed while custom resource definition is terminating"


class Definitions:
    """Looks at every definition that is stored, and at what its end must wait for."""

    def __init__(
        self,
        storage: Storage,
        objects: Objects,
        registry: Registry,
        *,
        withdrawn: Callable[[Kind], None],
    ) -> None:
        """Serve what is defined already; ``withdrawn`` hears of kinds served no more."""
        self._storage = storage
        self._objects = objects
        self._registry = registry
        self._withdrawn = withdrawn
        self._kinds: dict[str, Kind] = {}
        self._generations: dict[str, int] = {}
        for entry in storage.select(DEFINITIONS):
            if rules.established(entry.object()):
                self._serve(entry)

    def begin(self) -> None:
        """Go on with what was under way, then look at what changes."""
        for entry in list(self._storage.select(DEFINITIONS)):
            self._look(entry)
        self._storage.listen(self._hear)

    def _hear(self, changes: Sequence[Change]) -> None:
        for type_, entry, _ in changes:
            if entry.kind is DEFINITIONS:
                if type_ == DELETED:
                    self._end(entry)
                else:
                    self._look(entry)
            elif type_ == DELETED and entry.kind.closed:
                self._finish(entry.kind)

    def _look(self, entry: Entry) -> None:
        definition = entry.object()
        conflicting = None
        if entry.name not in self._kinds:
            conflicting = rules.conflict(definition["spec"]["names"], self._others(definition))
        generation = definition["metadata"]["generation"]
        if conflicting is None and generation != self._generations.get(entry.name):
            self._serve(entry)
        now = timestamps.to_text(self._objects.now())
        wanted = rules.status(definition, conflicting, deleting=entry.deleting, now=now)
        if wanted != definition.get("status"):
            self._objects.write_status(
                DEFINITIONS, "", entry.name, uid=entry.uid, status=wanted
            )
        if entry.deleting:
            self._empty(entry)

    def _serve(self, entry: Entry) -> None:
        definition = entry.object()
        self._generations[entry.name] = definition["metadata"]["generation"]
        defined = rules.defined(definition)
        known = entry.name in self._kinds
        for kind in (defined.kept, *defined.served):
            kind.closed = CLOSED if entry.deleting else ""
        self._kinds[entry.name] = kind = self._registry.define(*defined)
        if known:
            self._storage.restate(kind)
        else:
            self._storage.serve(kind)

    def _others(self, definition: Object) -> list[Object]:
        """The names of the other kinds of the group."""
        group = definition["spec"]["group"]
        entries = [self._storage.get(DEFINITIONS, "", name) for name in self._kinds]
        specs = [entry.object()["spec"] for entry in entries if entry is not None]
        return [spec["names"] for spec in specs if spec["group"] == group]

    def _empty(self, entry: Entry) -> None:
        """Delete the objects of a definition that is deleted."""
        kind = self._kinds.get(entry.name)
        if kind is None:
            self._objects.release(entry, rules.CLEANUP)
            return
        chosen = self._objects.select(Selection(kind))
        self._objects.delete_all([each for each in chosen if not each.deleting], Deletion())
        self._finish(kind)

    def _finish(self, kind: Kind) -> None:
        """Let a definition go if none of its objects is left."""
        left = any(
            self._storage.latest(kind, each.namespace, each.name) is not None
            for each in self._storage.select(kind)
        )
        definition = self._storage.latest(DEFINITIONS, "", kind.resource)
        if not left and definition is not None and definition.deleting:
            self._objects.release(definition, rules.CLEANUP)

    def _end(self, entry: Entry) -> None:
        kind = self._kinds.pop(entry.name, None)
        self._generations.pop(entry.name, None)
        if kind is not None:
            self._registry.withdraw(kind.resource)
            self._withdrawn(kind)
        # Its names are free: another definition may have waited for them.
        for other in list(self._storage.select(DEFINITIONS)):
            if other.name not in self._kinds:
                self._look(other)
