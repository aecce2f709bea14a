"""``hekla job run``: a job from flags."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click

from hekla.api.job import Job
from hekla.cli import complete, kinds, manifest, options, output, tail, wait as waiting
from hekla.cli.errors import flush
from hekla.cli.output import Format
from hekla.client import Client, simple_job
from hekla.client.simple import IMAGE, REQUESTS
from hekla.domain.errors import InvalidError
from hekla.domain.names import DEFAULT_QUEUE, SCHEDULER_NAME
from hekla.domain.phases import JobPhase

BESIDE_A_FILE: Final = frozenset(
    {"namespace", "form", "files", "dry_run", "wait", "follow", "timeout"}
)
"""What may be said beside a manifest, which says all else."""
_NO_NAME: Final = re.compile(r"[^a-z0-9]+")


class Variable(click.ParamType[tuple[str, str]]):
    """``NAME=VALUE``."""

    name = "variable"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Name and value."""
        if isinstance(value, tuple):
            return value
        name, sign, text = str(value).partition("=")
        if not name or not sign:
            self.fail(f"must be like NAME=VALUE, is {value!r}", param, ctx)
        return name, text


class AfterDashes(click.Command):
    """A command that knows how many of its words came after ``--``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Count them; click itself forgets."""
        if "--" in args:
            ctx.meta[AFTER] = len(args) - args.index("--") - 1
        return super().parse_args(ctx, args)


AFTER: Final = "hekla.words-after-dashes"


def _amounts(*flags: str, help: str) -> Callable[[options.Command], options.Command]:  # noqa: A002
    return click.option(
        *flags,
        type=options.Resources(),
        default=",".join(f"{name}={amount}" for name, amount in REQUESTS.items()),
        show_default=True,
        metavar="RESOURCES",
        help=help,
    )


@click.command(
    "run",
    cls=AfterDashes,
    epilog=options.examples(
        "hekla job run hello --follow -- echo hello",
        "hekla job run --replicas 3 --min 3 --requests cpu=2 --wait -- sh -c 'sleep 5'",
        "hekla job run train --image pytorch:2 -q team-a --dry-run=client -o yaml -- train.py",
        "hekla job run -f job.yaml --follow",
    ),
)
@click.argument("name", required=False)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option("-N", "--name", "flagged", metavar="NAME", help="The same as NAME.")
@click.option("-i", "--image", default=IMAGE, show_default=True, help="The container's image.")
@click.option("-r", "--replicas", type=int, default=1, show_default=True, help="How many pods.")
@click.option(
    "-m",
    "--min",
    "--min-available",
    "min_available",
    type=int,
    default=1,
    show_default=True,
    help="How many of them start together or not at all.",
)
@_amounts("-R", "--requests", help="What each pod asks for; empty for nothing.")
@_amounts("-L", "--limits", help="What each pod may use; empty for no limit.")
@click.option(
    "-q",
    "--queue",
    default=DEFAULT_QUEUE,
    show_default=True,
    help="The queue to wait in.",
    shell_complete=complete.queues,
)
@click.option("--priority-class", "priority_class_name", help="Its rank: a PriorityClass.")
@click.option(
    "-S",
    "--scheduler",
    "scheduler_name",
    default=SCHEDULER_NAME,
    show_default=True,
    help="Who places its pods.",
)
@click.option(
    "-e",
    "--env",
    "env",
    type=Variable(),
    multiple=True,
    metavar="NAME=VALUE",
    help="A variable of the container. May be repeated.",
)
@click.option("--max-retry", type=int, help="How often it may be restarted.  [default: 3]")
@click.option(
    "--ttl",
    "ttl_seconds_after_finished",
    type=int,
    metavar="SECONDS",
    help="Delete it so long after its end.",
)
@click.option(
    "-f",
    "--filename",
    "files",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="Take the job from a manifest instead; '-' reads standard input.",
)
@click.option("--wait", is_flag=True, help="Return when the job has ended.")
@click.option("--follow", is_flag=True, help="The same, and show what its pods print.")
@options.timeout()
@click.option(
    "--dry-run",
    type=click.Choice(["none", "client"]),
    default="none",
    help="With 'client' make the job and send it nowhere.",
)
@options.namespace
@options.output
@click.pass_context
def run(
    context: click.Context,
    /,
    *,
    name: str | None,
    flagged: str | None,
    command: Sequence[str],
    files: str | None,
    env: Sequence[tuple[str, str]],
    wait: bool,
    follow: bool,
    timeout: timedelta | None,
    dry_run: str,
    namespace: str,
    form: Format,
    **spec: Any,
) -> None:
    """Make a job of one container from flags, and run it.

    The command comes after '--'. Without a NAME it gets one that begins like the image's. With
    --wait or --follow the exit code is 0 if the job completed, 1 if it ended otherwise, and 2
    if --timeout was over first; the job goes on then, and after Ctrl-C.
    """
    if files is not None:
        job = _from_file(context, files)
    else:
        name, command = _name_and_command(context, name, flagged, command)
        job = simple_job(
            name or "",
            namespace=namespace,
            generate_name="" if name else _beginning(spec["image"]),
            command=command,
            env=dict(env),
            **spec,
        )
    if dry_run == "client":
        _show_dry(job, form)
        return
    if timeout is not None and not wait and not follow:
        raise click.UsageError("--timeout goes with --wait or --follow", context)
    environ = context.find_root().obj
    patience = options.LONG_PATIENCE if wait or follow else options.PATIENCE
    with Client(environ=environ, patience=patience) as client:
        _run(client, job, form, wait=wait, follow=follow, timeout=timeout)


def _run(
    client: Client,
    job: Job,
    form: Format,
    *,
    wait: bool,
    follow: bool,
    timeout: timedelta | None,
) -> None:
    # Older than the job, so that nothing of its life is missed.
    cursor = client.jobs.cursor(job.metadata.namespace) if wait or follow else ""
    admitted = client.jobs.create(job)
    made = admitted.object
    output.warnings(admitted.warnings)
    quiet = follow and form is Format.TABLE  # its output is the pods', to be piped on
    shown = kinds.job(made, datetime.now(UTC))
    if quiet:
        click.echo(f"{kinds.JOBS.resource}/{shown.name} created", err=True)
    else:
        output.created(kinds.JOBS, shown, form)
    flush()
    wanted = str(JobPhase.COMPLETED)
    if follow:
        waited = tail.follow(client, made, cursor, wanted, timeout=timeout, out=output.raw())
        waiting.conclude(client, waited, wanted, timeout, quiet=True)
    elif wait:
        waited = waiting.live(client, made, cursor, wanted, timeout)
        waiting.conclude(client, waited, wanted, timeout, quiet=form is not Format.TABLE)


def _name_and_command(
    context: click.Context, name: str | None, flagged: str | None, command: Sequence[str]
) -> tuple[str | None, Sequence[str]]:
    """What stands before ``--``, and what after it."""
    words = [*([name] if name is not None else []), *command]
    before = len(words) - context.meta.get(AFTER, 0)
    if before > 1:
        raise click.UsageError(f"{words[1]!r}: the command comes after '--'", context)
    name, command = (words[0] if before else None), words[before:]
    if name and flagged and name != flagged:
        raise click.UsageError(f"NAME is {name} and --name is {flagged}: which one?", context)
    return name or flagged, command


def _from_file(context: click.Context, file: str) -> Job:
    said = [
        parameter.opts[-1] if isinstance(parameter, click.Option) else "NAME or COMMAND"
        for parameter in context.command.params
        if parameter.name
        and parameter.name not in BESIDE_A_FILE
        and context.get_parameter_source(parameter.name)
        not in (click.core.ParameterSource.DEFAULT, click.core.ParameterSource.DEFAULT_MAP)
        and context.params.get(parameter.name)
    ]
    if said:
        raise click.UsageError(f"{said[0]} does not go with --filename", context)
    source = context.get_parameter_source("namespace")
    given = source not in (click.core.ParameterSource.DEFAULT, None)
    namespace = context.params["namespace"] if given else None
    jobs = [item.object for item in manifest.read([file], namespace)]
    if len(jobs) != 1 or not isinstance(jobs[0], Job):
        raise InvalidError(f"{file} must hold one Job and nothing else; see 'hekla apply'")
    return jobs[0]


def _beginning(image: str) -> str:
    """A beginning of a name, of the image's: ``busybox-`` of ``registry/busybox:1.36``."""
    last = image.rpartition("/")[2].partition("@")[0].partition(":")[0].lower()
    return f"{_NO_NAME.sub('-', last).strip('-')[:40].rstrip('-') or 'job'}-"


def _show_dry(job: Job, form: Format) -> None:
    shown = kinds.job(job, datetime.now(UTC))
    content: Mapping[str, Any] = {k: v for k, v in shown.content.items() if k != "status"}
    name = shown.name or f"{job.metadata.generate_name}…"
    if form in (Format.TABLE, Format.WIDE):
        click.echo(f"{kinds.JOBS.resource}/{name} created (dry run)")
    else:
        output.single(kinds.JOBS, output.Shown(name, shown.namespace, shown.row, content), form)
