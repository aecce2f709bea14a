"""What a terminal shows: tables of any width, whatever stands in them."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st
from rich.cells import cell_len
from rich.console import Console

from hekla.cli import table

JOBS = ["NAME", "PHASE", "AGE", "MESSAGE"]
LONG = "a sentence that is rather long and goes on and on to its end"
ROWS = [
    ["a-job-with-quite-a-long-name", "Running", "3s", LONG],
    ["b", "Failed", "2d4h", "-"],
]


def screen(header: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    console = Console(
        width=max(width, table.needed(header, rows)), record=True, file=io.StringIO()
    )
    console.print(table.rich_table(header, rows))
    return [line.rstrip() for line in console.export_text().splitlines()]


@pytest.mark.parametrize("width", [20, 80, 200])
def test_names_stay_in_one_piece_at_any_width(width: int) -> None:
    lines = screen(JOBS, ROWS, width)

    assert lines[0].split() == JOBS
    assert any(line.startswith("a-job-with-quite-a-long-name  Running") for line in lines)
    assert any(line.startswith("b ") for line in lines)


def test_sentences_are_broken_into_lines_where_there_is_no_room() -> None:
    narrow, wide = screen(JOBS, ROWS, 80), screen(JOBS, ROWS, 200)

    assert len(wide) == 3
    assert len(narrow) > 3
    assert LONG in wide[1]


def test_what_looks_like_markup_is_shown_as_it_is() -> None:
    [_, line] = screen(["NAME"], [["[red]x[/red]"]], 80)

    assert line == "[red]x[/red]"


def test_phases_have_colours() -> None:
    console = Console(width=80, record=True, file=io.StringIO(), force_terminal=True)
    console.print(table.rich_table(JOBS, ROWS))

    shown = console.export_text(styles=True)

    assert "\x1b[32mRunning" in shown
    assert "\x1b[31mFailed" in shown


cells = st.text(max_size=12)


@given(
    rows=st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=4),
    width=st.integers(1, 60),
)
def test_a_live_table_never_breaks_a_line(
    rows: Sequence[tuple[str, str, str]], width: int
) -> None:
    header, fitted = table.fitting(["NAME", "PHASE", "AGE"], rows, width)

    lines = screen(header, fitted, width)

    assert len(header) == len(fitted[0]) >= 1
    assert len(header) == 1 or all(cell_len(line) <= width for line in lines)
