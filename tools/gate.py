"""``make test``: every stage of the gate, its time beside its budget.

All stages run, even after one that failed, so that one run tells everything.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

PYTEST: Final = (sys.executable, "-m", "pytest", "--quiet")


Command = Sequence[str]


class Stage(NamedTuple):
    """One part of the gate."""

    name: str
    budget: int
    """Seconds on two cores."""
    commands: Sequence[Command]
    """They run at the same time; the output of the first is shown as it comes."""


INTEGRATION: Final = Path("tests/integration")
E2E: Final = Path("tests/e2e")


def pytests(folder: Path, *parts: Sequence[str]) -> Sequence[Command]:
    """A run of each part of a folder, and first one of what is in none of them.

    Tests that wait leave the processors to others: so more of them run than there are.
    """
    found = [sorted(str(path) for name in part for path in folder.glob(name)) for part in parts]
    ignored = [f"--ignore={path}" for part in found for path in part]
    return [(*PYTEST, str(folder), *ignored), *((*PYTEST, *part) for part in found)]


STAGES: Final = (
    Stage("lint", 40, [("make", "--no-print-directory", "lint")]),
    Stage("unit", 60, [(*PYTEST, "tests/unit")]),
    Stage(
        "integration",
        120,
        pytests(
            INTEGRATION,
            ["controller"],
            ["local"],
            ["store", "cli", "test_controller_*.py", "test_scheduler_*.py"],
        ),
    ),
    # Of two stacks each has what it can hold of the machine.
    Stage("e2e", 180, pytests(E2E, ["test_local_stack.py", "test_kubectl*.py"])),
    Stage("chaos", 60, [(*PYTEST, "-m", "not long", "tests/chaos")]),
)


class Ran(NamedTuple):
    """A stage that is over."""

    stage: Stage
    seconds: float
    passed: bool


def run(stage: Stage) -> Ran:
    """Run one stage; what it prints is shown as it comes."""
    print(f"==== {stage.name}", flush=True)
    started = time.monotonic()
    with ExitStack() as outputs:
        beside = []
        for command in stage.commands[1:]:
            output = outputs.enter_context(tempfile.TemporaryFile("w+"))
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
            beside.append((process, output))
        codes = [subprocess.run(stage.commands[0], check=False).returncode]
        for process, output in beside:
            codes.append(process.wait())
            output.seek(0)
            print(output.read(), flush=True)
    return Ran(stage, time.monotonic() - started, passed=not any(codes))


def report(ran: Sequence[Ran]) -> str:
    """A line for each stage, and the sum."""
    lines = [
        f"{one.stage.name:12} {one.seconds:6.0f} s of {one.stage.budget:3} s"
        f"  {'passed' if one.passed else 'FAILED'}"
        f"{'  (over budget)' if one.seconds > one.stage.budget else ''}"
        for one in ran
    ]
    total, budget = sum(one.seconds for one in ran), sum(one.stage.budget for one in ran)
    return "\n".join(["====", *lines, f"{'all':12} {total:6.0f} s of {budget:3} s"])


def main(names: Sequence[str]) -> int:
    """Run the named stages, or all; 1 if any failed."""
    ran = [run(stage) for stage in STAGES if not names or stage.name in names]
    print(report(ran))
    return 0 if all(one.passed for one in ran) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
