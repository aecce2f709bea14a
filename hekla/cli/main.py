"""``hekla``: the command."""

from __future__ import annotations

import os
from importlib.metadata import version

import click

from hekla.cli import apply, options, stack
from hekla.cli.errors import Root
from hekla.cli.job import job
from hekla.cli.pod import pod, podgroup
from hekla.cli.queue import queue


@click.group(
    "hekla",
    cls=Root,
    epilog=options.examples(
        "hekla up --detach",
        "hekla apply -f examples/job.yaml",
        "hekla job wait job-1 --for Running",
        "hekla job delete job-1",
        "hekla down",
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(version("hekla"), prog_name="hekla")
@click.pass_context
def main(context: click.Context) -> None:
    """Batch jobs for Kubernetes, in Volcano's words.

    Services are found by HEKLA_CONTROLLER and HEKLA_SCHEDULER, else by what 'hekla up' wrote
    into HEKLA_HOME (~/.hekla by default).
    """
    if context.obj is None:
        context.obj = os.environ


for command in (
    stack.up,
    stack.down,
    stack.status,
    stack.stop,
    stack.start,
    stack.migrate,
    apply.apply,
    apply.delete,
    job,
    queue,
    pod,
    podgroup,
):
    main.add_command(command)


if __name__ == "__main__":
    main()
