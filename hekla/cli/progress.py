"""One live line on a terminal; elsewhere a line for each change, so that logs stay short."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

import click

from hekla.cli.table import plain

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


class Progress:
    """Tells on stderr what is going on. Use it as a context manager."""

    def __init__(self) -> None:
        self._last = ""
        self._bar: Bar | None = (
            _bar() if sys.stderr is not None and sys.stderr.isatty() else None
        )
        self._task = None if self._bar is None else self._bar.add_task("", total=None)

    def tell(self, text: str, *, done: int = 0, of: int | None = None) -> None:
        """Replace the line; ``done`` of so many pods are done."""
        text = plain(text)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=text, completed=done, total=of or None)
        elif text != self._last:
            click.echo(text, err=True)
        self._last = text

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def _bar() -> Bar:
    from rich.console import Console  # noqa: PLC0415  # slow to load, and seldom needed
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        Progress as Bar,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    return Bar(
        SpinnerColumn(),
        BarColumn(bar_width=20),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
