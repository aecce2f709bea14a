"""Streams of changes: what the hub has, with what a watcher did not ask for left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from hekla.store.hub import Hub, Item

Response = TypeVar("Response")


def stream(
    hub: Hub,
    kind: str,
    cursor: str,
    going: Callable[[], bool],
    *,
    wanted: Callable[[Item], bool],
    respond: Callable[[str, str, Item | None], Response],
) -> Iterator[Response]:
    """``respond(cursor, type, item)`` for each item that is ``wanted``, and bookmarks.

    A bookmark also stands for items that were left out, so that the cursor moves on. It ends
    when ``going`` says so.
    """
    skipped: str | None = None
    for position, item in hub.watch(kind, cursor, going=going):
        if item is None:
            skipped = None
            yield respond(str(position), "BOOKMARK", None)
        elif wanted(item):
            skipped = None
            yield respond(str(position), item.type, item)
        else:
            skipped = str(position)
    if skipped is not None:
        yield respond(skipped, "BOOKMARK", None)


def owned_by(item: Item, kind: str) -> bool:
    """Whether an item's object belongs to one of that kind."""
    if isinstance(item.object, dict):
        owners = (item.object.get("metadata") or {}).get("ownerReferences") or ()
        return any(owner.get("kind") == kind for owner in owners)
    return any(one.kind == kind for one in item.object.metadata.owner_references or ())


def metadata_of(item: Item) -> tuple[str, str]:
    """Namespace and name of an item's object, which for DELETED is its last state as JSON."""
    if isinstance(item.object, dict):
        meta: dict[str, Any] = item.object.get("metadata") or {}
        return meta.get("namespace") or "", meta.get("name") or ""
    return item.object.metadata.namespace, item.object.metadata.name
