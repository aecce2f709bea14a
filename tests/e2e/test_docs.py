"""The examples of the pages do what the pages say, on one local stack, in their order."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from hekla.api.job import Job
from hekla.cli import manifest
from hekla.cli.main import main
from tests.support.documents import ROOT, Command, blocks, commands, pattern
from tests.support.stack import Stack

BIN = Path(sys.executable).parent


def run(stack: Stack, command: Command) -> None:
    """Run a command of a page: in this process where no other program is needed."""
    words = shlex.split(command.text)
    if words[0] == "hekla" and "|" not in words and "uninstall" not in words:
        result = CliRunner().invoke(main, words[1:], obj=stack.environ)
        code, out, err = result.exit_code, result.stdout, result.stderr
    else:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command.text],
            env={**stack.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
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


def test_commands_print_what_the_page_on_the_command_line_says(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)

    for block in blocks("docs/cli.md", "console"):
        for command in commands(block):
            run(stack, command)


def test_the_python_page_runs(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEKLA_HOME", str(stack.home))

    for block in blocks("docs/python.md", "python"):
        code = compile("\n" * block.line + block.text, ROOT / block.page, "exec")
        exec(code, {"__name__": "example"})


@pytest.mark.parametrize(
    ("name", "task", "printed"),
    [
        ("tensorflow", "worker", "worker 1: y = 3.00 x after 40 steps"),
        ("spark", "driver", "driver: done"),
        ("mpi", "mpimaster", "hello from rank 1 of 2"),
    ],
)
def test_shapes_of_frameworks_run(stack: Stack, name: str, task: str, printed: str) -> None:
    with stack.client() as client:
        [item] = manifest.read([str(ROOT / "examples" / f"{name}.yaml")], None)
        assert isinstance(item.object, Job)
        client.jobs.create(item.object)

        client.jobs.wait("default", name, "Completed", timeout=timedelta(minutes=1))

        pods = client.jobs.pods("default", name, task=task)
        logs = b"".join(
            data for pod in pods for data in client.jobs.logs("default", pod.attempt.pod_name)
        )
        assert printed in logs.decode()
        client.jobs.delete("default", name)
