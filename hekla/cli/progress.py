"""One live line on a terminal; elsewhere a line for each change, so that logs stay short."""

from __future__ import annotations

import sys
from types import TracebackType

import click
from rich.console import Console
from rich.progress import Progress as Bar, SpinnerColumn, TextColumn, TimeElapsedColumn


class Progress:
    """Tells on stderr what is going on. Use it as a context manager."""

    def __init__(self) -> None:
        self._last = ""
        self._bar: Bar | None = None
        if sys.stderr.isatty():
            self._bar = Bar(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task("")

    def tell(self, text: str) -> None:
        """Replace the line."""
        if self._bar is not None:
            self._bar.update(self._task, description=text)
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
