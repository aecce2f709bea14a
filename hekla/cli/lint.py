"""``hekla lint``: the webhook's rules, in a process of the webhook, without a server."""

from __future__ import annotations

import subprocess
import sys

import click

from hekla.cli import options


@click.command(
    epilog=options.examples(
        "hekla lint job.yaml",
        "hekla lint *.yaml --world queues.yaml -o sarif",
    )
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--world", "worlds", multiple=True, metavar="FILE", help="Objects that exist.")
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(("text", "json", "sarif")),
    default="text",
    help="The form.",
)
@click.option("--delete", is_flag=True, help="Say whether the objects may be deleted.")
@click.option(
    "--compat", multiple=True, metavar="NAME", help="A difference from Volcano to take back."
)
@click.option("--extra-warns", is_flag=True, help="Only warn of what Volcano would accept.")
def lint(
    files: tuple[str, ...],
    worlds: tuple[str, ...],
    form: str,
    compat: tuple[str, ...],
    *,
    delete: bool,
    extra_warns: bool,
) -> None:
    """Say what admission would say of manifests, without a server.

    FILE is '-' for stdin. An object that a world file has already is judged as an update of
    that one. What was not checked for want of a world is named. Exits with 1 if anything would
    be refused, with 64 if a file cannot be read.
    """
    arguments = ["--output", form]
    for world in worlds:
        arguments += ["--world", world]
    for name in compat:
        arguments += ["--compat", name]
    arguments += ["--delete"] if delete else []
    arguments += ["--extra-warns"] if extra_warns else []
    command = [sys.executable, "-m", "services.webhook", "lint", *arguments, "--", *files]
    raise SystemExit(subprocess.run(command, check=False).returncode)
