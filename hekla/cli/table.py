"""Columns for people to read."""

from __future__ import annotations

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out rows under a header, each column as wide as its widest cell.

    A cell never breaks the layout: control characters in it are shown as such.
    """
    lines = [list(header), *([_plain(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _plain(cell: str) -> str:
    return cell if cell.isprintable() else cell.encode("unicode_escape").decode("ascii")
