"""Streams of changes: what the hub has, with what a watcher did not ask for left out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from hekla.domain import selector
from hekla.domain.selector import Selector
from hekla.store import feed
from hekla.store.hub import Hub, Item

Rendered = TypeVar("Rendered")
Response = TypeVar("Response")


def stream(
    hub: Hub,
    kind: str,
    cursor: str,
    going: Callable[[], bool],
    *,
    wanted: Callable[[Item], bool],
    labels: str = "",
    render: Callable[[Any], Rendered],
    respond: Callable[[str, str, Rendered | None], Response],
) -> Generator[Response, None, None]:
    """``respond(cursor, type, object)`` for each item that is ``wanted``, and bookmarks.

    ``render`` is asked for the objects of items that are told of, and no others. A bookmark
    also stands for items that were left out, so that the cursor moves on. Of the
    items that are wanted those come that match ``labels``; one that does so no more comes as
    DELETED. It ends when ``going`` says so.

    Raises:
        InvalidError: ``labels`` are no selector.
    """
    lists = in_lists(hub, kind, cursor, going, wanted=wanted, labels=labels, render=render)
    return (respond(position, *change) for position, changes in lists for change in changes)


class Told(NamedTuple, Generic[Rendered]):
    """What a watcher is told of one object; a bookmark has none."""

    type: str
    object: Rendered | None


BOOKMARK: Final[Told[Any]] = Told("BOOKMARK", None)


def in_lists(
    hub: Hub,
    kind: str,
    cursor: str,
    going: Callable[[], bool],
    *,
    wanted: Callable[[Item], bool],
    labels: str = "",
    render: Callable[[Any], Rendered],
    most: int = 1,
) -> Generator[tuple[str, Sequence[Told[Rendered]]], None, None]:
    """As :func:`stream`, but what came together in lists of at most ``most``, with a cursor.

    A bookmark comes alone.
    """
    matching = Matching(selector.parse(labels), resumed=bool(cursor)) if labels else None
    before: str | None = None
    skipped: str | None = None
    held: list[Told[Rendered]] = []
    for at, item in hub.watch(kind, cursor, going=going):
        position = str(at)
        if item is None:
            skipped = None
            if held:
                yield position, held
                held = []
            yield position, [BOOKMARK]
        else:
            type_: str | None = None
            if wanted(item):
                type_ = item.type if matching is None else matching.type_of(item)
            rendered = item.rendered(render) if type_ is not None else None
            if type_ is None or rendered is None:
                skipped = position
            else:
                held.append(Told(type_, rendered))
            # The cursor stays where it was until the last of what came together.
            if held and (position != before or len(held) >= most):
                skipped = None
                yield position, held
                held = []
        before = position
    if skipped is not None:
        yield skipped, [BOOKMARK]


def owners_of(item: Item) -> Iterator[tuple[str, str]]:
    """Kinds and names of those that an item's object belongs to."""
    if isinstance(item.object, dict):
        for owner in (item.object.get("metadata") or {}).get("ownerReferences") or ():
            yield owner.get("kind") or "", owner.get("name") or ""
    else:
        for one in item.object.metadata.owner_references or ():
            yield one.kind or "", one.name or ""


class Matching:
    """What a watcher of some labels is told of objects whose labels change."""

    def __init__(self, wanted: Selector, *, resumed: bool) -> None:
        self._wanted = wanted
        self._resumed = resumed
        self._shown: set[str] = set()
        self._told_of: set[str] = set()

    def type_of(self, item: Item) -> str | None:
        """The type under which the item is told of, or None if it is not."""
        known = item.uid in self._shown
        # Who resumes may know it from before: a DELETED too many does no harm.
        perhaps = self._resumed and item.uid not in self._told_of and item.type != feed.ADDED
        self._told_of.add(item.uid)
        if item.type == feed.DELETED:
            self._shown.discard(item.uid)
            return feed.DELETED if known or perhaps else None
        if self._wanted.matches(_labels_of(item)):
            self._shown.add(item.uid)
            return item.type if known or perhaps else feed.ADDED
        self._shown.discard(item.uid)
        return feed.DELETED if known or perhaps else None


def _labels_of(item: Item) -> Mapping[str, str]:
    if isinstance(item.object, dict):
        return (item.object.get("metadata") or {}).get("labels") or {}
    return item.object.metadata.labels or {}


def queue_of(item: Item) -> str:
    """The queue that an item's object names."""
    if isinstance(item.object, dict):
        return (item.object.get("spec") or {}).get("queue") or ""
    found: str = item.object.spec.queue
    return found


def metadata_of(item: Item) -> tuple[str, str]:
    """Namespace and name of an item's object."""
    if isinstance(item.object, dict):
        meta: dict[str, Any] = item.object.get("metadata") or {}
        return meta.get("namespace") or "", meta.get("name") or ""
    return item.object.metadata.namespace, item.object.metadata.name
