"""Policies: which action an event of a job asks for, and after how long.

A task's policies are asked first, then the job's; in each list the first that matches wins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple

from hekla.api.job import JobSpec, LifecyclePolicy, TaskSpec
from hekla.domain import duration
from hekla.domain.phases import JobAction, JobEvent


class Match(NamedTuple):
    """What a policy asks for."""

    action: JobAction
    delay: timedelta


def match(
    spec: JobSpec, event: JobEvent, *, task: str = "", exit_codes: Collection[int] = ()
) -> Match | None:
    """The first policy that reacts to the event, or to one of the exit codes.

    PodPending counts only for a policy with a timeout: every pod is pending at first.
    """
    for policy in _in_order(spec, task):
        delay = timedelta(0) if policy.timeout is None else duration.parse(policy.timeout)
        if _hears(policy, event, delay) or _has_code(policy, exit_codes):
            return Match(_action(policy), delay)
    return None


def _action(policy: LifecyclePolicy) -> JobAction:
    """The policy's action; one that nobody knows does nothing but a sync."""
    try:
        return JobAction(policy.action or "")
    except ValueError:
        return JobAction.SYNC_JOB


def tasks_that_hear(spec: JobSpec, event: JobEvent) -> Sequence[str]:
    """The tasks for whose pods some policy reacts to ``event``."""
    return [
        task.name for task in spec.tasks or [] if match(spec, event, task=task.name) is not None
    ]


def are_there_any(spec: JobSpec) -> bool:
    """Whether the job reacts to any event."""
    return bool(spec.policies) or any(task.policies for task in spec.tasks or ())


def find_task(spec: JobSpec, name: str) -> TaskSpec | None:
    """The task of that name."""
    return next((task for task in spec.tasks or [] if task.name == name), None)


def _in_order(spec: JobSpec, task: str) -> Iterator[LifecyclePolicy]:
    found = find_task(spec, task) if task else None
    if found is not None:
        yield from found.policies or []
    yield from spec.policies or []


def _hears(policy: LifecyclePolicy, event: JobEvent, delay: timedelta) -> bool:
    events = {*(policy.events or []), *([policy.event] if policy.event else [])}
    if event is JobEvent.POD_PENDING and not delay:
        return False
    return event in events or JobEvent.ANY in events


def _has_code(policy: LifecyclePolicy, exit_codes: Collection[int]) -> bool:
    return policy.exit_code is not None and policy.exit_code in exit_codes
