"""``hekla queue …``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from hekla.api.bounds import violations
from hekla.api.decode import decode
from hekla.api.queue import Queue
from hekla.cli import complete, kinds, options, output
from hekla.cli.output import Format
from hekla.client import Client
from hekla.domain.errors import InvalidError
from hekla.domain.names import SCHEDULING_API_VERSION
from hekla.domain.phases import QueueState


@click.group(epilog=options.examples("hekla queue list", "hekla queue create test --weight 4"))
def queue() -> None:
    """Queues: where jobs wait, and what share they use."""


@queue.command(
    "create",
    epilog=options.examples(
        "hekla queue create test",
        "hekla queue create team-a --weight 4 --capability cpu=32,memory=128Gi",
    ),
)
@options.queue_name
@click.option("-w", "--weight", type=int, help="Its share beside its siblings'.  [default: 1]")
@click.option("--parent", help="The queue it is part of.  [default: root]")
@click.option("--capability", type=options.Resources(), help="The most it may use.")
@click.option("--deserved", type=options.Resources(), help="What it should get.")
@click.option("--guarantee", type=options.Resources(), help="What is kept for it.")
@click.option("--reclaimable", type=bool, metavar="true|false", help="May others take it back?")
@options.output
@options.with_client
def create(
    client: Client, /, *, name: str, form: Format, guarantee: dict[str, str] | None, **spec: Any
) -> None:
    """Create a queue."""
    given = {**spec, "guarantee": {"resource": guarantee} if guarantee else None}
    wanted = decode(
        {
            "apiVersion": SCHEDULING_API_VERSION,
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {key: value for key, value in given.items() if value is not None},
        }
    )
    assert isinstance(wanted, Queue)
    admitted = client.queues.create(wanted)
    output.warnings(admitted.warnings)
    output.created(kinds.QUEUES, kinds.queue(admitted.object, datetime.now(UTC)), form)


@queue.command("list", epilog=options.examples("hekla queue list", "hekla queue list -o name"))
@options.selector
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(QueueState, case_sensitive=False),
    metavar="STATE",
    help="Only those in this state, such as Open. May be repeated.",
)
@click.option(
    "--parent",
    default="",
    metavar="QUEUE",
    help="Only the children of this queue.",
    shell_complete=complete.queues,
)
@options.output
@options.with_client
def list_queues(
    client: Client, *, selector: str, states: Sequence[QueueState], parent: str, form: Format
) -> None:
    """List queues."""
    now = datetime.now(UTC)
    found = client.queues.list(label_selector=selector, states=states, parent=parent).items
    shown = [kinds.queue(one, now) for one in found]
    output.listing(kinds.QUEUES, shown, form, namespace="", everywhere=False)


@queue.command("get", epilog=options.examples("hekla queue get test -o yaml"))
@options.queue_name
@options.output
@options.with_client
def get(client: Client, *, name: str, form: Format) -> None:
    """Show a queue."""
    shown = kinds.queue(client.queues.get(name), datetime.now(UTC))
    output.single(kinds.QUEUES, shown, form)


@queue.command("open", epilog=options.examples("hekla queue open test"))
@options.queue_name
@options.with_client
def open_queue(client: Client, *, name: str) -> None:
    """Let a queue take jobs again."""
    _tell_state(client.queues.open(name))


@queue.command("close", epilog=options.examples("hekla queue close test"))
@options.queue_name
@options.with_client
def close_queue(client: Client, *, name: str) -> None:
    """Let a queue take no new jobs.

    Those in it go on; it is Closing as long as there are any, then Closed.
    """
    _tell_state(client.queues.close(name))


@queue.command(
    "operate",
    epilog=options.examples(
        "hekla queue operate test --action close", "hekla queue operate test -a update -w 4"
    ),
)
@options.queue_name
@click.option(
    "-a",
    "--action",
    required=True,
    type=click.Choice(["open", "close", "update"], case_sensitive=False),
    help="What to do.",
)
@click.option("-w", "--weight", type=int, help="With update: its new weight.")
@options.with_client
def operate(client: Client, *, name: str, action: str, weight: int | None) -> None:
    """Open, close or weigh a queue, as vcctl has it."""
    if (action == "update") != (weight is not None):
        raise click.UsageError(
            "--weight goes with --action update", click.get_current_context()
        )
    if action == "open":
        _tell_state(client.queues.open(name))
    elif action == "close":
        _tell_state(client.queues.close(name))
    else:
        found = client.queues.get(name)
        spec = found.spec.model_copy(update={"weight": weight})
        wrong = violations(changed := found.model_copy(update={"spec": spec}))
        if wrong:
            raise InvalidError.of(wrong)
        admitted = client.queues.update(changed, expected_generation=found.metadata.generation)
        output.warnings(admitted.warnings)
        click.echo(f"{kinds.QUEUES.resource}/{name} updated")


def _tell_state(found: Queue) -> None:
    state = found.status.state or QueueState.UNKNOWN
    click.echo(f"{kinds.QUEUES.resource}/{found.metadata.name} is {state}")


@queue.command("delete", epilog=options.examples("hekla queue delete test"))
@options.queue_name
@options.with_client
def delete(client: Client, *, name: str) -> None:
    """Delete a queue that nothing uses."""
    client.queues.delete(name)
    click.echo(f"{kinds.QUEUES.resource}/{name} deleted")
