"""The checks behind ``make lint`` and ``make setup`` find what they are for."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import check_lock, check_stubs, lock_part
from tools.gate import Ran, Stage, report

PYPROJECT = """
[build-system]
requires = ["hatchling"]
[project]
dependencies = ["grpcio>=1.85.1", "psycopg[binary]>=3.2"]
[dependency-groups]
dev = ["ruff>=0.17", "types-PyYAML"]
"""

HASH = " \\\n    --hash=sha256:00\n"
LOCK = "".join(
    pin + HASH
    for pin in (
        "grpcio==1.85.3",
        "hatchling==1.33.0",
        "psycopg==3.3.9 ; python_version < '4'",
        "ruff==0.17.2",
        "types-pyyaml==6.0",
    )
)


def test_a_lock_that_pins_everything_is_fine() -> None:
    assert check_lock.problems(PYPROJECT, LOCK) == []


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("ruff==0.17.2" + HASH, "", "ruff is not pinned"),
        ("grpcio==1.85.3", "grpcio==1.84.0", "grpcio>=1.85.1 is pinned to 1.84.0"),
        ("ruff==0.17.2" + HASH, "ruff==0.17.2\n", "ruff has no hash"),
        (
            "grpcio==",
            "--index-url https://pypi.invalid/simple\ngrpcio==",
            "it holds an address; make it with --no-emit-index-url",
        ),
    ],
)
def test_a_lock_that_lacks_something_is_told_what(
    before: str, after: str, problem: str
) -> None:
    assert before in LOCK

    assert check_lock.problems(PYPROJECT, LOCK.replace(before, after)) == [problem]


PARTS = """\
alone==1 \\
    --hash=sha256:00
    # via hekla (pyproject.toml:dev)
below==2 ; sys_platform == 'linux' \\
    --hash=sha256:00
    # via
    #   ours
    #   alone
below==3 ; sys_platform != 'linux' \\
    --hash=sha256:00
    # via ours
local==1 \\
    --hash=sha256:00
    # via hekla (pyproject.toml)
of-local==1 \\
    --hash=sha256:00
    # via local
ours==1 \\
    --hash=sha256:00
    # via hekla (pyproject.toml)
"""


def test_a_part_of_the_lock_has_what_is_needed_and_no_more() -> None:
    found = lock_part.part(PARTS, {lock_part.PROJECT}, without={"local"})

    names = [name for name, _, _ in lock_part.entries(found)]
    assert names == ["below", "below", "ours"]
    assert found.count("--hash=") == 3
    assert "of-local" not in lock_part.part(PARTS, {"alone"})


def test_what_runs_has_every_dependency_and_nothing_of_developers() -> None:
    lock = Path(check_lock.ROOT, "requirements.lock").read_text()
    run = lock_part.part(lock, {lock_part.PROJECT}, without=lock_part.LOCAL_ONLY)
    names = {name for name, _, _ in lock_part.entries(run)}

    assert {"grpcio", "psycopg", "psycopg-binary", "sqlalchemy", "kubernetes"} <= names
    assert names.isdisjoint({"pytest", "mypy", "hatchling", *lock_part.LOCAL_ONLY})


def test_a_stub_that_was_edited_forgotten_or_left_over_is_found(tmp_path: Path) -> None:
    fresh, committed = tmp_path / "fresh", tmp_path / "committed"
    for folder in (fresh, committed):
        folder.mkdir()
        for name in ("a_pb2.py", "b_pb2.pyi", "same_pb2.py"):
            (folder / name).write_text("generated")
    (committed / "__init__.py").write_text("not generated")
    (committed / "a_pb2.py").write_text("edited")
    (committed / "b_pb2.pyi").unlink()
    (committed / "c_pb2.py").write_text("left over")

    assert check_stubs.differences(fresh, committed) == ["a_pb2.py", "b_pb2.pyi", "c_pb2.py"]


def test_a_machine_without_venv_is_told_what_to_install(tmp_path: Path) -> None:
    script = Path(check_lock.__file__).with_name("check_python.py")
    copied = shutil.copy(script, tmp_path)
    program = (
        "import importlib.util, runpy, sys\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name: None if name == 'ensurepip' else found(name)\n"
        f"runpy.run_path({str(copied)!r}, run_name='__main__')\n"
    )

    as_it_is = subprocess.run([sys.executable, copied], check=False, capture_output=True)
    without = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )

    assert as_it_is.returncode == 0
    assert without.returncode == 1
    assert without.stderr == (
        "Python cannot make virtual environments here: apt install python3-venv\n"
    )


def test_the_gate_reports_each_stage_and_what_took_too_long() -> None:
    stages = [Stage("unit", 60, ()), Stage("e2e", 180, ())]

    shown = report([Ran(stages[0], 12.4, passed=True), Ran(stages[1], 200.0, passed=False)])

    assert shown.splitlines()[1:] == [
        "unit             12 s of  60 s  passed",
        "e2e             200 s of 180 s  FAILED  (over budget)",
        "all             212 s of 240 s",
    ]
