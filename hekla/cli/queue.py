"""``hekla queue …``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from hekla.api.decode import decode
from hekla.api.queue import Queue
from hekla.cli import kinds, options, output
from hekla.cli.output import Format
from hekla.client import Client
from hekla.domain.names import SCHEDULING_API_VERSION


@click.group(epilog=options.examples("hekla queue list", "hekla queue create test --weight 4"))
def queue() -> None:
    """Queues: jobs wait in them, and each has a share of the cluster."""


class ResourceList(click.ParamType[dict[str, str]]):
    """``cpu=4,memory=8Gi``."""

    name = "resources"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, str]:
        """The resources that the user wrote; their amounts are checked with the queue."""
        if isinstance(value, dict):
            return value
        found: dict[str, str] = {}
        for part in str(value).split(","):
            name, sign, amount = (piece.strip() for piece in part.partition("="))
            if not name or not sign or not amount or name in found:
                self.fail(f"must be like cpu=4,memory=8Gi, is {value!r}", param, ctx)
            found[name] = amount
        return found


@queue.command(
    "create",
    epilog=options.examples(
        "hekla queue create test",
        "hekla queue create team-a --weight 4 --capability cpu=32,memory=128Gi",
    ),
)
@click.argument("name")
@click.option("-w", "--weight", type=int, help="Its share beside its siblings'.  [default: 1]")
@click.option("--parent", help="The queue it is part of.  [default: root]")
@click.option("--capability", type=ResourceList(), help="The most it may use.")
@click.option("--deserved", type=ResourceList(), help="What it should get.")
@click.option("--guarantee", type=ResourceList(), help="What is kept for it.")
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
    for warning in admitted.warnings:
        click.echo(f"warning: {warning}", err=True)
    if form is Format.TABLE:
        click.echo(f"{kinds.QUEUES.resource}/{admitted.object.metadata.name} created")
    else:
        shown = kinds.queue(admitted.object, datetime.now(UTC))
        output.single(kinds.QUEUES, shown, form)


@queue.command("list", epilog=options.examples("hekla queue list", "hekla queue list -o name"))
@options.selector
@options.output
@options.with_client
def list_queues(client: Client, *, selector: str, form: Format) -> None:
    """List queues."""
    now = datetime.now(UTC)
    found = client.queues.list(label_selector=selector).items
    shown = [kinds.queue(one, now) for one in found]
    output.listing(kinds.QUEUES, shown, form, namespace="", everywhere=False)


@queue.command("get", epilog=options.examples("hekla queue get test -o yaml"))
@click.argument("name")
@options.output
@options.with_client
def get(client: Client, *, name: str, form: Format) -> None:
    """Show a queue."""
    shown = kinds.queue(client.queues.get(name), datetime.now(UTC))
    output.single(kinds.QUEUES, shown, form)


@queue.command("delete", epilog=options.examples("hekla queue delete test"))
@click.argument("name")
@options.with_client
def delete(client: Client, *, name: str) -> None:
    """Delete a queue that nothing uses."""
    client.queues.delete(name)
    click.echo(f"{kinds.QUEUES.resource}/{name} deleted")
