"""The figures of a run as tables, JSON and a picture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from tests.load.run import Outcome
from tests.load.stages import STAGES


def show(outcomes: Sequence[Outcome], console: Console) -> None:
    """Print everything."""
    console.print(_summary(outcomes))
    for outcome in outcomes:
        console.print(_stages(outcome))
        console.print(_parts(outcome))
        for sentence in outcome.broken:
            console.print(f"BROKEN {sentence}", style="bold red", markup=False)


def write(outcomes: Sequence[Outcome], folder: Path) -> list[Path]:
    """Write ``load.json`` and a picture of each run."""
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "load.json"
    table.write_text(json.dumps([it.as_json() for it in outcomes], indent=1) + "\n")
    return [table, *(draw(outcome, folder) for outcome in outcomes)]


def _summary(outcomes: Sequence[Outcome]) -> Table:
    table = Table(title="Load")
    for column in (
        "shape",
        "loop",
        "completed",
        "from end to end",
        "jobs/s answered",
        "pods/s",
    ):
        table.add_column(column, justify="right" if column != "loop" else "left")
    table.add_column("invariants")
    for it in outcomes:
        loop = it.loop + (f", Postgres away {it.postgres_away:g} s" if it.postgres_away else "")
        table.add_row(
            it.shape,
            loop,
            f"{it.completed}/{it.jobs}",
            f"{it.seconds:.1f} s",
            f"{it.jobs_per_second:.0f}",
            f"{it.pods_per_second:.0f}",
            f"{len(it.broken)} broken" if it.broken else "hold",
        )
    return table


def _stages(outcome: Outcome) -> Table:
    table = Table(title=f"{outcome.shape}: seconds since the submission")
    table.add_column("stage")
    names = list(next(iter(outcome.percentiles.values()), {}))
    for name in names:
        table.add_column("most" if name == "p100" else name, justify="right")
    for stage in STAGES:
        if stage in outcome.percentiles:
            table.add_row(stage, *(f"{outcome.percentiles[stage][it]:.3f}" for it in names))
    return table


def _parts(outcome: Outcome) -> Table:
    table = Table(title=f"{outcome.shape}: what it cost")
    table.add_column("part")
    for column in ("processor seconds", "% of a core", "most MiB"):
        table.add_column(column, justify="right")
    for part, cost in outcome.usage.items():
        table.add_row(part, *(f"{figure:.1f}" for figure in cost.values()))
    return table


def draw(outcome: Outcome, folder: Path) -> Path:
    """Draw how far jobs and pods were, and what each part cost, over time."""
    mpl.use("agg")
    figure = Figure(figsize=(10, 11), layout="constrained")
    way, cpu, memory = figure.subplots(3, 1, sharex=True)
    for stage, times in outcome.progress.items():
        whole = outcome.pods if stage.startswith("pods") else outcome.jobs
        way.step(
            [0, *times],
            [100 * at / whole for at in range(len(times) + 1)],
            where="post",
            label=stage,
        )
    way.set_ylabel("% of all")
    for part, curve in sorted(outcome.samples.items()):
        cpu.plot([it[0] for it in curve], [it[1] for it in curve], label=part)
        memory.plot([it[0] for it in curve], [it[2] for it in curve], label=part)
    cpu.set_ylabel("% of a core")
    memory.set_ylabel("MiB")
    memory.set_xlabel("seconds since the first submission")
    way.set_title(f"{outcome.shape}, {outcome.loop}: {outcome.pods_per_second:.0f} pods/s")
    for axes in (way, cpu, memory):
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    path = folder / f"load-{outcome.shape}.png"
    figure.savefig(path, dpi=90)
    return path
