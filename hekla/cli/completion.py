"""``hekla completion``."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

from hekla.cli import options

SHELLS: Final = ("bash", "zsh", "fish")
VARIABLE: Final = "_HEKLA_COMPLETE"
"""By this a shell asks the command what may come next."""


@click.command(
    epilog=options.examples(
        'eval "$(hekla completion bash)"              # in ~/.bashrc',
        'eval "$(hekla completion zsh)"               # in ~/.zshrc',
        "hekla completion fish > ~/.config/fish/completions/hekla.fish",
    )
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script by which a shell completes words.

    Those are commands, flags, and names of jobs, queues and pod groups, if the controller
    answers within a second.
    """
    found = get_completion_class(shell)
    assert found is not None
    root = context.find_root()
    program = root.info_name or "hekla"
    shown = found(root.command, {}, program, VARIABLE)
    click.echo(shown.source_template % shown.source_vars())
