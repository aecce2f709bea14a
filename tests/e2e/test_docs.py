"""The examples of the pages do what the pages say, on one local stack, in their order."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import pytest

from hekla.api.job import Job
from hekla.cli import manifest
from tests.support.documents import ROOT, blocks
from tests.support.stack import Stack
from tests.support.walk import walk

BIN = Path(sys.executable).parent


def test_commands_print_what_the_page_on_the_command_line_says(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)

    walk("docs/cli.md", stack.environ)


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
