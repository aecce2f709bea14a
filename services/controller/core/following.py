"""What comes right after a plan, told without reading everything again.

A plan that does no more than move the job to another phase changes nothing else that the next
one looks at. So the next one is made at once, of what is known; if it has nothing to do
either, the look at the job is over. Pure, like the plan itself.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from hekla.api.job import JobStatus
from hekla.domain.phases import FINISHED, JobEvent
from services.controller.core import policies
from services.controller.core.observed import GroupStep, Observed, Plan
from services.controller.core.plan import plan


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


def next_due(
    observed: Observed, decided: Plan, status: JobStatus, now: datetime
) -> tuple[bool, datetime | None]:
    """Whether the plan after this one has nothing to do, and when time alone asks for a look.

    ``status`` is the job's once the plan is carried out. Pods that the plan wants are made.
    """
    if not is_told(observed, decided):
        return False, None
    if decided.slots:
        # Timers of pods that wait are set when the pods are there.
        hears = policies.tasks_that_hear(observed.job.spec, JobEvent.POD_PENDING)
        quiet = decided.phase is observed.phase and not hears
        return quiet, decided.due_at
    if decided.phase is observed.phase:
        return not decided.again, decided.due_at
    gone = decided.group is GroupStep.REMOVE
    finished = decided.phase in FINISHED
    after = replace(
        observed,
        job=observed.job.model_copy(update={"status": status}),
        counters=decided.counters,
        group=None if gone else observed.group,
        finished_at=(observed.finished_at or now) if finished else None,
        started_at=observed.started_at or now,
    )
    following = plan(after, now)
    quiet = (
        is_told(after, following)
        and not following.slots
        and not following.notes
        and following.phase is decided.phase
        and (following.reason, following.message) == (decided.reason, decided.message)
        and (following.group is GroupStep.KEEP or not gone)
        and not (following.again or following.expire)
    )
    return quiet, following.due_at
