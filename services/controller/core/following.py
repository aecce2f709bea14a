"""Plans that follow from each other, told without reading everything again.

A plan that does no more than move the job to another phase changes nothing else that the next
one looks at. So the next one is made at once, of what is known, and they are carried out
together; if it has nothing to do, the look at the job is over. Pure, like the plans themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from hekla.domain.phases import JobEvent
from services.controller.core import policies
from services.controller.core.observed import GroupStep, Observed, Plan
from services.controller.core.plan import plan
from services.controller.core.status import write

LONGEST: Final = 10
"""So many plans may follow from each other at once."""


class Step(NamedTuple):
    """A plan, and what it was made of."""

    observed: Observed
    decided: Plan


class Chain(NamedTuple):
    """What is done about a job in one transaction."""

    steps: Sequence[Step]
    """Each follows from the one before; only the last may do anything to pods."""
    quiet: bool = False
    """There is nothing to do after it, once the pods that it wants are made."""
    due_at: datetime | None = None
    """When time alone asks for another look."""

    @property
    def observed(self) -> Observed:
        """What the last plan was made of."""
        return self.steps[-1].observed

    @property
    def decided(self) -> Plan:
        """The last plan."""
        return self.steps[-1].decided


def follow(observed: Observed, now: datetime) -> Chain:
    """Decide what to do about a job, as far as it can be told."""
    steps: list[Step] = []
    decided = plan(observed, now)
    while True:
        steps.append(Step(observed, decided))
        if not is_told(observed, decided):
            return Chain(steps)
        if decided.slots:
            # Timers of pods that wait are set when the pods are there.
            hears = policies.tasks_that_hear(observed.job.spec, JobEvent.POD_PENDING)
            quiet = decided.phase is observed.phase and not hears
            return Chain(steps, quiet, decided.due_at)
        if decided.phase is observed.phase:
            return Chain(steps, not decided.again, decided.due_at)
        after = _after(observed, decided, now)
        following = plan(after, now)
        if _does_nothing(after, following, decided):
            return Chain(steps, quiet=True, due_at=following.due_at)
        made = decided.group is GroupStep.ENSURE and observed.group is None
        # Of a new group nobody knows what the scheduler says; an end is seen before it goes.
        if made or following.expire or len(steps) == LONGEST:
            return Chain(steps)
        observed, decided = after, following


def is_told(observed: Observed, decided: Plan) -> bool:
    """Whether all that the next plan looks at is known, once this one is carried out."""
    settled = not (
        decided.kills
        or decided.handled
        or decided.commands
        or decided.triggers
        or decided.resets
        or decided.carry
        or (decided.cancel_timers and observed.triggers)
        or decided.expire
        or decided.retire
    )
    return settled and decided.group is not GroupStep.RENEW and len(observed.commands) == 0


def is_plain(chain: Chain) -> bool:
    """Whether it makes pods and moves the job, and nothing else: to no pod that is there."""
    quiet = chain.quiet and all(is_told(*step) for step in chain.steps)
    planned = any(one.planned for one in chain.observed.counts.values())
    return quiet and not planned and not any(_reshapes(*step) for step in chain.steps)


def _reshapes(observed: Observed, decided: Plan) -> bool:
    if decided.group is not GroupStep.ENSURE or observed.group is None:
        return False
    return observed.group.spec != decided.group_spec


def _after(observed: Observed, decided: Plan, now: datetime) -> Observed:
    """What there is once a plan that :func:`is_told` is carried out."""
    group = observed.group
    if decided.group is GroupStep.REMOVE:
        group = None
    elif decided.group is GroupStep.ENSURE and group is not None:
        assert decided.group_spec is not None
        group = replace(group, spec=decided.group_spec)
    written = write(observed, decided, observed.counts, now)
    return replace(
        observed,
        job=observed.job.model_copy(update={"status": written.status}),
        counters=decided.counters,
        group=group,
        started_at=written.started_at,
        finished_at=written.finished_at,
    )


def _does_nothing(observed: Observed, following: Plan, decided: Plan) -> bool:
    """Whether the plan that follows leaves everything as ``decided`` makes it."""
    state = observed.job.status.state
    as_it_is = following.group is GroupStep.KEEP or (
        following.group is decided.group is GroupStep.ENSURE
        and following.group_spec == decided.group_spec
    )
    return (
        is_told(observed, following)
        and as_it_is
        and not (following.slots or following.notes or following.again)
        and following.phase is observed.phase
        and (following.reason, following.message) == (state.reason or "", state.message or "")
    )
