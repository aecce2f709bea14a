"""The load suite: ``python -m tests.load``, or ``make load LOAD_SCALE=0.1``.

Client processes submit jobs of pods that only pretend to run, by gRPC, to a stack that is
started in a folder of its own, or to one that runs. A watcher follows them. Afterwards the
invariants are checked over everything that Postgres remembers of the run, and the run fails
if one is broken.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from tests.load import report
from tests.load.run import Outcome, Plan, run
from tests.load.shapes import SHAPES, Shape, nodes_for, parse
from tests.load.target import Target
from tests.support.stack import running_stack


def main() -> int:
    """Run what is asked for; 1 where a job is missing or an invariant broken."""
    options = _options()
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 110
    shapes = [shape.scaled(options.scale) for shape in options.shapes or SHAPES]
    outcomes: list[Outcome] = []
    for shape in shapes:
        plan = Plan(
            shape,
            clients=0 if options.rate else options.clients,
            rate=options.rate,
            seconds=options.seconds,
            postgres_away=options.postgres_away,
            timeout=options.timeout,
        )
        # A stack of its own for each shape: none pays for what the one before left behind.
        with _target(options.home, shape, console) as target, console.status("") as status:
            outcomes.append(
                run(target, plan, status.update if console.is_terminal else Lines())
            )
        report.show(outcomes[-1:], console)
    if len(outcomes) > 1:
        report.show(outcomes, console)
    for path in report.write(outcomes, options.output):
        console.print(f"written: {path}", markup=False)
    return 0 if all(outcome.good for outcome in outcomes) else 1


class Lines:
    """Tells how it goes where nobody looks at a terminal: a line now and then."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, text: str) -> None:
        """Write the line, unless one was written just now."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + 5.0
            sys.stderr.write(f"{text}\n")


@contextmanager
def _target(home: Path | None, shape: Shape, console: Console) -> Iterator[Target]:
    if home is not None:
        yield Target(home)
        return
    nodes = nodes_for(shape.all_pods)
    with tempfile.TemporaryDirectory(prefix="hekla-load-") as folder:
        console.print(f"starting a stack with {nodes} nodes for {shape.name}")
        with running_stack(Path(folder), f"--nodes={nodes}", "--runtime=simulate") as stack:
            yield Target(stack.home)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    parser.add_argument(
        "shapes", nargs="*", type=_shape, help="JOBSxPODS; the four of the design by default"
    )
    parser.add_argument("--scale", type=_amount, default=1.0, help="part of the full size")
    parser.add_argument(
        "--clients", type=_count, default=32, help="closed loop: submitters (%(default)s)"
    )
    parser.add_argument("--rate", type=_amount, default=0.0, help="open loop: jobs a second")
    parser.add_argument(
        "--seconds", type=_amount, default=1.0, help="how long a pod lasts (%(default)s)"
    )
    parser.add_argument(
        "--postgres-away",
        type=_amount,
        default=0.0,
        metavar="SECONDS",
        help="stop Postgres for so long in the middle",
    )
    parser.add_argument(
        "--timeout", type=_amount, default=600.0, help="give a run up after (%(default)s s)"
    )
    parser.add_argument(
        "--home", type=Path, help="the HEKLA_HOME of a stack that runs with --runtime simulate"
    )
    parser.add_argument(
        "--output", type=Path, default=Path("build/load"), help="where to write (%(default)s)"
    )
    options = parser.parse_args()
    if options.home is not None and not (options.home / "endpoints.json").is_file():
        parser.error(f"argument --home: no stack was ever up in {options.home}")
    return options


def _amount(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    if not 0 <= amount < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number, zero or more, not {text!r}")
    return amount


def _count(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a whole number above zero, not {text!r}")
    return int(text)


def _shape(text: str) -> Shape:
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


if __name__ == "__main__":
    sys.exit(main())
