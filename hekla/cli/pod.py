"""``hekla pod …`` and ``hekla podgroup …``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from hekla.cli import complete, kinds, options, output
from hekla.cli.output import Format
from hekla.client import Client
from hekla.domain.errors import PreconditionError
from hekla.domain.phases import PodGroupPhase, PodPhase


@click.group(epilog=options.examples("hekla pod list", "hekla pod list --job job-1 -o json"))
def pod() -> None:
    """Pods of jobs, as the controller last saw them."""


@pod.command("list", epilog=options.examples("hekla pod list -A", "hekla pod list -j job-1"))
@click.option(
    "-j", "--job", default="", help="Only those of this job.", shell_complete=complete.jobs
)
@options.in_queue
@click.option("--task", default="", metavar="TASK", help="Only those of this task.")
@click.option(
    "--phase",
    "phases",
    multiple=True,
    type=click.Choice(PodPhase, case_sensitive=False),
    metavar="PHASE",
    help="Only those in this phase, such as Running. May be repeated.",
)
@options.namespace
@options.everywhere
@options.output
@options.with_client
def list_pods(
    client: Client,
    *,
    job: str,
    queue: str,
    task: str,
    phases: Sequence[PodPhase],
    namespace: str,
    everywhere: bool,
    form: Format,
) -> None:
    """List the pods that jobs have now."""
    within = "" if everywhere else namespace
    now = datetime.now(UTC)
    if job and queue and not everywhere:
        actual = client.jobs.get(namespace, job).spec.queue
        if actual != queue:
            raise PreconditionError(f"job {namespace}/{job} is in queue {actual}, not {queue}")
    pods = client.jobs.pods(within, job, task=task, phases=phases)
    if queue:
        jobs = client.jobs.list(within, queue=queue).items
        theirs = {(one.metadata.namespace, one.metadata.name) for one in jobs}
        pods = [pod for pod in pods if (pod.namespace, pod.job) in theirs]
    found = sorted(
        pods,
        key=lambda one: (one.namespace, one.job, one.attempt.task, one.attempt.index),
    )
    shown = [kinds.pod(one, now) for one in found]
    output.listing(kinds.PODS, shown, form, namespace=within, everywhere=everywhere)


@click.group(epilog=options.examples("hekla podgroup list", "hekla podgroup list -A -o yaml"))
def podgroup() -> None:
    """Pod groups: pods that start together or not at all."""


@podgroup.command(
    "list", epilog=options.examples("hekla podgroup list", "hekla podgroup list -A -q test")
)
@options.in_queue
@options.namespace
@options.everywhere
@options.selector
@click.option(
    "--phase",
    "phases",
    multiple=True,
    type=click.Choice(PodGroupPhase, case_sensitive=False),
    metavar="PHASE",
    help="Only those in this phase, such as Inqueue. May be repeated.",
)
@options.output
@options.with_client
def list_pod_groups(
    client: Client,
    *,
    queue: str,
    namespace: str,
    everywhere: bool,
    selector: str,
    phases: Sequence[PodGroupPhase],
    form: Format,
) -> None:
    """List pod groups."""
    within = "" if everywhere else namespace
    now = datetime.now(UTC)
    found = client.pod_groups.list(
        within, queue=queue, label_selector=selector, phases=phases
    ).items
    shown = [kinds.pod_group(one, now) for one in found]
    output.listing(kinds.POD_GROUPS, shown, form, namespace=within, everywhere=everywhere)


@podgroup.command("get", epilog=options.examples("hekla podgroup get NAME -o yaml"))
@options.named("-N", "--name", completing=complete.pod_groups)
@options.namespace
@options.output
@options.with_client
def get(client: Client, *, name: str, namespace: str, form: Format) -> None:
    """Show a pod group."""
    shown = kinds.pod_group(client.pod_groups.get(namespace, name), datetime.now(UTC))
    output.single(kinds.POD_GROUPS, shown, form)
