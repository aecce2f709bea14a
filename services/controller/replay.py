"""``python -m services.controller plan``: decide passes that are handed in as JSON lines.

Each line of the input is ``{"now": instant, "observed": …}``; each line of the output is the
plan. So a pass that was written down can be made again elsewhere, without a database.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from services.controller.core.observed import Observed, Plan
from services.controller.core.plan import plan


@dataclass(frozen=True)
class Line:
    """One line of the input."""

    now: datetime
    observed: Observed


LINE: Final = TypeAdapter(Line)
PLAN: Final = TypeAdapter(Plan)


def replay(lines: Iterable[str]) -> Iterator[str]:
    """The plan of each line that is not empty.

    Raises:
        ValueError: a line is none of ours; the message says which and why.
    """
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            line = LINE.validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise ValueError(f"line {number}: {place}: {first['msg']}") from None
        yield PLAN.dump_json(plan(line.observed, line.now), by_alias=True).decode()


def main(argv: Sequence[str] = ()) -> None:
    """Read standard input, write standard output."""
    if argv:
        sys.stderr.write(f"hekla controller plan: takes no arguments, was given {argv[0]}\n")
        raise SystemExit(1)
    try:
        for answer in replay(sys.stdin):
            sys.stdout.write(f"{answer}\n")
            sys.stdout.flush()
    except ValueError as error:
        sys.stderr.write(f"hekla controller plan: {error}\n")
        raise SystemExit(1) from None
