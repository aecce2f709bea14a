"""Draws the phases of a flow into ``docs/states.md``, by running the flow service's table.

As for jobs: every phase is given every action over every small combination of steps' jobs.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from hekla.domain.phases import FlowPhase
from services.flow.core.tally import BUCKETS, Bucket, Tally
from services.flow.core.transitions import TRANSITIONS, FlowAction, JobStep

STEPS: Final = 2

JOBS: Final = {
    JobStep.START: "makes those whose targets are all completed",
    JobStep.LEAVE: "leaves them; what becomes of them is shown",
    JobStep.RETAIN: "removes them if `jobRetainPolicy` is `delete`",
    JobStep.REMOVE: "removes them; the flow goes when they have",
}

_HEAD: Final = """# The phases of a flow

The table is `TRANSITIONS` in `services/flow/core/transitions.py`. A pass follows it until the
phase stays. What a job's phase counts as is told below it; a job that was deleted before it had
ended counts as failed.
"""


def draw() -> str:
    """The section."""
    return "\n".join([_HEAD, *_diagram(), "", *_table(), "", *_buckets(), ""])


def _tallies() -> Iterator[Tally]:
    """Every way in which a small flow may stand."""
    for counts in itertools.product(range(STEPS + 1), repeat=len(Bucket)):
        if sum(counts) <= STEPS:
            yield Tally(steps=STEPS, **dict(zip(map(str, Bucket), counts, strict=True)))


def reached() -> dict[tuple[FlowPhase, FlowAction], tuple[FlowPhase, ...]]:
    """Phases that each phase and action were seen to lead to, in the order of the enum."""
    tallies = list(_tallies())
    found = {
        (phase, action): {step.then(phase, tally) for tally in tallies}
        for phase, steps in TRANSITIONS.items()
        for action, step in steps.items()
    }
    return {at: tuple(one for one in FlowPhase if one in seen) for at, seen in found.items()}


def _diagram() -> Iterator[str]:
    arrows: dict[tuple[FlowPhase, FlowPhase], list[str]] = defaultdict(list)
    for (phase, action), nexts in reached().items():
        for after in nexts:
            if after is not phase:
                arrows[phase, after].append(action)
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {FlowPhase.PENDING}"
    for (before, after), actions in arrows.items():
        yield f"    {before} --> {after}: {', '.join(actions)}"
    yield f"    {FlowPhase.TERMINATING} --> [*]"
    yield "```"


def _table() -> Iterator[str]:
    yield "| phase | action | jobs | next phase |"
    yield "| --- | --- | --- | --- |"
    for (phase, action), nexts in reached().items():
        jobs = JOBS[TRANSITIONS[phase][action].jobs]
        yield f"| {phase} | {action} | {jobs} | {', '.join(nexts)} |"


def _buckets() -> Iterator[str]:
    yield "| a job that is | counts as |"
    yield "| --- | --- |"
    for one in Bucket:
        phases = [phase for phase, counted in BUCKETS.items() if counted is one]
        told = ", ".join(phases) or "anything else: Restarting, Aborting, Aborted"
        yield f"| {told} | {one} |"
