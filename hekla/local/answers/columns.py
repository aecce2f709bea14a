"""What ``kubectl get`` shows of an object, in the columns that its users know.

Pure: an object and the time in, cells out. Of built-in kinds the columns are Kubernetes' own;
of others, what their definition declares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from hekla.local.answers.built_in_columns import BUILT_IN, PLAIN
from hekla.local.answers.cells import AGE, NAME, Cell, Columns, age
from hekla.local.kinds import jsonpath
from hekla.local.kinds.registry import Column, Kind, Object
from hekla.local.schemas.checks import shown


def of(kind: Kind) -> Columns:
    """The columns of a kind."""
    if kind.schema is not None:
        return _declared(kind.columns or (AGE,))
    return BUILT_IN.get(kind.resource, PLAIN)


def _declared(declared: Sequence[Column]) -> Columns:
    readers = [_reader(column) for column in declared]

    def row(value: Object, now: datetime) -> list[Cell]:
        return [value["metadata"]["name"], *[read(value, now) for read in readers]]

    return Columns([NAME, *declared], row)


def _reader(column: Column) -> Callable[[Object, datetime], Cell]:
    find = jsonpath.compiled(column.path)

    def read(value: Object, now: datetime) -> Cell:
        for found in find(value):
            return _cell(column.type, found, now)
        return None

    return read


def _cell(kind: str, value: Any, now: datetime) -> Cell:
    """A value as a column of that type shows it; nothing if it is of another."""
    cell: Cell = None
    if kind == "date":
        cell = age(value, now) if isinstance(value, str) else None
    elif kind == "string":
        cell = value if isinstance(value, str) else shown(value)
    elif kind == "boolean":
        cell = value if isinstance(value, bool) else None
    elif isinstance(value, int | float) and not isinstance(value, bool):
        cell = int(value) if kind == "integer" else value
    return cell
