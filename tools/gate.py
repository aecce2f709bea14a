"""``make test``: every stage of the gate, its time beside its budget.

All stages run, even after one that failed, so that one run tells everything.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

PYTEST: Final = (sys.executable, "-m", "pytest", "--quiet")


class Stage(NamedTuple):
    """One part of the gate."""

    name: str
    budget: int
    """Seconds on two cores."""
    command: Sequence[str]
    beside: Sequence[str] = ()
    """A second command that runs at the same time; its output is shown afterwards."""


HALF: Final = (
    "tests/integration/store",
    "tests/integration/controller",
    "tests/integration/cli",
    "tests/integration/test_controller_model.py",
    *(
        str(path)
        for part in ("scheduler", "webhook")
        for path in sorted(Path("tests/integration").glob(f"test_{part}_*.py"))
    ),
)
"""What takes as long as all other integration tests together."""


OTHER_STACKS: Final = (
    "tests/e2e/test_local_stack.py",
    *sorted(str(path) for path in Path("tests/e2e").glob("test_kubectl*.py")),
)
"""What does not use the stack that the other end-to-end tests share, and takes as long."""

STAGES: Final = (
    Stage("lint", 40, ("make", "--no-print-directory", "lint")),
    Stage("unit", 60, (*PYTEST, "tests/unit")),
    Stage(
        "integration",
        120,
        (*PYTEST, *HALF),
        beside=(*PYTEST, "tests/integration", *(f"--ignore={path}" for path in HALF)),
    ),
    Stage(
        "e2e",
        180,
        (*PYTEST, "tests/e2e", *(f"--ignore={path}" for path in OTHER_STACKS)),
        beside=(*PYTEST, *OTHER_STACKS),
    ),
    Stage("chaos", 60, (*PYTEST, "-m", "not long", "tests/chaos")),
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
    with tempfile.TemporaryFile("w+") as output:
        beside = (
            subprocess.Popen(stage.beside, stdout=output, stderr=subprocess.STDOUT)
            if stage.beside
            else None
        )
        codes = [subprocess.run(stage.command, check=False).returncode]
        if beside is not None:
            codes.append(beside.wait())
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
