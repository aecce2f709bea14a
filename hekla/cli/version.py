"""``hekla version``."""

from __future__ import annotations

import platform
from importlib.metadata import version as installed

import click

from hekla.cli import options
from hekla.domain import names


@click.command("version", epilog=options.examples("hekla version"))
def version() -> None:
    """Show which Hekla this is, and what it runs on."""
    click.echo(f"Hekla:       {installed('hekla')}")
    click.echo(f"API version: {names.JOB_API_VERSION}")
    click.echo(f"Python:      {platform.python_version()}")
    click.echo(f"OS/Arch:     {platform.system().lower()}/{platform.machine()}")
