"""The command line of lint."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

import click

from hekla.domain.errors import InvalidError
from services.webhook.lint.engine import Source, lint
from services.webhook.lint.output import FORMATS
from services.webhook.rules.world import COMPATIBLE, Limits

REFUSED: Final = 1
UNREADABLE: Final = 64
STDIN: Final = "-"


@click.command("lint")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--world", "worlds", multiple=True, metavar="FILE", help="Objects that exist.")
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(tuple(FORMATS)),
    default="text",
    help="The form.",
)
@click.option("--delete", is_flag=True, help="Say whether the objects may be deleted.")
@click.option(
    "--compat",
    type=click.Choice(COMPATIBLE),
    multiple=True,
    help="A difference from Volcano to take back.",
)
@click.option("--extra-warns", is_flag=True, help="Only warn of what Volcano would accept.")
@click.option("--protect-used-queues", is_flag=True, help="Keep queues in which pods run.")
def main(
    files: tuple[str, ...],
    worlds: tuple[str, ...],
    form: str,
    compat: tuple[str, ...],
    *,
    delete: bool,
    extra_warns: bool,
    protect_used_queues: bool,
) -> None:
    """Say what admission would say of the objects in FILE ('-' is stdin), without a server.

    Exits with 1 if anything would be refused, with 64 if a file cannot be read. An object that
    the world has already is judged as an update of that one.
    """
    limits = Limits(
        compat=frozenset(compat),
        extra_warns=extra_warns,
        protect_used_queues=protect_used_queues,
    )
    world = [_source(name) for name in worlds] if worlds else None
    try:
        outcome = lint(map(_source, files), world, delete=delete, limits=limits)
    except InvalidError as error:
        raise SystemExit(_complain(f"the world: {error}")) from None
    sys.stdout.write(FORMATS[form](outcome))
    raise SystemExit(REFUSED if outcome.refused else 0)


def run(arguments: Sequence[str]) -> NoReturn:
    """Run as ``hekla lint`` would be run; a wrong command line is one line."""
    try:
        main.main(list(arguments), prog_name="hekla lint", standalone_mode=False)
    except click.ClickException as error:
        raise SystemExit(_complain(error.format_message())) from None
    raise SystemExit(0)


def _source(name: str) -> Source:
    try:
        data = sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
    except OSError as error:
        raise SystemExit(_complain(f"{name}: {error.strerror or error}")) from None
    return Source("stdin" if name == STDIN else name, data)


def _complain(text: str) -> int:
    sys.stderr.write(f"hekla lint: {' '.join(text.split())}\n")
    return UNREADABLE
