"""``hekla migrate``."""

from __future__ import annotations

import click

from hekla.cli import options
from hekla.local.stack import plan
from hekla.local.stack.endpoints import Home
from hekla.store.migrate import migrate as migrate_database


@click.command(epilog=options.examples("HEKLA_DATABASE_URL=postgresql://… hekla migrate"))
@click.option(
    "--url", envvar="HEKLA_DATABASE_URL", help="The database; else that of 'hekla up'."
)
@options.with_home
def migrate(home: Home, *, url: str | None) -> None:
    """Bring a database to the newest schema."""
    found = plan.database_url(home, plan.Options(database_url=url))
    click.echo(f"the schema is at {migrate_database(found)}")
