"""Options and arguments that many commands share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import click

from hekla.cli import complete
from hekla.cli.output import Format
from hekla.client import Client
from hekla.client.endpoints import home
from hekla.domain import duration, timestamps
from hekla.domain.errors import InvalidError
from hekla.domain.phases import JobPhase
from hekla.local.stack.endpoints import Home

P = ParamSpec("P")
R = TypeVar("R")
Command = Callable[..., Any]

DEFAULT_NAMESPACE: Final = "default"
PATIENCE: Final = timedelta(seconds=3)
"""For how long a command tries to reach a service: a person waits."""
LONG_PATIENCE: Final = timedelta(seconds=10)
"""The same for commands that wait anyway: long enough for a service to be started again."""


class Span(click.ParamType[timedelta]):
    """A duration such as ``60s`` or ``1h30m``; a bare number is seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """The span that the user wrote."""
        if isinstance(value, timedelta):
            return value
        text = f"{value}s" if str(value).isdigit() else str(value)
        try:
            found = duration.parse(text)
        except InvalidError as error:
            self.fail(str(error), param, ctx)
        if found < timedelta():
            self.fail(f"must not be negative, is {value}", param, ctx)
        return found


class Instant(click.ParamType[datetime]):
    """A time such as ``2026-01-02T03:04:05Z``, or how long ago: ``2h``."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """The instant that the user means."""
        if isinstance(value, datetime):
            return value
        try:
            return timestamps.from_text(str(value))
        except InvalidError:
            pass
        try:
            return datetime.now(UTC) - duration.parse(str(value))
        except (InvalidError, OverflowError):
            self.fail(
                f"must be a time, 2026-01-02T03:04:05Z, or how long ago, 2h; is {value!r}",
                param,
                ctx,
            )


def examples(*commands: str) -> str:
    """The end of a command's help."""
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])


def with_client(command: Callable[Concatenate[Client, P], R]) -> Callable[P, R]:
    """Give the command a client as its first argument, and hang up afterwards."""
    return _with_client(command, PATIENCE)


def with_patient_client(command: Callable[Concatenate[Client, P], R]) -> Callable[P, R]:
    """The same for a command that waits for something."""
    return _with_client(command, LONG_PATIENCE)


def _with_client(
    command: Callable[Concatenate[Client, P], R], patience: timedelta
) -> Callable[P, R]:
    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        environ = click.get_current_context().find_root().obj
        with Client(environ=environ, patience=patience) as client:
            return command(client, *args, **kwargs)

    return run


def with_home(command: Callable[Concatenate[Home, P], R]) -> Callable[P, R]:
    """Give the command the home folder as its first argument."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        return command(Home(home(click.get_current_context().find_root().obj)), *args, **kwargs)

    return run


class Resources(click.ParamType[dict[str, str]]):
    """``cpu=4,memory=8Gi``."""

    name = "resources"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, str]:
        """The resources that the user wrote; their amounts are checked with the object."""
        if isinstance(value, dict):
            return value
        found: dict[str, str] = {}
        for part in str(value).split(",") if str(value).strip() else ():
            name, sign, amount = (piece.strip() for piece in part.partition("="))
            if not name or not sign or not amount or name in found:
                self.fail(f"must be like cpu=4,memory=8Gi, is {value!r}", param, ctx)
            found[name] = amount
        return found


def named(
    *flags: str, completing: complete.Completing | None = None
) -> Callable[[Command], Command]:
    """The name of one object: an argument, or the flag that Volcano's command has for it."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(*args: Any, name: str | None, flagged: str | None, **kwargs: Any) -> Any:
            context = click.get_current_context()
            if name and flagged and name != flagged:
                raise click.UsageError(
                    f"NAME is {name} and {flags[-1]} is {flagged}: which one?", context
                )
            found = name or flagged
            if not found:
                raise click.UsageError("Missing argument 'NAME'", context)
            return command(*args, name=found, **kwargs)

        flag = click.option(
            *flags,
            "flagged",
            metavar="NAME",
            help="The same as NAME.",
            shell_complete=completing,
        )
        argument = click.argument("name", required=False, shell_complete=completing)
        return argument(flag(run))

    return decorate


def job_name(command: Command) -> Command:
    """``NAME`` or ``-N``: a job."""
    return named("-N", "--name", completing=complete.jobs)(command)


def queue_name(command: Command) -> Command:
    """``NAME`` or ``-n``: a queue."""
    return named("-n", "--name", completing=complete.queues)(command)


def flow_name(command: Command) -> Command:
    """``NAME`` or ``-N``: a flow."""
    return named("-N", "--name", completing=complete.job_flows)(command)


def template_name(command: Command) -> Command:
    """``NAME`` or ``-N``: a template."""
    return named("-N", "--name", completing=complete.job_templates)(command)


def in_queue(command: Command) -> Command:
    """``-q``: only what is in a queue."""
    return click.option(
        "-q",
        "--queue",
        default="",
        metavar="QUEUE",
        help="Only those in this queue.",
        shell_complete=complete.queues,
    )(command)


def namespace(command: Command) -> Command:
    """``-n``: the namespace of what is named."""
    return click.option(
        "-n",
        "--namespace",
        default=DEFAULT_NAMESPACE,
        show_default=True,
        envvar="HEKLA_NAMESPACE",
        metavar="NAMESPACE",
        help="Namespace to look in.",
        shell_complete=complete.namespaces,
    )(command)


def phases(command: Command) -> Command:
    """``--phase``: phases that jobs must be in."""
    return click.option(
        "--phase",
        "phases",
        multiple=True,
        type=click.Choice(JobPhase, case_sensitive=False),
        metavar="PHASE",
        help="Only those in this phase, such as Running. May be repeated.",
    )(command)


def times(command: Command) -> Command:
    """``--created-after`` and the like."""
    told = {
        "--created-after": "Only those made since then: a time, or how long ago it was, as 2h.",
        "--created-before": "Only those made before.",
        "--finished-after": "Only those that ended since then.",
        "--finished-before": "Only those that ended before.",
    }
    for flag, about in reversed(told.items()):
        command = click.option(flag, type=Instant(), metavar="TIME", help=about)(command)
    return command


def everywhere(command: Command) -> Command:
    """``-A``: all namespaces."""
    return click.option(
        "-A", "--all-namespaces", "everywhere", is_flag=True, help="Look in all namespaces."
    )(command)


def output(command: Command) -> Command:
    """``-o``: how to print."""
    return click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice(Format, case_sensitive=False),
        default=Format.TABLE,
        metavar="FORMAT",
        help="table, wide (more columns), yaml, json or name.  [default: table]",
    )(command)


def selector(command: Command) -> Command:
    """``-l``: labels that objects must have."""
    return click.option(
        "-l",
        "--selector",
        default="",
        metavar="LABELS",
        help="Only with these labels: 'team=ml,tier!=test'.",
    )(command)


def wait(command: Command) -> Command:
    """``--wait``: whether to return only once it is done."""
    return click.option(
        "--wait",
        type=bool,
        default=True,
        show_default=True,
        metavar="true|false",
        help="Return only once it is gone, pods and group included.",
    )(command)


def timeout(default: str | None = None) -> Callable[[Command], Command]:
    """``--timeout``: for how long to wait."""
    return click.option(
        "--timeout",
        type=Span(),
        default=default,
        show_default=default or "for ever",
        help="How long to wait: 60s, 5m, 1h30m.",
    )


def files(command: Command) -> Command:
    """``-f``: manifests."""
    return click.option(
        "-f",
        "--filename",
        "files",
        multiple=True,
        required=True,
        type=click.Path(exists=True, dir_okay=False, allow_dash=True),
        help="A manifest of one or more documents; '-' reads standard input. May be repeated.",
    )(command)


def manifest_namespace(command: Command) -> Command:
    """``-n``: the namespace of objects of a manifest."""
    return click.option(
        "-n",
        "--namespace",
        envvar="HEKLA_NAMESPACE",
        help="Namespace of objects that name none.  [default: default]",
    )(command)
