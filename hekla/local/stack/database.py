"""``python -m hekla.local.stack.database``: the database of ``hekla up``, as two processes.

``serve`` becomes the embedded Postgres; ``migrate`` waits for the database, whichever it is,
and brings it to the schema the services know.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import click

from hekla.domain.errors import DomainError, PreconditionError, UnavailableError
from hekla.local.stack.postgres import EmbeddedPostgres, binaries
from hekla.local.supervisor.unit import HOPELESS
from hekla.store.migrate import migrate as migrate_database

PATIENCE: Final = 60.0
"""Seconds that the embedded Postgres may take to come up."""


@click.group(help=__doc__)
def main() -> None:
    """The database of ``hekla up``."""


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
def serve(folder: Path) -> None:
    """Become the Postgres whose files lie in FOLDER; make them if there are none."""
    postgres = EmbeddedPostgres(folder)
    _refuse_other_version(postgres)
    postgres.prepare()
    command = list(postgres.command())
    os.execvp(command[0], command)  # noqa: S606  # so that signals reach Postgres itself


def _refuse_other_version(postgres: EmbeddedPostgres) -> None:
    """Refuse data that another major version of Postgres has written.

    Raises:
        PreconditionError: the data is such.
    """
    try:
        found = (postgres.data / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        return
    told = subprocess.run(
        [str(binaries() / "postgres"), "--version"], capture_output=True, text=True, check=True
    ).stdout
    ours = told.split()[-1].partition(".")[0]
    if found != ours:
        raise PreconditionError(
            f"{postgres.data} was written by Postgres {found}, this is Postgres {ours}:"
            " dump it with that version, or take another HEKLA_HOME"
        )


@main.command()
@click.option("--embedded", type=click.Path(path_type=Path), help="Folder of our own server.")
@click.option("--url", envvar="HEKLA_DATABASE_URL", help="Where another server is.")
def migrate(embedded: Path | None, url: str | None) -> None:
    """Wait for the database and migrate it."""
    if embedded is not None:
        url = _made(EmbeddedPostgres(embedded))
    if url is None:
        raise click.UsageError("--embedded or HEKLA_DATABASE_URL is needed")
    click.echo(f"the schema is at {migrate_database(url)}")


def _made(postgres: EmbeddedPostgres) -> str:
    deadline = time.monotonic() + PATIENCE
    while not postgres.ready():
        if time.monotonic() > deadline:
            raise UnavailableError(f"Postgres does not answer; see {postgres.folder}")
        time.sleep(0.05)
    return postgres.make_database("hekla")


if __name__ == "__main__":
    try:
        main()
    except (DomainError, OSError) as error:
        sys.stderr.write(f"hekla database: {' '.join(str(error).split())}\n")
        raise SystemExit(HOPELESS if isinstance(error, PreconditionError) else 1) from None
