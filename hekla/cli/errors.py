"""How a command ends badly: one line on stderr and an exit code, never a traceback.

Exit codes: 1 it did not work, 2 it took longer than ``--timeout``, 64 the command line is
wrong, 130 interrupted, 141 whoever read the output has gone.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, Final

import click

from hekla.domain.errors import DomainError, InvalidError, TimedOutError, UnavailableError

FAILED: Final = 1
TIMED_OUT: Final = 2
USAGE: Final = 64
INTERRUPTED: Final = 130
READER_GONE: Final = 141
DEBUG_VARIABLE: Final = "HEKLA_DEBUG"


class Root(click.Group):
    """The outermost command: turns whatever goes wrong into one line and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002  # as click has it
        windows_expand_args: bool = True,  # noqa: FBT001, FBT002
        **extra: Any,
    ) -> Any:
        """Run the command; in standalone mode exit with its code."""
        code: Any = FAILED
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
            flush()
        except click.exceptions.Exit as error:
            code = error.exit_code
        except click.Abort:
            code = INTERRUPTED
        except BrokenPipeError:
            code = READER_GONE
            _discard_output()
        except click.UsageError as error:
            code = USAGE
            _say(_usage(error))
        except click.ClickException as error:
            code = error.exit_code
            _say(error.format_message())
        except DomainError as error:
            code = TIMED_OUT if isinstance(error, TimedOutError) else FAILED
            _say(explained(error))
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            _say(f"{where}{error.strerror or error}")
        except Exception as error:  # the border to the user: see the module's docstring
            _say(f"{type(error).__name__}: {error} ({DEBUG_VARIABLE}=1 shows where)")
            if os.environ.get(DEBUG_VARIABLE):
                traceback.print_exc()
        if standalone_mode:
            sys.exit(code if isinstance(code, int) else 0)
        return code

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand; treat here what click itself would treat further out."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _say("interrupted")
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            _discard_output()
            ctx.exit(READER_GONE)


def explained(error: DomainError) -> str:
    """What to tell of ``error``, and what to do about it."""
    if isinstance(error, InvalidError) and error.violations:
        return "; ".join(str(violation) for violation in error.violations)
    silent = ("cannot be reached", "did not answer in time")
    if isinstance(error, UnavailableError) and any(words in str(error) for words in silent):
        return f"{error}; see 'hekla status', start what is missing with 'hekla up'"
    return str(error) or type(error).__name__


def _say(text: str) -> None:
    """One line, whatever the text has in it."""
    line = " ".join(text.split())
    try:
        click.echo(f"error: {line}", err=True)
    except OSError:
        return  # nobody to tell


def flush() -> None:
    """Have what was printed so far read, if anybody reads."""
    if sys.stdout is not None:
        sys.stdout.flush()


def _usage(error: click.UsageError) -> str:
    path = error.ctx.command_path if error.ctx is not None else "hekla"
    return f"{error.format_message().rstrip('.')}; see '{path} --help'"


def _discard_output() -> None:
    """Keep the interpreter from flushing into the closed pipe, which would be a traceback."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
