"""``hekla job logs``."""

from __future__ import annotations

import click

from hekla.cli import options, tail
from hekla.cli.logs import Wish, chosen, show
from hekla.cli.output import raw
from hekla.client import Client
from hekla.client.waiting import FINISHED_SOMEHOW, begin, phase
from hekla.domain.errors import PreconditionError
from hekla.domain.phases import FINISHED


@click.command(
    "logs",
    epilog=options.examples(
        "hekla job logs job-1", "hekla job logs train --task worker --index 0 -f --tail 20"
    ),
)
@options.job_name
@click.option("--task", metavar="TASK", help="Only the pods of this task.")
@click.option(
    "--index", type=click.IntRange(min=0), metavar="N", help="Only the pods of this index."
)
@click.option(
    "-c", "--container", default="", metavar="NAME", help="The container; the first by default."
)
@click.option("-f", "--follow", is_flag=True, help="Go on with what is printed from now on.")
@click.option(
    "--tail", type=click.IntRange(min=0), metavar="N", help="Only so many lines, the last ones."
)
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

    Of several pods each line comes with its pod's name before it. With --follow a job that has
    no pods yet is waited for.
    """
    pods = chosen(client.jobs.pods(namespace, name), task, index)
    if not pods and follow and task is None and index is None:
        _follow_from_the_start(client, namespace, name)
        return
    if not pods:
        found = client.jobs.get(namespace, name)
        of = "".join(
            [
                f" of task {task}" if task else "",
                f" of index {index}" if index is not None else "",
            ]
        )
        raise PreconditionError(
            f"job {namespace}/{name} has no pods{of} now; it is {phase(found)}"
        )
    wish = Wish(container=container, follow=follow, tail=tail)
    failures = show(client, pods, wish, raw())
    for failure in failures:
        click.echo(f"error: {failure}", err=True)
    if failures:
        raise click.exceptions.Exit(1)


def _follow_from_the_start(client: Client, namespace: str, name: str) -> None:
    """Wait for the pods of a job that has none yet, and print what they print to its end."""
    job, cursor = begin(client.jobs, namespace, name)
    if job.status.state.phase in FINISHED:
        raise PreconditionError(
            f"job {namespace}/{name} has no pods any more; it is {phase(job)}"
        )
    tail.follow(client, job, cursor, FINISHED_SOMEHOW, timeout=None, out=raw())
