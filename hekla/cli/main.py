"""``hekla``: the command."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from importlib.metadata import version
from typing import Final

import click

from hekla.cli.errors import Root

COMMANDS: Final[Mapping[str, str]] = {
    "up": "stack",
    "down": "stack",
    "status": "stack",
    "stop": "stack",
    "start": "stack",
    "migrate": "migrate",
    "doctor": "doctor",
    "uninstall": "uninstall",
    "apply": "apply",
    "delete": "apply",
    "job": "job",
    "jobflow": "jobflow",
    "jobtemplate": "jobtemplate",
    "queue": "queue",
    "pod": "pod",
    "podgroup": "pod",
    "lint": "lint",
    "webhook": "webhook",
    "completion": "completion",
    "version": "version",
}
"""Every command and its module, which is loaded when it is needed: a database's driver takes
longer to load than a list of jobs takes to print."""


class Commands(Root):
    """The commands of ``COMMANDS``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in the order a newcomer needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        found = getattr(importlib.import_module(f"hekla.cli.{module}"), cmd_name)
        assert isinstance(found, click.Command)
        return found


@click.group(
    "hekla",
    cls=Commands,
    epilog="""\b
Examples:
  hekla up --detach
  hekla apply -f examples/job.yaml
  hekla job wait job-1 --for Running
  hekla job delete job-1
  hekla down""",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(version("hekla"), prog_name="hekla")
@click.pass_context
def main(context: click.Context) -> None:
    """Batch jobs for Kubernetes, in Volcano's words.

    Services are found by HEKLA_CONTROLLER, HEKLA_SCHEDULER and HEKLA_FLOW, else by what
    'hekla up' wrote into HEKLA_HOME (~/.hekla by default).

    Exit codes: 0 done, 1 it did not work, 2 --timeout was over first, 64 the command line is
    wrong, 130 interrupted.
    """
    if context.obj is None:
        context.obj = os.environ


if __name__ == "__main__":
    main()
