"""Pages of those objects of a list that match, when only we can tell which do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from hekla.store.objects import Place

Row = TypeVar("Row")

AT_ONCE: Final = 500
MOST_SCANNED: Final = 5_000
"""Objects that one call reads to find those that match; the next call goes on."""


class Page(NamedTuple, Generic[Row]):
    """Rows that match, and where the page ended unless it was the last."""

    rows: Sequence[Row]
    end: Place | None


def scan(
    read: Callable[[Place | None, int], Sequence[Row]],
    *,
    matches: Callable[[Row], bool],
    place: Callable[[Row], Place],
    after: Place | None,
    limit: int,
    filtered: bool,
) -> Page[Row]:
    """A page of at most ``limit`` rows after ``after``.

    ``read(after, count)`` gives rows in order, ``place`` tells where one stands. Unless the
    list is ``filtered`` every row matches.
    """
    at_once = AT_ONCE if filtered else limit + 1
    found: list[Row] = []
    scanned = 0
    end = after
    while len(found) <= limit and scanned < MOST_SCANNED:
        rows = read(end, at_once)
        found += [row for row in rows if matches(row)]
        scanned += len(rows)
        if len(rows) < at_once:
            end = None
            break
        end = place(rows[-1])
    if len(found) > limit:
        end = place(found[limit - 1])
    return Page(found[:limit], end)
