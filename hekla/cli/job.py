"""``hekla job …``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import click

from hekla.cli import complete, gone, kinds, options, output, view
from hekla.cli.job_logs import job_logs
from hekla.cli.output import Format
from hekla.cli.run import run
from hekla.cli.wait import wait
from hekla.cli.watch import watch
from hekla.client import Client
from hekla.client.jobs import BY_USER
from hekla.domain.attempt import Outcome
from hekla.domain.errors import NotFoundError
from hekla.domain.phases import JobAction, JobPhase

COMMANDS: Final = {
    "suspend": (JobAction.ABORT_JOB, "Stop a job's pods, so that 'resume' can start it again."),
    "abort": (JobAction.ABORT_JOB, "The same as 'suspend': stop a job's pods."),
    "resume": (JobAction.RESUME_JOB, "Start a suspended job again where it left off."),
    "terminate": (JobAction.TERMINATE_JOB, "End a job for good, as one that did not succeed."),
    "complete": (JobAction.COMPLETE_JOB, "End a job for good, as one that is done."),
}


@click.group(
    epilog=options.examples(
        "hekla job run hello --follow -- echo hello",
        "hekla job list",
        "hekla job wait job-1 --for Completed --timeout 60s",
        "hekla job logs job-1 -f",
    )
)
def job() -> None:
    """Jobs: run them, look at them, wait for them, command them."""


job.add_command(run)


@job.command(
    "list",
    epilog=options.examples(
        "hekla job list -A --phase Running", "hekla job list -q test -l team=ml -o json"
    ),
)
@options.namespace
@options.everywhere
@options.selector
@options.in_queue
@options.phases
@click.option(
    "-S", "--scheduler", default="", metavar="NAME", help="Only those that this one places."
)
@options.times
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="No more than so many.")
@options.output
@options.with_client
def list_jobs(
    client: Client,
    /,
    *,
    namespace: str,
    everywhere: bool,
    selector: str,
    queue: str,
    phases: Sequence[JobPhase],
    scheduler: str,
    limit: int | None,
    form: Format,
    **times: datetime | None,
) -> None:
    """List jobs."""
    within = "" if everywhere else namespace
    found = client.jobs.list(
        within,
        queue=queue,
        phases=phases,
        label_selector=selector,
        limit=None if scheduler else limit,
        **times,
    ).items
    now = datetime.now(UTC)
    placed = [it for it in found if scheduler in ("", it.spec.scheduler_name)][:limit]
    shown = [kinds.job(one, now) for one in placed]
    output.listing(kinds.JOBS, shown, form, namespace=within, everywhere=everywhere)


@job.command("get", epilog=options.examples("hekla job get job-1 -o yaml"))
@options.job_name
@options.namespace
@options.output
@options.with_client
def get_job(client: Client, *, name: str, namespace: str, form: Format) -> None:
    """Show a job."""
    found = client.jobs.get(namespace, name)
    output.single(kinds.JOBS, kinds.job(found, datetime.now(UTC)), form)


job.add_command(view.view)
job.add_command(wait)
job.add_command(watch)
job.add_command(job_logs)


@job.command(
    "attempts",
    epilog=options.examples(
        "hekla job attempts job-1", "hekla job attempts train --task worker --outcome Failed"
    ),
)
@options.job_name
@click.option("--task", default="", metavar="TASK", help="Only those of this task.")
@click.option(
    "--outcome",
    "outcomes",
    multiple=True,
    type=click.Choice(Outcome, case_sensitive=False),
    metavar="OUTCOME",
    help="Only those that ended so, such as Failed. May be repeated.",
)
@options.namespace
@options.output
@options.with_client
def attempts(
    client: Client,
    *,
    name: str,
    task: str,
    outcomes: Sequence[Outcome],
    namespace: str,
    form: Format,
) -> None:
    """Show every life of every pod of a job.

    Those of a deleted job are remembered as well.
    """
    now = datetime.now(UTC)
    found = client.jobs.attempts(namespace, name, task=task, outcomes=outcomes)
    shown = [kinds.attempt(one, now) for one in found]
    output.listing(kinds.ATTEMPTS, shown, form, namespace=namespace, everywhere=False)


@job.command(
    "events",
    epilog=options.examples("hekla job events job-1", "hekla job events job-1 --type Warning"),
)
@options.job_name
@click.option(
    "--type",
    "kind",
    type=click.Choice(["Normal", "Warning"], case_sensitive=False),
    help="Only these.",
)
@options.namespace
@options.output
@options.with_client
def events(
    client: Client, *, name: str, kind: str | None, namespace: str, form: Format
) -> None:
    """Show what happened to a job, oldest first."""
    now = datetime.now(UTC)
    found = client.jobs.events(namespace, name, type=kind or "")
    shown = [kinds.event(one, now) for one in found]
    output.listing(kinds.EVENTS, shown, form, namespace=namespace, everywhere=False)


@job.command(
    "delete",
    epilog=options.examples("hekla job delete job-1", "hekla job delete a b c --wait=false"),
)
@click.argument("names", nargs=-1, metavar="NAME...", shell_complete=complete.jobs)
@click.option("-N", "--name", "flagged", multiple=True, metavar="NAME", help="One more NAME.")
@click.option("--ignore-not-found", is_flag=True, help="What is not there is no error.")
@options.wait
@options.timeout()
@options.namespace
@options.with_client
def delete(
    client: Client,
    *,
    names: Sequence[str],
    flagged: Sequence[str],
    ignore_not_found: bool,
    wait: bool,
    timeout: timedelta | None,
    namespace: str,
) -> None:
    """Delete jobs, pods and pod groups included."""
    removals, failures = [], []
    if not names and not flagged:
        raise click.UsageError("Missing argument 'NAME...'", click.get_current_context())
    for name in dict.fromkeys([*names, *flagged]):
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


@job.command(
    "restart",
    epilog=options.examples(
        "hekla job restart job-1",
        "hekla job restart train --task worker",
        "hekla job restart train --task worker --index 3",
    ),
)
@options.job_name
@click.option(
    "--task", default="", metavar="TASK", help="Only the pods of this task: RestartTask."
)
@click.option(
    "--index",
    type=click.IntRange(min=0),
    metavar="N",
    help="Only this pod of the task: RestartPod.",
)
@options.namespace
@options.with_client
def restart(client: Client, *, name: str, task: str, index: int | None, namespace: str) -> None:
    """Start a job anew: all its pods, or some, in a new run."""
    if index is not None and not task:
        raise click.UsageError("--index goes with --task", click.get_current_context())
    action = (
        JobAction.RESTART_POD
        if index is not None
        else JobAction.RESTART_TASK
        if task
        else JobAction.RESTART_JOB
    )
    client.jobs.command(namespace, name, action, reason=BY_USER, task=task, index=index)
    click.echo(f"{kinds.JOBS.resource}/{name} restart requested")


def _command(word: str, action: JobAction, about: str) -> click.Command:
    @options.job_name
    @options.namespace
    @options.with_client
    def command(client: Client, *, name: str, namespace: str) -> None:
        client.jobs.command(namespace, name, action, reason=BY_USER)
        click.echo(f"{kinds.JOBS.resource}/{name} {word} requested")

    made: Callable[..., click.Command] = click.command(
        word,
        help=f"{about}\n\nReturns when the wish is stored: {action}.",
        epilog=options.examples(f"hekla job {word} job-1"),
    )
    return made(command)


for _word, (_action, _about) in COMMANDS.items():
    job.add_command(_command(_word, _action, _about))
