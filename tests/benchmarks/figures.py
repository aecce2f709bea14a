"""What benchmarks find, beside what DESIGN section 7 asks for: a table and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from tests.load.usage import machine

FOLDER: Final = Path("build/bench")


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure."""

    work: str
    value: float
    unit: str
    floor: float
    """At least so much of a rate, at most so long a time."""
    aim: float
    more_is_better: bool = False
    oracle: float | None = None
    """How many times as fast as the per-pod oracle, at a fiftieth of the size."""
    equal: bool = True
    """Whether it decided what the oracle did, pod for pod, in the same run."""
    processor_seconds: float | None = None
    """What the work took of a processor, whatever else the machine did."""
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether it reaches the floor, and equals the oracle."""
        good = self.value >= self.floor if self.more_is_better else self.value <= self.floor
        return good and self.equal


def publish(name: str, figures: Sequence[Figure], *, scale: float = 1.0) -> bool:
    """Print a table and write ``build/bench/NAME.json``; whether all floors are met.

    At a smaller scale only the comparison with the oracle counts.
    """
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 140
    table = Table(title=f"{name}{'' if scale == 1 else f' at {scale:g} of the size'}")
    for column in ("work", "figure", "floor", "aim", "x oracle", "equal", "processor", ""):
        table.add_column(column, justify="left" if column in {"work", ""} else "right")
    for it in figures:
        table.add_row(
            it.work,
            _shown(it.value, it.unit),
            _shown(it.floor, it.unit),
            _shown(it.aim, it.unit),
            "" if it.oracle is None else f"{it.oracle:,.0f}",
            "" if it.oracle is None else "yes" if it.equal else "NO",
            "" if it.processor_seconds is None else f"{it.processor_seconds:.2f} s",
            it.note if it.met or scale != 1 else f"below the floor {it.note}",
        )
    console.print(table)
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.json"
    whole = {
        "machine": machine(),
        "scale": scale,
        "figures": [{**asdict(it), "met": it.met} for it in figures],
    }
    path.write_text(json.dumps(whole, indent=1) + "\n")
    console.print(f"written: {path}", markup=False)
    return all(it.met if scale == 1 else it.equal for it in figures)


def _shown(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
