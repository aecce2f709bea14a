"""``hekla jobflow …``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import click

from hekla.api.job_flow import JobFlow
from hekla.cli import apply, gone, kinds, manifest, options, output
from hekla.cli.output import Format
from hekla.cli.progress import Progress
from hekla.client import Client
from hekla.client.job_flows import DELETED, ENDS, FINISHED, phase
from hekla.domain import names
from hekla.domain.errors import InvalidError, UnavailableError
from hekla.domain.phases import FlowPhase

WANTED: Final = (*map(str, FlowPhase), FINISHED, DELETED)


@click.group(
    epilog=options.examples(
        "hekla jobflow run -f examples/ml-pipeline.yaml --wait",
        "hekla jobflow list",
        "hekla jobflow wait ml-pipeline --for Succeed --timeout 5m",
    )
)
def jobflow() -> None:
    """Job flows: graphs of jobs, each made from a template when it is its turn."""


@jobflow.command(
    "run",
    epilog=options.examples(
        "hekla jobflow run -f examples/ml-pipeline.yaml",
        "hekla jobflow run -f examples/parallel-pipeline.yaml --wait --timeout 5m",
    ),
)
@options.files
@click.option("--wait", is_flag=True, help="Return only once the flows have ended.")
@options.timeout()
@options.manifest_namespace
@options.with_patient_client
def run(
    client: Client,
    *,
    files: Sequence[str],
    wait: bool,
    timeout: timedelta | None,
    namespace: str | None,
) -> None:
    """Create the flows of a manifest, after the templates in it are created or changed.

    With --wait the exit code is 0 if all flows succeed, 1 if one does not, 2 if the time is
    over.
    """
    items = manifest.read(files, namespace)
    flows = [item for item in items if isinstance(item.object, JobFlow)]
    if not flows:
        raise InvalidError(f"{', '.join(files)}: has no JobFlow in it")
    apply.send(client, [item for item in items if item not in flows])
    made = []
    for item in flows:
        assert isinstance(item.object, JobFlow)
        admitted = client.job_flows.create(item.object)
        output.warnings(admitted.warnings, f"{item.name}: ")
        click.echo(f"{kinds.JOB_FLOWS.resource}/{admitted.object.metadata.name} created")
        made.append(admitted.object)
    for flow in made if wait else ():
        metadata = flow.metadata
        _wait(client, metadata.namespace, metadata.name, FlowPhase.SUCCEED, timeout)


@jobflow.command(
    "list", epilog=options.examples("hekla jobflow list -A", "hekla jobflow list -o wide")
)
@options.namespace
@options.everywhere
@options.selector
@click.option(
    "--phase",
    "phases",
    multiple=True,
    type=click.Choice(FlowPhase, case_sensitive=False),
    help="Only those in this phase. May be repeated.",
)
@options.output
@options.with_client
def list_flows(
    client: Client,
    *,
    namespace: str,
    everywhere: bool,
    selector: str,
    phases: Sequence[FlowPhase],
    form: Format,
) -> None:
    """List flows."""
    within = "" if everywhere else namespace
    found = client.job_flows.list(within, phases=phases, label_selector=selector).items
    now = datetime.now(UTC)
    shown = [kinds.job_flow(one, now) for one in found]
    output.listing(kinds.JOB_FLOWS, shown, form, namespace=within, everywhere=everywhere)


@jobflow.command("get", epilog=options.examples("hekla jobflow get ml-pipeline -o yaml"))
@options.flow_name
@options.namespace
@options.output
@options.with_client
def get(client: Client, *, name: str, namespace: str, form: Format) -> None:
    """Show a flow."""
    found = client.job_flows.get(namespace, name)
    output.single(kinds.JOB_FLOWS, kinds.job_flow(found, datetime.now(UTC)), form)


@jobflow.command(
    "wait",
    epilog=options.examples(
        "hekla jobflow wait ml-pipeline --for Succeed --timeout 10m && echo done"
    ),
)
@options.flow_name
@click.option(
    "--for",
    "wanted",
    required=True,
    type=click.Choice(WANTED, case_sensitive=False),
    metavar="PHASE",
    help=f"A phase, such as Succeed; {FINISHED} for any last one; or {DELETED}.",
)
@options.timeout()
@options.namespace
@options.with_patient_client
def wait(
    client: Client, *, name: str, wanted: str, timeout: timedelta | None, namespace: str
) -> None:
    """Wait until a flow is in a phase.

    Exit code 0 if it is reached, 1 as soon as it cannot be reached any more (the flow ended in
    another phase, or was deleted), 2 if the time is over.
    """
    _wait(client, namespace, name, wanted, timeout)


def _wait(
    client: Client, namespace: str, name: str, wanted: str, timeout: timedelta | None
) -> None:
    with Progress() as progress:

        def on_outage(error: UnavailableError) -> None:
            progress.tell(f"{name}: {error}; trying again")

        found = client.job_flows.wait(
            namespace,
            name,
            wanted,
            timeout=timeout,
            on_sighting=lambda flow: progress.tell(_line(flow)),
            on_outage=on_outage,
        )
    end = phase(found) if wanted == FINISHED and phase(found) in ENDS else wanted
    click.echo(f"job flow {names.Key(namespace, name)} reached {end}")


def _line(flow: JobFlow) -> str:
    """A flow in one line: its phase, and how far it is."""
    steps = len(flow.spec.flows or ())
    running = ", ".join(flow.status.running_jobs or flow.status.pending_jobs or ())
    more = flow.status.state.message or running
    done = f"{len(flow.status.completed_jobs or ())}/{steps} completed"
    return f"{flow.metadata.name}: {phase(flow)} ({done}{f'; {more}' if more else ''})"


@jobflow.command("delete", epilog=options.examples("hekla jobflow delete ml-pipeline"))
@options.flow_name
@options.wait
@options.timeout()
@options.namespace
@options.with_client
def delete(
    client: Client, *, name: str, wait: bool, timeout: timedelta | None, namespace: str
) -> None:
    """Delete a flow and its jobs; its templates stay."""
    removal = gone.delete_flow(client, namespace, name)
    if wait:
        removal.wait(client, timeout)
    click.echo(f"{kinds.JOB_FLOWS.resource}/{name} deleted")
