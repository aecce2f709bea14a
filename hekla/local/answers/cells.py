"""What tables are made of: columns, and rows of cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from hekla.domain import ages, timestamps
from hekla.domain.errors import InvalidError
from hekla.local.kinds.registry import Column, Object

Cell = str | int | float | bool | None
Row = Callable[[Object, datetime], list[Cell]]

NONE: Final = "<none>"
UNKNOWN: Final = "<unknown>"
NAME: Final = Column("Name", "string", "", "name", "Name must be unique within a namespace.", 0)
AGE: Final = Column(
    "Age", "date", ".metadata.creationTimestamp", "", "How long ago the object was made."
)


class Columns(NamedTuple):
    """The columns of a kind, and how a row is made."""

    heads: Sequence[Column]
    row: Row

    def cells(self, value: Object, now: datetime) -> list[Cell]:
        """The row of an object."""
        try:
            return self.row(value, now)
        except (AttributeError, KeyError, TypeError, ValueError):
            # Of some kinds anything is kept, and one odd object must not hide the others.
            left = [UNKNOWN] * (len(self.heads) - 1)
            name = value["metadata"]["name"]
            return [*left, name] if self.heads[-1].name == NAME.name else [name, *left]


def age(text: object, now: datetime) -> str:
    """How long ago a time was."""
    if not isinstance(text, str) or not text:
        return UNKNOWN
    try:
        return ages.span(now - timestamps.from_text(text))
    except InvalidError:
        return "<invalid>"


def head(name: str, kind: str = "string", *, wide: bool = False) -> Column:
    """A column that is made and not read somewhere."""
    return Column(name, kind, "", "", "", 1 if wide else 0)


def own_age(value: Object, now: datetime) -> str:
    """How long ago an object was made."""
    return age(value["metadata"].get("creationTimestamp"), now)
