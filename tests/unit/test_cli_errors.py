"""How commands end badly: one line, an exit code, and never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from hekla.cli.errors import Root
from hekla.cli.main import main
from hekla.domain.errors import DomainError, InvalidError, Violation


def run(tmp_path: Path, *args: str, **environ: str) -> Result:
    return CliRunner().invoke(
        main, list(args), obj={"HEKLA_HOME": str(tmp_path / "home"), **environ}, env=environ
    )


def the_line(result: Result) -> str:
    assert result.exit_code != 0
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    "args",
    [
        ["job", "list"],
        ["job", "get", "x"],
        ["job", "wait", "x", "--for", "Running"],
        ["job", "logs", "x"],
        ["job", "delete", "x"],
        ["job", "suspend", "x"],
        ["queue", "list"],
        ["queue", "create", "q"],
        ["pod", "list", "-A"],
        ["podgroup", "list"],
    ],
)
def test_a_service_nobody_knows_of_is_named_with_what_to_do(
    tmp_path: Path, args: Sequence[str]
) -> None:
    line = the_line(run(tmp_path, *args))

    assert line.startswith(f"error: no controller known in {tmp_path}/home: run 'hekla up'")


def test_a_service_that_is_down_is_named_with_what_to_do(tmp_path: Path) -> None:
    line = the_line(run(tmp_path, "job", "list", HEKLA_CONTROLLER="127.0.0.1:1"))

    assert line.startswith("error: the controller at 127.0.0.1:1 cannot be reached")
    assert "'hekla up'" in line


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["job", "lst"], "No such command 'lst'. Did you mean 'list'?; see 'hekla job --help'"),
        (["job", "get"], "Missing argument 'NAME'; see 'hekla job get --help'"),
        (["job", "list", "-o", "xml"], "'xml' is not one of"),
        (["job", "wait", "x", "--for", "Done"], "'Done' is not one of"),
        (["job", "wait", "x", "--for", "Running", "--timeout", "soon"], "must be a duration"),
        (["job", "wait", "x", "--for", "Running", "--timeout", "-5s"], "must not be negative"),
        (["apply", "-f", "/nowhere.yaml"], "File '/nowhere.yaml' does not exist"),
        (["apply", "-f", "/tmp"], "is a directory"),
        (["up", "--nodes", "0"], "0 is not in the range"),
        (["up", "--node-memory", "lots"], "must be a quantity"),
        (["up", "--node-cpu", "0"], "must be more than 0"),
        (["up", "--port", "controller=0"], "must be from 1 to 65535"),
        (["up", "--port", "kitchen=1"], "'kitchen' is none of webhook"),
        (["up", "--replicas", "controller"], "must be like controller=NUMBER"),
        (["up", "--runtime", "docker"], "'docker' is not one of"),
        (["queue", "create", "q", "--capability", "cpu"], "must be like cpu=4,memory=8Gi"),
    ],
)
def test_a_wrong_command_line_is_told_in_one_line(
    tmp_path: Path, args: Sequence[str], expected: str
) -> None:
    result = run(tmp_path, *args)

    assert expected in the_line(result)
    assert result.exit_code == 64


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["queue", "create", "q", "--weight", "0"], "spec.weight: must be >= 1, is 0"),
        (["queue", "create", "Q_"], "metadata.name: "),
        (["queue", "create", "q", "--capability", "cpu=x"], "spec.capability.cpu"),
    ],
)
def test_a_queue_is_checked_before_it_is_sent(
    tmp_path: Path, args: Sequence[str], expected: str
) -> None:
    assert expected in the_line(run(tmp_path, *args, HEKLA_CONTROLLER="127.0.0.1:1"))


@pytest.mark.parametrize("args", [["status"], ["stop", "flow"], ["start", "flow"]])
def test_a_stack_that_is_not_up_says_so(tmp_path: Path, args: Sequence[str]) -> None:
    line = the_line(run(tmp_path, *args))

    assert line == f"error: hekla is not up in {tmp_path}/home; start it with 'hekla up'"


@pytest.mark.parametrize("args", [["up", "--detach"], ["migrate"]])
def test_a_database_that_is_no_postgres_is_refused(tmp_path: Path, args: Sequence[str]) -> None:
    line = the_line(run(tmp_path, *args, HEKLA_DATABASE_URL="mysql://u:secret@h/db"))

    assert line == "error: HEKLA_DATABASE_URL is not postgresql://user@host:port/database"


def test_down_of_what_is_not_up_is_fine(tmp_path: Path) -> None:
    result = run(tmp_path, "down")

    assert (result.exit_code, result.stdout) == (0, f"hekla was down in {tmp_path}/home\n")


def test_a_home_that_cannot_be_used_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")

    line = the_line(run(tmp_path, "up", "--detach"))

    assert line.startswith(f"error: {tmp_path}/home")


def test_every_command_has_help(tmp_path: Path) -> None:
    def check(command: click.Command, path: list[str]) -> None:
        result = run(tmp_path, *path, "--help")
        assert result.exit_code == 0
        assert "Usage: " in result.stdout
        assert command.help, path
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                check(inner, [*path, name])

    check(main, [])


class BoomError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (KeyboardInterrupt(), 130, "error: interrupted"),
        (DomainError("first\nsecond"), 1, "error: first second"),
        (InvalidError.of([Violation("a", "x"), Violation("b", "y")]), 1, "error: a: x; b: y"),
        (PermissionError(13, "Permission denied", "/x"), 1, "error: /x: Permission denied"),
        (BoomError("what"), 1, "error: BoomError: what (HEKLA_DEBUG=1 shows where)"),
    ],
)  # fmt: skip
def test_whatever_goes_wrong_is_one_line(
    error: BaseException, code: int, expected: str
) -> None:
    @click.group(cls=Root)
    def root() -> None:
        """A command that fails."""

    @root.command()
    def fail() -> None:
        raise error

    result = CliRunner().invoke(root, ["fail"])

    assert (result.exit_code, result.stderr) == (code, expected + "\n")


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "hekla.cli.main", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "HEKLA_HOME": str(tmp_path)},
    )
    assert process.stdout is not None
    process.stdout.close()

    _, errors = process.communicate(timeout=30)

    assert errors == b""
    assert process.returncode in (0, 1, 141)
