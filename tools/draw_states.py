"""Draws ``docs/states.md``: the phases of a job, found by running the controller's table.

Every phase is given every action over every small combination of pods, and what it was seen to
do is drawn. So the page shows rules that are hidden in functions too.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from hekla.domain.phases import FINISHED, JobAction, JobPhase
from services.controller.core.tally import Tally
from services.controller.core.transitions import TRANSITIONS, PodStep

REPLICAS: Final = 2

PODS: Final = {
    PodStep.SYNC: "makes what is missing",
    PodStep.STOP: "removes what has not ended",
    PodStep.RESTART_ALL: "removes all; every index runs again",
    PodStep.RESTART_SOME: "removes those named; their indices run again",
}

_HEAD: Final = """# The phases of a job

Drawn from the code by `make docs`; do not edit. The table is `TRANSITIONS` in
`services/controller/core/transitions.py`.

A pass looks up what to do by the job's phase and the action that commands and policies ask for
(`SyncJob` if none does). The next phase depends on the pods: each that any combination of two
pods leads to is listed.
"""

Rows = dict[tuple[PodStep, tuple[JobPhase, ...]], list[JobAction]]


def draw() -> str:
    """The page."""
    return "\n".join([_HEAD, *_diagram(), "", *_table(), ""])


def _tallies() -> Iterator[Tally]:
    """Every way in which a small job may stand."""
    for counts in itertools.product(range(REPLICAS + 1), repeat=6):
        pending, running, succeeded, failed, unknown, terminating = counts
        if sum(counts) > REPLICAS:
            continue
        for least, success, retries, enough in itertools.product(
            (1, REPLICAS), (None, 1), (0, 1), (False, True)
        ):
            yield Tally(
                replicas=REPLICAS,
                min_available=least,
                min_success=success,
                max_retry=1,
                retry_count=retries,
                pending=pending,
                running=running,
                succeeded=succeeded,
                failed=failed,
                unknown=unknown,
                terminating=terminating,
                live=pending + running + unknown + terminating,
                tasks_succeeded=enough,
            )


def reached() -> dict[tuple[JobPhase, JobAction], tuple[JobPhase, ...]]:
    """Phases that each phase and action were seen to lead to, in the order of the enum."""
    tallies = list(_tallies())
    found = {
        (phase, action): {step.then(tally) for tally in tallies}
        for phase, steps in TRANSITIONS.items()
        for action, step in steps.items()
    }
    return {at: tuple(one for one in JobPhase if one in seen) for at, seen in found.items()}


def _diagram() -> Iterator[str]:
    arrows: dict[tuple[JobPhase, JobPhase], list[JobAction]] = defaultdict(list)
    for (phase, action), nexts in reached().items():
        for after in nexts:
            if after is not phase:
                arrows[phase, after].append(action)
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {JobPhase.PENDING}"
    for (before, after), actions in arrows.items():
        yield f"    {before} --> {after}: {_names(actions)}"
    for phase in JobPhase:
        if phase in FINISHED:
            yield f"    {phase} --> [*]"
    yield "```"


def _table() -> Iterator[str]:
    yield "| phase | action | pods | next phase |"
    yield "| --- | --- | --- | --- |"
    seen = reached()
    for phase, steps in TRANSITIONS.items():
        rows: Rows = defaultdict(list)
        for action, step in steps.items():
            rows[step.pods, seen[phase, action]].append(action)
        for (pods, nexts), actions in rows.items():
            yield f"| {phase} | {_names(actions)} | {PODS[pods]} | {', '.join(nexts)} |"


def _names(actions: list[JobAction]) -> str:
    return "any action" if set(actions) == set(JobAction) else ", ".join(actions)
