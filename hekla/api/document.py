"""Manifests: YAML or JSON, one or more documents, as kubectl reads them.

What kubectl's parser would let pass in silence is refused: keys that occur twice, values that
are no JSON. All errors of all documents are told at once, each with its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from hekla.api.lines import Lines
from hekla.api.reader import Budget, error_in, read
from hekla.domain.errors import InvalidError, Violation

LARGEST: Final = 3 * 2**20
"""Bytes of one manifest."""
MOST_DOCUMENTS: Final = 10_000

_SEPARATOR: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a manifest."""

    value: dict[str, Any]
    line: int
    """Where its document begins, counted from 1."""
    lines: Lines = field(compare=False)
    """Where its fields stand."""


def load(data: bytes) -> list[Document]:
    """The objects in a manifest, those inside a ``List`` on their own.

    Raises:
        InvalidError: with every document that cannot be read, by line; or there is none.
    """
    if len(data) > LARGEST:
        raise InvalidError(f"must be no more than {LARGEST} bytes, has {len(data)}")
    budget = Budget()
    found: list[Document] = []
    violations: list[Violation] = []
    for line, text in _parts(_decoded(data)):
        try:
            found += _objects(read(text, line, budget), line, text)
        except InvalidError as error:
            violations += error.violations
    if violations:
        raise InvalidError.of(violations)
    if not found:
        raise InvalidError("has no object in it")
    return found


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = f"0x{data[error.start]:02x}"
        raise error_in(line, f"has the byte {byte}, which is not UTF-8") from None


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """The documents' texts, each with its first line. They are read apart from each other."""
    starts = [0, *(found.start() for found in _SEPARATOR.finditer(text) if found.start())]
    if len(starts) > MOST_DOCUMENTS:
        raise InvalidError(f"must be no more than {MOST_DOCUMENTS} documents")
    line, directives = 1, ""
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = text[start:end]
        if _has_content(part):
            yield line - directives.count("\n"), directives + part
            directives = ""
        else:
            # A directive stands before the separator of the document it is for.
            directives = part if "\n%" in f"\n{part}" else ""
        line += part.count("\n")


def _has_content(text: str) -> bool:
    lines = (line.strip() for line in text.split("\n"))
    return any(line.strip(".-") and not line.startswith(("#", "%")) for line in lines)


def _objects(value: Any, line: int, text: str) -> Iterator[Document]:
    if value is None:
        return
    if not isinstance(value, dict):
        what = "a list" if isinstance(value, list) else f"the value {str(value)[:60]!r}"
        raise error_in(line, f"must be an object, is {what}")
    items = value.get("items")
    if value.get("kind") == "List" and isinstance(items, list):
        for index, item in enumerate(items):
            if not isinstance(item, dict):
                raise error_in(line, f"must have objects in its list, has none at {index}")
            yield Document(item, line, Lines(text, line, ("items", str(index))))
    else:
        yield Document(value, line, Lines(text, line))
