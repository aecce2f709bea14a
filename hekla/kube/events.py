"""What a watch delivers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import orjson

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
RELISTED: Final = "RELISTED"


class WatchEvent(NamedTuple):
    """One thing that happened to one object, or RELISTED."""

    type: str
    """ADDED, MODIFIED, DELETED, or RELISTED."""
    object: Any
    """The object (``dict``, or what the projection made of it; for DELETED its last state).

    RELISTED comes first of all, and again whenever events may have been missed. It is a batch
    of its own and carries ``Objects``, all there are now: what is not among them is gone.
    """


class Objects:
    """All objects of a list, decoded when walked over, so that a big list costs its bytes only.

    Items of a list do not state their ``kind`` and ``apiVersion``.
    """

    def __init__(
        self, pages: Sequence[Any], count: int, decode: Callable[[Any], list[Any]]
    ) -> None:
        self._pages = pages
        self._count = count
        self._decode = decode

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        for page in self._pages:
            yield from self._decode(page)


def decode_lines(lines: Sequence[bytes]) -> list[WatchEvent]:
    """Events from the lines in which the API sent them."""
    decoded = map(orjson.loads, lines)
    return [WatchEvent(event["type"], event["object"]) for event in decoded]


def decode_page(page: bytes) -> list[Any]:
    """The items of one page of a list."""
    items: list[Any] = orjson.loads(page)["items"] or []
    return items
