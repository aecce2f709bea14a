"""How long each stage of a job's way took, from the moment it was to be submitted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from tests.load.clients import Sent
from tests.load.history import History
from tests.load.watcher import Seen, Views

STAGES: Final = (
    "answered",
    "row stored",
    "group seen",
    "group let in",
    "pod planned",
    "pod bound",
    "job running",
    "running seen",
    "job over",
    "over seen",
)
"""Of jobs, but for the two of pods."""
PARTS: Final = (0.5, 0.9, 0.99, 1.0)


class Times(NamedTuple):
    """Seconds since the submission, from the least to the most, by stage."""

    by_stage: Mapping[str, Sequence[float]]

    def percentiles(self) -> dict[str, dict[str, float]]:
        """By stage and part."""
        return {
            stage: {f"p{part * 100:g}": round(quantile(times, part), 3) for part in PARTS}
            for stage, times in self.by_stage.items()
            if times
        }


def quantile(ordered: Sequence[float], part: float) -> float:
    """The value below which that part of them lies."""
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def times_of(history: History, sent: Sequence[Sent], views: Views) -> Times:
    """The times of a run."""
    due = {one.uid: one.due for one in sent if one.uid}
    group_of = {seen.owner: seen for seen in views.groups.values()}
    bound = {bind.pod: bind.at for bind in history.binds if bind.state != "failed"}
    found: dict[str, list[float]] = {stage: [] for stage in STAGES}
    found["answered"] = [one.answered - one.due for one in sent if one.uid]
    for job in history.jobs:
        begun = due.get(job.uid)
        if begun is None:
            continue
        group = group_of.get(job.uid)
        seen = views.jobs.get(job.uid)
        moments = {
            "row stored": job.created if not job.removed else None,
            "group seen": group.first if group else None,
            "group let in": _moved(group),
            "job running": job.running,
            "running seen": _moved(seen),
            "job over": job.finished,
            "over seen": seen.phases.get("Completed") if seen else None,
        }
        for stage, moment in moments.items():
            if moment is not None:
                found[stage].append(moment - begun)
    for attempt in history.attempts:
        begun = due.get(attempt.job)
        if begun is not None:
            found["pod planned"].append(attempt.planned - begun)
            if attempt.pod in bound:
                found["pod bound"].append(bound[attempt.pod] - begun)
    return Times({stage: sorted(times) for stage, times in found.items()})


def progress_of(
    history: History, sent: Sequence[Sent], views: Views
) -> Mapping[str, Sequence[float]]:
    """When jobs and pods came to some stages, in seconds since the first submission."""
    if not sent:
        return {}
    start = min(one.due for one in sent)
    found: dict[str, list[float]] = defaultdict(list)
    found["jobs answered"] = [one.answered - start for one in sent if one.uid]
    found["jobs let in"] = [
        at - start for group in views.groups.values() if (at := _moved(group)) is not None
    ]
    found["pods planned"] = [attempt.planned - start for attempt in history.attempts]
    found["pods bound"] = [bind.at - start for bind in history.binds]
    found["jobs seen over"] = [
        seen.phases["Completed"] - start
        for seen in views.jobs.values()
        if "Completed" in seen.phases
    ]
    return {stage: sorted(times) for stage, times in found.items()}


def _moved(seen: Seen | None) -> float | None:
    """When it was first seen past waiting."""
    if seen is None:
        return None
    return next((at for phase, at in seen.phases.items() if phase not in {"", "Pending"}), None)
