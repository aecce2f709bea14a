"""One run: a shape submitted to a stack, watched to its end, and looked at as a whole."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

from tests.load import clients, history, invariants, stages, usage, watcher
from tests.load.clients import Order, Sent
from tests.load.shapes import Shape, is_removed
from tests.load.target import Target

LOOK: Final = 0.2
SETTLE: Final = 10.0
"""Seconds that a watcher may still take for the last versions, once all is over."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do."""

    shape: Shape
    clients: int = 32
    """Closed loop: how many submit one job after the other. 0: open loop."""
    rate: float = 0.0
    """Open loop: jobs a second."""
    seconds: float = 1.0
    """How long each pod lasts."""
    postgres_away: float = 0.0
    """For how many seconds Postgres is stopped in the middle; 0: not at all."""
    timeout: float = 600.0
    """Seconds after which the run is given up."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run."""

    shape: str
    loop: str
    jobs: int
    pods: int
    completed: int
    """Jobs that were seen completed."""
    seconds: float
    """From the first submission until the last job was seen completed."""
    jobs_per_second: float
    """Answered, while there were some to submit."""
    pods_per_second: float
    """From end to end."""
    tries: int
    """Calls more than there were jobs, for nobody answered the first."""
    percentiles: Mapping[str, Mapping[str, float]]
    usage: Mapping[str, Mapping[str, float]]
    """By part: processor seconds, percent of a core, most memory in MiB."""
    broken: Sequence[str]
    machine: Mapping[str, object]
    postgres_away: float = 0.0
    progress: Mapping[str, Sequence[float]] = field(default_factory=dict, repr=False)
    samples: Mapping[str, Sequence[tuple[float, float, float]]] = field(
        default_factory=dict, repr=False
    )
    """By part: seconds since the start, percent of a core, MiB."""

    @property
    def good(self) -> bool:
        """Whether every job completed and no invariant is broken."""
        return self.completed == self.jobs and not self.broken

    def as_json(self) -> dict[str, Any]:
        """Everything but the curves."""
        whole = asdict(replace(self, progress={}, samples={}))
        return {key: it for key, it in whole.items() if key not in {"progress", "samples"}}


Report = Callable[[str], None]


def run(target: Target, plan: Plan, report: Report) -> Outcome:
    """Submit, watch, and look at what is left of it."""
    prefix = f"load-{plan.shape.name}-{secrets.token_hex(3)}"
    machine = usage.machine()
    order = Order(
        address=target.controller,
        prefix=prefix,
        shape=plan.shape,
        seconds=plan.seconds,
        clients=plan.clients,
        rate=plan.rate,
        patience=60.0 + 3 * plan.postgres_away,
    )
    with (
        watcher.watching(order.address, prefix) as views,
        clients.running(order) as submitters,
    ):

        def parts() -> Mapping[str, Sequence[int]]:
            own = {"load itself": [*submitters.pids(), *views.pids()]}
            return {**{name: list(pids) for name, pids in target.parts().items()}, **own}

        meter = usage.Meter(parts)
        meter.start()
        _follow(target, plan, submitters, views, report)
        sent = submitters.result()
        seen, past = _settled(target, prefix, views)
        meter.stop()
    past = replace(past, nodes=target.nodes())
    return _outcome(plan, sent, seen, past, meter=meter, machine=machine)


def _follow(
    target: Target,
    plan: Plan,
    submitters: clients.Clients,
    views: watcher.Watcher,
    report: Report,
) -> None:
    """Wait until all is seen at its end, telling how it goes, and stop Postgres if so asked."""
    began = time.monotonic()
    jobs = plan.shape.jobs
    removed = sum(map(is_removed, range(jobs)))
    away = plan.postgres_away
    back_at = 0.0
    while views.ended < jobs or views.deleted < removed:
        passed = time.monotonic() - began
        report(
            f"{plan.shape.name}: {passed:5.1f} s  answered {submitters.answered}/{jobs}, let in"
            f" {views.inqueue}, running {views.running}, over {views.ended},"
            f" removed {views.deleted}"
        )
        if passed > plan.timeout:
            report(f"{plan.shape.name}: given up after {passed:.0f} s")
            return
        # In the middle: some are answered, some at their end, some have yet to come.
        if away and not back_at and (submitters.answered >= jobs / 2 or views.ended):
            report(f"{plan.shape.name}: {passed:5.1f} s  Postgres is stopped for {away:g} s")
            target.stack.ok("stop", "postgres")
            back_at = time.monotonic() + away
        if back_at and away and time.monotonic() >= back_at:
            target.stack.ok("start", "postgres")
            away = 0.0
            report(f"{plan.shape.name}: {time.monotonic() - began:5.1f} s  Postgres is back")
        time.sleep(LOOK)


def _settled(
    target: Target, prefix: str, views: watcher.Watcher
) -> tuple[watcher.Views, history.History]:
    """What was seen and what is remembered, once the last versions had time to arrive."""
    until = time.monotonic() + SETTLE
    while True:
        past = history.read(target.database_url, prefix)
        seen = views.views()
        if time.monotonic() > until or not any(invariants.watched(past, seen)):
            return seen, past
        time.sleep(1.0)


def _outcome(
    plan: Plan,
    sent: Sequence[Sent],
    seen: watcher.Views,
    past: history.History,
    *,
    meter: usage.Meter,
    machine: Mapping[str, object],
) -> Outcome:
    start = min(one.due for one in sent)
    answered = [one.answered for one in sent if one.uid]
    over = [it.phases["Completed"] for it in seen.jobs.values() if "Completed" in it.phases]
    seconds = max(over, default=start) - start
    submitting = max(answered, default=start) - start
    pods = plan.shape.pods * len(over)
    loop = f"closed, {plan.clients} clients" if plan.clients else f"open, {plan.rate:g} jobs/s"
    return Outcome(
        shape=plan.shape.name,
        loop=loop,
        jobs=plan.shape.jobs,
        pods=plan.shape.all_pods,
        completed=len(over),
        seconds=round(seconds, 2),
        jobs_per_second=round(len(answered) / max(submitting, 1e-3), 1),
        pods_per_second=round(pods / max(seconds, 1e-3), 1),
        tries=sum(one.tries - 1 for one in sent),
        percentiles=stages.times_of(past, sent, seen).percentiles(),
        usage=_usage(meter),
        broken=[
            *invariants.broken(past, sent, seen),
            *(f"job {one.number} was not accepted: {one.error}" for one in sent if one.error),
            *seen.errors,
        ],
        machine=machine,
        postgres_away=plan.postgres_away,
        progress=stages.progress_of(past, sent, seen),
        samples=_curves(meter, start),
    )


def _usage(meter: usage.Meter) -> dict[str, dict[str, float]]:
    found = {}
    for part, samples in sorted(meter.samples.items()):
        cpu = samples[-1].cpu - samples[0].cpu
        passed = max(samples[-1].at - samples[0].at, 1e-3)
        found[part] = {
            "cpu_seconds": round(cpu, 1),
            "percent_of_a_core": round(100 * cpu / passed, 1),
            "most_mib": round(max(sample.memory for sample in samples) / (1 << 20), 1),
        }
    return found


def _curves(meter: usage.Meter, start: float) -> dict[str, list[tuple[float, float, float]]]:
    return {
        part: [
            (
                after.at - start,
                100 * (after.cpu - before.cpu) / max(after.at - before.at, 1e-3),
                after.memory / (1 << 20),
            )
            for before, after in pairwise(samples)
        ]
        for part, samples in meter.samples.items()
    }
