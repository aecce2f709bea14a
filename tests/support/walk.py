"""Types what a page says, and holds what is printed against what it says is printed."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from click.testing import CliRunner

from hekla.cli.main import main
from tests.support.documents import Command, blocks, commands, pattern
from tests.support.waiting import wait_until

BIN: Final = Path(sys.executable).parent
READS: Final = frozenset({"get", "list", "view", "attempts"})
"""Words of commands that change nothing."""


def walk(page: str, environ: Mapping[str, str]) -> None:
    """Run the console blocks of a page, in their order."""
    for block in blocks(page, "console"):
        for command in commands(block):
            run(command, environ)


def run(command: Command, environ: Mapping[str, str]) -> None:
    """Run a command of a page; one that only reads is asked until it shows what the page shows.

    What one command has done, the next may show a moment later: who reads the page is slower.
    """
    wrong = _wrong(command, environ)

    def right() -> bool:
        nonlocal wrong
        wrong = _wrong(command, environ)
        return wrong is None

    if wrong is not None and _only_reads(shlex.split(command.text)):
        with suppress(AssertionError):
            wait_until(right, what=command.text)
    assert wrong is None, wrong


def _only_reads(words: Sequence[str]) -> bool:
    return words[0] in {"kubectl", "hekla"} and not READS.isdisjoint(words[1:3])


def _wrong(command: Command, environ: Mapping[str, str]) -> str | None:
    """What differs from the page; in this process where no other program is needed."""
    words = shlex.split(command.text)
    if words[0] == "hekla" and "|" not in words and "uninstall" not in words:
        result = CliRunner().invoke(main, words[1:], obj=environ)
        code, out, err = result.exit_code, result.stdout, result.stderr
    else:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command.text],
            env={**environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )
        code, out, err = done.returncode, done.stdout, done.stderr
    errors = [line for line in err.splitlines(keepends=True) if line.startswith("error: ")]
    said = f"{command.where}: {command.text}\nprinted\n{out}{err}"
    fails = any(line.startswith("error: ") for line in command.printed)
    shown = pattern(command.printed).search(out + "".join(errors))
    return None if (code != 0) == fails and (shown or not command.printed) else said
