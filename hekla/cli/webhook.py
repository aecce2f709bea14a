"""``hekla webhook``."""

from __future__ import annotations

import click

from hekla.cli import options, tool
from hekla.domain.errors import PreconditionError
from hekla.local.stack import up as local
from hekla.local.stack.endpoints import Home


@click.group()
def webhook() -> None:
    """Admission: whom the Kubernetes API server asks about jobs and queues."""


@webhook.command(epilog=options.examples("hekla webhook unregister"))
@options.with_home
def unregister(home: Home) -> None:
    """Let the API server ask Hekla no more, by removing both webhook configurations.

    Stop the webhooks first, or let them run with HEKLA_WEBHOOK_REGISTER=false: one that runs
    registers again. Without admission the API server takes whatever its definitions let pass.
    """
    environ = click.get_current_context().find_root().obj
    found = tool.installation(home, environ)
    running = [one for one in (local.status(home) if found.local else None) or () if one.pid]
    if any(one.name == "webhook" for one in running):
        raise PreconditionError("it runs and would register again; 'hekla stop webhook' first")
    if tool.run(found, "webhook", "unregister") != 0:
        raise click.exceptions.Exit(1)
