"""Columns for people to read: plain text for files and pipes, colours on a terminal.

On a terminal only the columns of ``PROSE`` are broken into lines; a row that is too wide all
the same is left to the terminal, so that a name can be copied in one piece.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click
from rich.cells import cell_len

if TYPE_CHECKING:
    from rich.console import OverflowMethod
    from rich.table import Table

PROSE: Final = frozenset({"MESSAGE", "REASON", "FOUND", "TODO"})
"""Columns of sentences."""
NARROWEST: Final = 24
"""Characters that such a column keeps at least."""
GAP: Final = 2
"""Characters between columns on a terminal."""

STATES: Final = frozenset({"PHASE", "STATE", "OUTCOME", "TYPE", "READY", "CHECK"})
STYLES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("Running", "Open", "RUNNING", "yes", "ok"), "green"),
    **dict.fromkeys(("Completed", "Succeeded", "Succeed"), "cyan"),
    **dict.fromkeys(
        ("Pending", "Inqueue", "Restarting", "Aborting", "Completing", "Terminating"), "yellow"
    ),
    **dict.fromkeys(("Deleting", "Closing", "Closed", "Aborted", "Warning", "warn"), "yellow"),
    **dict.fromkeys(("Failed", "Terminated", "Unknown", "Lost", "BACKOFF", "FATAL"), "red"),
    **dict.fromkeys(("no", "Rejected", "Evicted", "FAIL"), "red"),
}
"""How words of the columns ``STATES`` are shown."""


def show(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a header, as suits whoever reads."""
    if not on_terminal():
        click.echo(table(header, rows))
        return
    from rich.console import Console  # noqa: PLC0415  # slow to load, and seldom needed

    console = Console(file=sys.stdout)
    console.width = max(console.width, needed(header, rows))
    console.print(rich_table(header, rows))


def on_terminal() -> bool:
    """Whether a person looks at what is printed."""
    return sys.stdout is not None and sys.stdout.isatty()


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out rows under a header, each column as wide as its widest cell.

    A cell never breaks the layout: control characters in it are shown as such.
    """
    lines = [list(header), *([plain(cell) for cell in row] for row in rows)]
    widths = [max(cell_len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "   ".join(
            cell + " " * (width - cell_len(cell))
            for cell, width in zip(line, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def rich_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """The same for a terminal."""
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    found = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for name, width in zip(header, _widths(header, rows), strict=True):
        prose = name in PROSE
        overflow: OverflowMethod = "fold" if prose else "ignore"
        found.add_column(name, no_wrap=not prose, overflow=overflow, min_width=width)
    for row in rows:
        cells = [
            Text(plain(cell), style=STYLES.get(cell, "") if name in STATES else "")
            for name, cell in zip(header, row, strict=True)
        ]
        found.add_row(*cells)
    return found


def fitting(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """The first columns, as many as ``width`` has room for; one at least."""
    widths = _widths(header, rows)
    count = len(header)
    while count > 1 and _width(widths[:count]) > width:
        count -= 1
    return header[:count], [row[:count] for row in rows]


def needed(header: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """How wide a table is at least."""
    return _width(_widths(header, rows))


def _widths(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Sequence[int]:
    """What each column needs at least."""
    widest = [
        max(cell_len(plain(cell)) for cell in (name, *(row[at] for row in rows)))
        for at, name in enumerate(header)
    ]
    return [
        min(NARROWEST, width) if name in PROSE else width
        for name, width in zip(header, widest, strict=True)
    ]


def _width(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def plain(cell: str) -> str:
    """``cell`` with what is no letter, digit, sign or space shown by its code."""
    return cell if cell.isprintable() else cell.encode("unicode_escape").decode("ascii")
