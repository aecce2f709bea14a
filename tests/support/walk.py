"""Types what a page says, and holds what is printed against what it says is printed."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from click.testing import CliRunner

from hekla.cli.main import main
from tests.support.documents import Command, blocks, commands, pattern

BIN: Final = Path(sys.executable).parent


def walk(page: str, environ: Mapping[str, str]) -> None:
    """Run the console blocks of a page, in their order."""
    for block in blocks(page, "console"):
        for command in commands(block):
            run(command, environ)


def run(command: Command, environ: Mapping[str, str]) -> None:
    """Run a command of a page: in this process where no other program is needed."""
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
    assert (code != 0) == any(line.startswith("error: ") for line in command.printed), said
    if command.printed:
        assert pattern(command.printed).search(out + "".join(errors)), said
