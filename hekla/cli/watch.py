"""``hekla job watch``: a table that keeps up with the jobs, or a line for each change."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

import click
from rich.cells import cell_len

from hekla.api.job import Job
from hekla.cli import complete, kinds, options, output
from hekla.cli.errors import flush
from hekla.cli.output import Format, Shown
from hekla.cli.table import fitting, on_terminal, plain, rich_table
from hekla.client import Client
from hekla.client.records import ChangeType
from hekla.domain.errors import UnavailableError
from hekla.domain.phases import FINISHED, JobPhase

Show = Callable[[Job, bool], None]
"""Shows a job, and whether it is gone."""

MOST_SHOWN: Final = 200
"""Jobs that a live table keeps; no terminal has more lines."""


@click.command(
    "watch",
    epilog=options.examples(
        "hekla job watch",
        "hekla job watch job-1",
        "hekla job watch -A -l team=ml -o json | jq .metadata.name",
    ),
)
@click.argument("name", required=False, shell_complete=complete.jobs)
@options.namespace
@options.everywhere
@options.selector
@options.in_queue
@options.phases
@options.timeout()
@options.output
@options.with_patient_client
def watch(
    client: Client,
    *,
    name: str | None,
    namespace: str,
    everywhere: bool,
    selector: str,
    queue: str,
    phases: Sequence[JobPhase],
    timeout: timedelta | None,
    form: Format,
) -> None:
    """Show jobs, and each change of them.

    On a terminal the table is kept up to date, elsewhere each change is a line, or a document
    of -o json and -o yaml. One NAME is watched until that job has finished or is deleted;
    all others until --timeout or Ctrl-C.
    """
    within = "" if everywhere else namespace
    if name is not None:
        client.jobs.get(namespace, name)  # one that is not there would be waited for

    def on_outage(error: UnavailableError) -> None:
        click.echo(f"{error}; trying again", err=True)

    changes = client.jobs.changes(
        within,
        name or "",
        queue=queue,
        label_selector=selector,
        timeout=timeout,
        on_outage=on_outage,
    )
    shown: set[str] = set()
    with _shower(form, everywhere=everywhere) as show:
        for change in changes:
            job = change.object
            assert job is not None
            gone = change.type is ChangeType.DELETED
            uid, phase = job.metadata.uid, job.status.state.phase or JobPhase.PENDING
            # What was shown is shown to the end, also when it leaves the phases asked for.
            if uid in shown or not phases or (phase in phases and not gone):
                shown.add(uid)
                show(job, gone)
            if name is not None and (gone or phase in FINISHED):
                return


@contextmanager
def _shower(form: Format, *, everywhere: bool) -> Iterator[Show]:
    match form:
        case Format.JSON | Format.YAML | Format.NAME:
            yield lambda job, _gone: _document(job, form)
        case Format.TABLE | Format.WIDE if on_terminal():
            with _live(wide=form is Format.WIDE, everywhere=everywhere) as show:
                yield show
        case Format.TABLE | Format.WIDE:
            yield _Lines(wide=form is Format.WIDE, everywhere=everywhere).show


def _document(job: Job, form: Format) -> None:
    shown = kinds.job(job, datetime.now(UTC))
    match form:
        case Format.NAME:
            click.echo(f"{kinds.JOBS.resource}/{shown.name}")
        case Format.JSON:
            click.echo(json.dumps(shown.content, ensure_ascii=False))
        case _:
            click.echo("---\n" + output.to_yaml(shown.content), nl=False)
    flush()


def _shown(job: Job, *, gone: bool) -> Shown:
    found = kinds.job(job, datetime.now(UTC))
    if not gone:
        return found
    row = list(found.row)
    row[kinds.JOBS.header.index("PHASE")] = "Deleted"
    return Shown(found.name, found.namespace, row, found.content, found.more)


class _Lines:
    """A table that grows downwards; its columns widen when they must."""

    def __init__(self, *, wide: bool, everywhere: bool) -> None:
        self._wide, self._everywhere = wide, everywhere
        self._widths: list[int] = []

    def show(self, job: Job, gone: bool) -> None:  # noqa: FBT001  # as Show has it
        """Print a line, the header before the first."""
        header, [row] = output.columns(
            kinds.JOBS,
            [_shown(job, gone=gone)],
            wide=self._wide,
            everywhere=self._everywhere,
        )
        if not self._widths:
            self._widths = [
                max(len(name), 12) if at < 3 else len(name) for at, name in enumerate(header)
            ]
            self._print(header)
        self._print([plain(cell) for cell in row])

    def _print(self, cells: Sequence[str]) -> None:
        self._widths = [
            max(width, cell_len(cell)) for width, cell in zip(self._widths, cells, strict=True)
        ]
        padded = (
            cell + " " * (width - cell_len(cell))
            for cell, width in zip(cells, self._widths, strict=True)
        )
        click.echo("   ".join(padded).rstrip())
        flush()


@contextmanager
def _live(*, wide: bool, everywhere: bool) -> Iterator[Show]:
    from rich.console import Console, ConsoleOptions, RenderResult  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415

    known: dict[str, tuple[Job, bool]] = {}

    class Jobs:
        """The table as of now: ages go on while nothing happens."""

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            # Those that changed last, as many as there is room for.
            room = max(1, console.height - 2)
            rows = [_shown(job, gone=gone) for job, gone in list(known.values())[-room:]]
            rows.sort(key=lambda row: (row.namespace, row.name))
            header, cells = output.columns(kinds.JOBS, rows, wide=wide, everywhere=everywhere)
            yield rich_table(*fitting(header, cells, console.width))

    with Live(Jobs(), console=Console(file=sys.stdout), refresh_per_second=4):

        def show(job: Job, gone: bool) -> None:  # noqa: FBT001
            known.pop(job.metadata.uid, None)
            known[job.metadata.uid] = (job, gone)
            if len(known) > MOST_SHOWN:
                del known[next(iter(known))]

        yield show
