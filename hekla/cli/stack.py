"""``hekla up``, ``down``, ``status``, ``stop``, ``start``: the local stack."""

from __future__ import annotations

import json
import shlex
import signal
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any, Final

import click

from hekla.cli import options
from hekla.cli.output import Format, to_yaml
from hekla.cli.table import show
from hekla.client.endpoints import SERVICES
from hekla.domain import quantity
from hekla.domain.ages import span
from hekla.domain.errors import InvalidError, UnavailableError
from hekla.local.stack import plan, up as local
from hekla.local.stack.endpoints import Home

DATABASE_VARIABLE: Final = "HEKLA_DATABASE_URL"
PORTS: Final = (
    *SERVICES,
    *(plan.http_port(service) for service in SERVICES),
    plan.WEBHOOK_HTTPS,
    plan.KUBERNETES,
)


class Assignment(click.ParamType[tuple[str, int]]):
    """``NAME=NUMBER`` with one of some names."""

    name = "assignment"

    def __init__(self, names: Sequence[str], smallest: int, largest: int) -> None:
        self._names = names
        self._smallest = smallest
        self._largest = largest

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """The name and the number."""
        if isinstance(value, tuple):
            return value
        name, _, number = str(value).partition("=")
        if name not in self._names:
            self.fail(f"{name!r} is none of {', '.join(self._names)}", param, ctx)
        if not number.isascii() or not number.isdigit():
            self.fail(f"must be like {name}=NUMBER, is {value!r}", param, ctx)
        if not self._smallest <= int(number) <= self._largest:
            bounds = f"from {self._smallest} to {self._largest}"
            self.fail(f"must be {bounds}, is {number}", param, ctx)
        return name, int(number)


class Amount(click.ParamType[str]):
    """A Kubernetes quantity that is more than nothing."""

    name = "quantity"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """The quantity as it was written."""
        try:
            positive = quantity.parse(str(value)) > 0
        except InvalidError as error:
            self.fail(str(error), param, ctx)
        if not positive:
            self.fail(f"must be more than 0, is {value}", param, ctx)
        return str(value)


def _say(line: str) -> None:
    click.echo(line, err=True)


@click.command(
    epilog=options.examples(
        "hekla up --detach",
        "hekla up --nodes 10 --node-cpu 64 --node-memory 256Gi --runtime simulate",
        "HEKLA_HOME=/tmp/h hekla up --detach --port controller=50052",
    )
)
@click.option("-d", "--detach", is_flag=True, help="Return once everything is ready.")
@click.option(
    "--nodes", type=click.IntRange(1, 100_000), help="Nodes of the local cluster.  [default: 3]"
)
@click.option("--node-cpu", type=Amount(), help="CPUs of each node.  [default: 16]")
@click.option("--node-memory", type=Amount(), help="Memory of each node.  [default: 64Gi]")
@click.option(
    "--runtime",
    type=click.Choice(["process", "simulate"]),
    help="Run pods as local processes, or pretend to.  [default: process]",
)
@click.option(
    "--crds/--no-crds",
    default=None,
    help="Take jobs by kubectl too, as custom resources.  [default: crds]",
)
@click.option(
    "--watch-delay",
    hidden=True,
    help="Let watches of the local cluster lag: a fault for tests.",
)
@click.option(
    "--replicas",
    multiple=True,
    type=Assignment(SERVICES, 1, 20),
    metavar="SERVICE=N",
    help="Run more than one of a service. May be repeated.",
)
@click.option(
    "--port",
    "ports",
    multiple=True,
    type=Assignment(PORTS, 1, 65535),
    envvar="HEKLA_PORTS",
    metavar="NAME=PORT",
    help=f"Take this port instead of a free one; NAME is one of {', '.join(PORTS)}.",
)
@click.option(
    "--timeout",
    type=options.Span(),
    default="90s",
    show_default=True,
    help="To be ready within.",
)
@options.with_home
def up(
    home: Home,
    /,
    *,
    detach: bool,
    ports: Sequence[tuple[str, int]],
    replicas: Sequence[tuple[str, int]],
    timeout: timedelta,
    **asked: Any,
) -> None:
    """Start a local stack, or what is missing of it.

    That is Postgres, a local Kubernetes cluster and the four services. Everything lives in
    HEKLA_HOME (~/.hekla by default) and listens on this machine only. With HEKLA_DATABASE_URL
    set, that database is used instead of a Postgres of our own. Without --detach it stays and
    tells what happens, and Ctrl-C takes everything down. The last line it prints is for a shell
    in which kubectl is to find the cluster.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    environ = click.get_current_context().find_root().obj
    wanted = {name: value for name, value in asked.items() if value is not None}
    if replicas:
        wanted["replicas"] = {name: count for name, count in replicas if count != 1}
    if environ.get(DATABASE_VARIABLE):
        wanted["database_url"] = environ[DATABASE_VARIABLE]
    began = local.up(
        home,
        local.Asked(wanted, dict(ports)),
        environ=environ,
        report=_say,
        timeout=timeout.total_seconds(),
    )
    click.echo(f"hekla is up in {home.folder}" if began else f"hekla was up in {home.folder}")
    click.echo(f"export KUBECONFIG={shlex.quote(str(home.kubeconfig))}")
    if detach or not began:
        return
    _say("Ctrl-C takes it down")
    _follow(home)


def _follow(home: Home) -> None:
    """Stay until we are told to end, or the stack is taken down from elsewhere."""
    try:
        local.follow(home, report=_say)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # once is enough; it takes a moment
        local.down(home, report=_say)


@click.command(epilog=options.examples("hekla down", "hekla down --purge"))
@click.option("--purge", is_flag=True, help="Remove all data too: jobs, history, logs.")
@options.with_home
def down(home: Home, *, purge: bool) -> None:
    """Stop all that 'hekla up' started. Pods end too; data stays."""
    found = local.down(home, report=_say, purge=purge)
    click.echo(
        f"hekla is down in {home.folder}" if found else f"hekla was down in {home.folder}"
    )


@click.command(epilog=options.examples("hekla status", "hekla status -o json"))
@options.output
@options.with_home
def status(home: Home, *, form: Format) -> None:
    """Show what runs, what does not and why. Exit code 0 if all is ready."""
    found = local.status(home)
    if found is None:
        raise UnavailableError(f"hekla is not up in {home.folder}; start it with 'hekla up'")
    _show(found, form)
    if any(unit.problem for unit in found):
        raise click.exceptions.Exit(1)


def _show(found: Sequence[local.Standing], form: Format) -> None:
    content: Mapping[str, Any] = {"services": [asdict(unit) for unit in found]}
    match form:
        case Format.JSON:
            click.echo(json.dumps(content, indent=4))
        case Format.YAML:
            click.echo(to_yaml(content), nl=False)
        case Format.NAME:
            for unit in found:
                click.echo(unit.name)
        case Format.TABLE | Format.WIDE:
            header = ("SERVICE", "STATE", "READY", "PID", "UP", "RESTARTS", "ADDRESS", "REASON")
            show(header, [_row(unit) for unit in found])


def _row(unit: local.Standing) -> Sequence[str]:
    return (
        unit.name,
        unit.state,
        "no" if unit.problem else "yes",
        str(unit.pid or "-"),
        "-" if unit.up is None else span(timedelta(seconds=unit.up)),
        str(unit.restarts),
        unit.address or "-",
        unit.problem or unit.note,
    )


@click.command(epilog=options.examples("hekla stop scheduler"))
@click.argument("service")
@options.with_home
def stop(home: Home, *, service: str) -> None:
    """Stop one service.

    SERVICE is webhook, controller, scheduler, flow, postgres or cluster. It stays stopped until
    'hekla start' or 'hekla up'.
    """
    for name in local.stop(home, service):
        click.echo(f"{name} stopped")


@click.command(epilog=options.examples("hekla start scheduler"))
@click.argument("service")
@click.option(
    "--env",
    "variables",
    multiple=True,
    hidden=True,
    metavar="NAME=VALUE",
    help="Environment until it dies, for tests: HEKLA_FAILPOINTS=….",
)
@options.with_home
def start(home: Home, *, service: str, variables: Sequence[str]) -> None:
    """Start a stopped service.

    Returns once it is ready.
    """
    env = dict(variable.split("=", 1) for variable in variables if "=" in variable)
    for name in local.start(home, service, env=env):
        click.echo(f"{name} started")
