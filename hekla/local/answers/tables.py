"""Objects as tables: what ``kubectl get`` asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

import orjson

from hekla.local.answers import columns
from hekla.local.answers.cells import Cell
from hekla.local.answers.forms import GROUP, JSON, list_metadata
from hekla.local.answers.paging import Page
from hekla.local.kinds.registry import Kind
from hekla.local.storage.memory import Entry

INCLUDED: Final = frozenset({"None", "Metadata", "Object"})
"""What may come with each row."""
_TOGETHER: Final = 200


class Tables:
    """The form ``as=Table``."""

    def __init__(
        self, kind: Kind, version: str, included: str, now: Callable[[], datetime]
    ) -> None:
        self._kind = kind
        self._columns = columns.of(kind)
        self._included = included
        self._now = now
        self._version = f"{GROUP}/{version}"
        self.key = f"{kind.version} as {version} with {included}"
        self.content_type = f"{JSON};as=Table;g={GROUP};v={version}"

    def one(self, entry: Entry) -> bytes:
        """See ``Form``."""
        metadata = {"resourceVersion": str(entry.version)}
        return self._table(metadata, self._rows([entry]))

    def many(self, page: Page) -> Iterator[bytes]:
        """See ``Form``."""
        head, tail = self._table(list_metadata(page), [_HERE]).split(orjson.dumps(_HERE))
        yield head
        for begin in range(0, len(page.entries), _TOGETHER):
            rows = self._rows(page.entries[begin : begin + _TOGETHER])
            yield b"," * bool(begin) + orjson.dumps(rows)[1:-1]
        yield tail

    def mark(self, metadata: dict[str, object]) -> bytes:
        """See ``Form``."""
        cells: list[Cell] = [None] * len(self._columns.heads)
        row = {"cells": cells, "object": self._partial(metadata)}
        return self._table({"resourceVersion": metadata["resourceVersion"]}, [row])

    def _table(self, metadata: dict[str, Any], rows: Sequence[object]) -> bytes:
        return orjson.dumps(
            {
                "kind": "Table",
                "apiVersion": self._version,
                "metadata": metadata,
                "columnDefinitions": [
                    {
                        "name": head.name,
                        "type": head.type,
                        "format": head.format,
                        "description": head.description or _described(head.path),
                        "priority": head.priority,
                    }
                    for head in self._columns.heads
                ],
                "rows": rows,
            }
        )

    def _rows(self, entries: Sequence[Entry]) -> list[dict[str, Any]]:
        now = self._now()
        rows = []
        for entry in entries:
            value = entry.object()
            included: object = None
            if self._included == "Metadata":
                included = self._partial(value["metadata"])
            elif self._included == "Object":
                included = value | {"apiVersion": self._kind.api_version}
            rows.append({"cells": self._columns.cells(value, now), "object": included})
        return rows

    def _partial(self, metadata: object) -> dict[str, Any]:
        return {
            "kind": "PartialObjectMetadata",
            "apiVersion": self._version,
            "metadata": metadata,
        }


_HERE: Final = "rows stand here"


def _described(path: str) -> str:
    return f"What stands at {path}." if path else ""
