"""``hekla uninstall``."""

from __future__ import annotations

import click

from hekla.cli import options, tool
from hekla.client.endpoints import SERVICES
from hekla.local.stack import up as local
from hekla.local.stack.endpoints import Home


@click.command(
    epilog=options.examples(
        "hekla uninstall                # only tells what would go",
        "hekla uninstall --yes",
        "hekla uninstall --yes --purge  # jobs and history too",
    )
)
@click.option("-y", "--yes", is_flag=True, help="Do it; else it is only told what would go.")
@click.option(
    "--purge",
    is_flag=True,
    help="Drop the data too: the tables, and HEKLA_HOME of a local stack.",
)
@click.option(
    "--force", is_flag=True, help="Do it although services are connected to the database."
)
@options.with_home
def uninstall(home: Home, *, yes: bool, purge: bool, force: bool) -> None:
    """Remove from Kubernetes what Hekla made there.

    Those are its webhook configurations and the pods of its jobs, finalizers included; pods of
    jobs that the database never knew are left alone. Stop the services first; those of a local
    stack are stopped. The database and HEKLA_HOME stay unless --purge is given: start Hekla
    again and its unfinished jobs go on.
    """
    environ = click.get_current_context().find_root().obj
    found = tool.installation(home, environ)
    up = found.local and local.status(home) is not None
    if yes and up:
        for service in reversed(SERVICES):
            for name in local.stop(home, service):
                click.echo(f"{name} stopped")
    flags = {"--yes": yes, "--purge": purge, "--force": force}
    given = [flag for flag, wanted in flags.items() if wanted]
    if tool.run(found, "controller", "uninstall", *given) != 0:
        raise click.exceptions.Exit(1)
    if not yes:
        click.echo("webhook configurations of Hekla's would go too")
    elif tool.run(found, "webhook", "unregister") != 0:
        raise click.exceptions.Exit(1)
    if not (yes and found.local):
        return
    if purge:
        local.down(home, report=lambda line: click.echo(line, err=True), purge=True)
        click.echo(f"{home.folder} was removed")
    else:
        click.echo(f"{home.folder} stays, and what runs of it; 'hekla down --purge' removes it")
