"""``python -m hekla.local.stack.supervise --home DIR``: run what its plan lists."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import click

from hekla.domain.errors import DomainError
from hekla.local.runtimes.strays import kill_strays
from hekla.local.stack import plan
from hekla.local.stack.endpoints import Home
from hekla.local.supervisor import control
from hekla.local.supervisor.loop import Supervisor
from hekla.telemetry import configure_logging

log = logging.getLogger("hekla.local.supervisor")


@click.command(help=__doc__)
@click.option("--home", "folder", type=click.Path(path_type=Path), required=True)
def main(folder: Path) -> None:
    """Run until told to end."""
    configure_logging("supervisor")
    home = Home(folder)
    with control.only_one(home.run) as alone:
        if not alone:
            log.info("another supervisor runs")
            return
        try:
            options, specs = plan.load(home)
        except DomainError as error:
            sys.stderr.write(f"hekla supervisor: {error}\n")
            raise SystemExit(1) from None
        Supervisor(
            run=home.run,
            log_of=home.log,
            specs=specs,
            options=options,
            environ=os.environ,
            after_rank={plan.CLUSTER_RANK: lambda: _kill_strays(folder)},
        ).run()
        plan.forget(home)


def _kill_strays(folder: Path) -> None:
    killed = kill_strays(folder)
    log.info("killed the pods' processes", extra={"processes": killed})


if __name__ == "__main__":
    main()
