"""``hekla doctor``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from hekla.cli import options, tool
from hekla.cli.output import Format, to_yaml
from hekla.cli.table import show
from hekla.domain.errors import DomainError
from hekla.local.stack.endpoints import Home

HEADER: Final = ("CHECK", "STATE", "FOUND", "TODO")


class Probe(click.ParamType[tuple[str, str]]):
    """``SERVICE=HOST:PORT``."""

    name = "probe"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """The service and its address."""
        if isinstance(value, tuple):
            return value
        name, _, where = str(value).partition("=")
        host, _, port = where.rpartition(":")
        if not (name and host and port.isascii() and port.isdigit()):
            self.fail(f"must be like controller=HOST:PORT, is {value!r}", param, ctx)
        return name, where


@click.command(
    epilog=options.examples(
        "hekla doctor",
        "hekla doctor -o json",
        "HEKLA_DATABASE_URL=postgresql://… hekla doctor --probe controller=10.0.0.7:9102",
    )
)
@click.option(
    "--probe",
    "probes",
    multiple=True,
    type=Probe(),
    metavar="SERVICE=HOST:PORT",
    help="Where a service serves /readyz, if it is none of 'hekla up'. May be repeated.",
)
@options.output
@options.with_home
def doctor(home: Home, *, probes: Sequence[tuple[str, str]], form: Format) -> None:
    """Say what is wrong, and what to do about it.

    Looks at versions, Postgres (settings, schema, connections, oldest transaction, clock),
    the services and how far they are behind, Kubernetes, and the disk: of the stack of
    'hekla up', else at what HEKLA_DATABASE_URL and KUBECONFIG name. Changes nothing.

    Exit code 1 if a check fails; a warning is no failure.
    """
    environ = click.get_current_context().find_root().obj
    found = tool.installation(home, environ)
    asked = {**found.probes, **dict(probes)}
    said = ",".join(f"{name}={where}" for name, where in asked.items())
    done = tool.ask(found, "controller", "doctor", "--output=json", f"--probes={said}")
    try:
        content = json.loads(done.stdout)
        checks: Sequence[Mapping[str, str]] = content["checks"]
    except (ValueError, KeyError, TypeError):
        said = " ".join(done.stderr.split()).removeprefix("hekla doctor: ")
        raise DomainError(said or f"the doctor ended with {done.returncode}") from None
    match form:
        case Format.JSON:
            click.echo(json.dumps(content, indent=4, ensure_ascii=False))
        case Format.YAML:
            click.echo(to_yaml(content), nl=False)
        case Format.NAME:
            for one in checks:
                click.echo(one["check"])
        case Format.TABLE | Format.WIDE:
            rows = [
                (one["check"], one["state"], one["found"], one["todo"] or "-") for one in checks
            ]
            show(HEADER, rows)
    if done.returncode != 0:
        raise click.exceptions.Exit(1)
