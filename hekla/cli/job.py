"""``hekla job …``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import click

from hekla.cli import gone, kinds, logs, options, output, wait as waiting
from hekla.cli.output import Format
from hekla.cli.wait import DELETED, Verdict
from hekla.client import Client
from hekla.domain.errors import NotFoundError, PreconditionError
from hekla.domain.phases import JobAction, JobPhase

TIMED_OUT: Final = 2

COMMANDS: Final = {
    "suspend": (JobAction.ABORT_JOB, "Stop a job's pods, so that 'resume' can start it again."),
    "abort": (JobAction.ABORT_JOB, "The same as 'suspend'."),
    "resume": (JobAction.RESUME_JOB, "Start a suspended job again where it left off."),
    "restart": (JobAction.RESTART_JOB, "Start a job anew: all its pods, in a new run."),
    "terminate": (JobAction.TERMINATE_JOB, "End a job for good, as one that did not succeed."),
    "complete": (JobAction.COMPLETE_JOB, "End a job for good, as one that is done."),
}


@click.group(
    epilog=options.examples(
        "hekla job list",
        "hekla job wait job-1 --for Completed --timeout 60s",
        "hekla job logs job-1 -f",
    )
)
def job() -> None:
    """Jobs: look at them, wait for them, command them."""


@job.command(
    "list",
    epilog=options.examples(
        "hekla job list -A --phase Running", "hekla job list -q test -l team=ml -o json"
    ),
)
@options.namespace
@options.everywhere
@options.selector
@click.option("-q", "--queue", default="", help="Only those in this queue.")
@click.option(
    "--phase",
    "phases",
    multiple=True,
    type=click.Choice(JobPhase, case_sensitive=False),
    help="Only those in this phase. May be repeated.",
)
@options.output
@options.with_client
def list_jobs(
    client: Client,
    *,
    namespace: str,
    everywhere: bool,
    selector: str,
    queue: str,
    phases: Sequence[JobPhase],
    form: Format,
) -> None:
    """List jobs."""
    within = "" if everywhere else namespace
    found = client.jobs.list(within, queue=queue, phases=phases, label_selector=selector).items
    now = datetime.now(UTC)
    shown = [kinds.job(one, now) for one in found]
    output.listing(kinds.JOBS, shown, form, namespace=within, everywhere=everywhere)


@job.command("get", epilog=options.examples("hekla job get job-1 -o yaml"))
@click.argument("name")
@options.namespace
@options.output
@options.with_client
def get_job(client: Client, *, name: str, namespace: str, form: Format) -> None:
    """Show a job."""
    found = client.jobs.get(namespace, name)
    output.single(kinds.JOBS, kinds.job(found, datetime.now(UTC)), form)


@job.command(
    "wait",
    epilog=options.examples(
        "hekla job wait job-1 --for Running",
        "hekla job wait job-1 --for Completed --timeout 10m && echo done",
    ),
)
@click.argument("name")
@click.option(
    "--for",
    "wanted",
    required=True,
    type=click.Choice([*map(str, JobPhase), DELETED], case_sensitive=False),
    metavar="PHASE",
    help=f"A phase, such as Running or Completed; or {DELETED}.",
)
@options.timeout()
@options.namespace
@options.with_patient_client
def wait(
    client: Client, *, name: str, wanted: str, timeout: timedelta | None, namespace: str
) -> None:
    """Wait until a job is or was in a phase.

    Exit code 0 if it is reached, 1 as soon as it cannot be reached any more (the job finished
    in another phase, or was deleted), 2 if the time is over.
    """
    verdict, text = waiting.wait(client, namespace, name, wanted, timeout)
    if verdict is Verdict.MET:
        click.echo(text)
        return
    click.echo(f"error: {text}", err=True)
    raise click.exceptions.Exit(TIMED_OUT if verdict is Verdict.OPEN else 1)


@job.command(
    "logs",
    epilog=options.examples(
        "hekla job logs job-1", "hekla job logs train --task worker --index 0 -f --tail 20"
    ),
)
@click.argument("name")
@click.option("--task", help="Only the pods of this task.")
@click.option("--index", type=click.IntRange(min=0), help="Only the pods of this index.")
@click.option("-c", "--container", default="", help="The container; the first by default.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is printed from now on.")
@click.option("--tail", type=click.IntRange(min=0), help="Only so many lines, the last ones.")
@options.namespace
@options.with_client
def job_logs(
    client: Client,
    *,
    name: str,
    task: str | None,
    index: int | None,
    container: str,
    follow: bool,
    tail: int | None,
    namespace: str,
) -> None:
    """Print what a job's pods printed.

    Of several pods each line comes with its pod's name before it.
    """
    pods = logs.chosen(client.jobs.pods(namespace, name), task, index)
    if not pods:
        found = client.jobs.get(namespace, name)
        of = "".join(
            [
                f" of task {task}" if task else "",
                f" of index {index}" if index is not None else "",
            ]
        )
        raise PreconditionError(
            f"job {namespace}/{name} has no pods{of} now; it is {kinds.phase(found)}"
        )
    wish = logs.Wish(container=container, follow=follow, tail=tail)
    failures = logs.show(client, pods, wish, sys.stdout.buffer)
    for failure in failures:
        click.echo(f"error: {failure}", err=True)
    if failures:
        raise click.exceptions.Exit(1)


@job.command("attempts", epilog=options.examples("hekla job attempts job-1"))
@click.argument("name")
@options.namespace
@options.output
@options.with_client
def attempts(client: Client, *, name: str, namespace: str, form: Format) -> None:
    """Show every life of every pod of a job.

    Those of a deleted job are remembered as well.
    """
    now = datetime.now(UTC)
    shown = [kinds.attempt(one, now) for one in client.jobs.attempts(namespace, name)]
    output.listing(kinds.ATTEMPTS, shown, form, namespace=namespace, everywhere=False)


@job.command(
    "events",
    epilog=options.examples("hekla job delete job-1", "hekla job delete a b c --wait=false"),
)
@click.argument("name")
@options.namespace
@options.output
@options.with_client
def events(client: Client, *, name: str, namespace: str, form: Format) -> None:
    """Show what happened to a job, oldest first."""
    now = datetime.now(UTC)
    shown = [kinds.event(one, now) for one in client.jobs.events(namespace, name)]
    output.listing(kinds.EVENTS, shown, form, namespace=namespace, everywhere=False)


@job.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--ignore-not-found", is_flag=True, help="What is not there is no error.")
@options.wait
@options.timeout()
@options.namespace
@options.with_client
def delete(
    client: Client,
    *,
    names: Sequence[str],
    ignore_not_found: bool,
    wait: bool,
    timeout: timedelta | None,
    namespace: str,
) -> None:
    """Delete jobs, pods and pod groups included."""
    removals, failures = [], []
    for name in names:
        try:
            removals.append(gone.delete(client, namespace, name))
        except NotFoundError as error:
            if not ignore_not_found:
                failures.append(error)
    for removal in removals:
        if wait:
            removal.wait(client, timeout)
        click.echo(f"{kinds.JOBS.resource}/{removal.job.metadata.name} deleted")
    for failure in failures:
        click.echo(f"error: {failure}", err=True)
    if failures:
        raise click.exceptions.Exit(1)


def _command(word: str, action: JobAction, about: str) -> click.Command:
    @click.argument("name")
    @options.namespace
    @options.with_client
    def command(client: Client, *, name: str, namespace: str) -> None:
        client.jobs.command(namespace, name, action, reason="UserRequest")
        click.echo(f"{kinds.JOBS.resource}/{name} {word} requested")

    made: Callable[..., click.Command] = click.command(
        word, help=about, epilog=options.examples(f"hekla job {word} job-1")
    )
    return made(command)


for _word, (_action, _about) in COMMANDS.items():
    job.add_command(_command(_word, _action, _about))
