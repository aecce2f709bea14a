"""Rules for a list of life-cycle policies, of a job or of one of its tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hekla.api.fields import shown
from hekla.api.job import LifecyclePolicy
from hekla.domain import duration, paths
from hekla.domain.errors import InvalidError, Violation
from hekla.domain.phases import JobAction, JobEvent

ACTIONS: Final = tuple(action for action in JobAction if action is not JobAction.SYNC_JOB)
"""What a policy may ask for; SyncJob and the actions on queues are internal."""
EVENTS: Final = tuple(JobEvent)


def violations(policies: Sequence[LifecyclePolicy], path: str) -> Iterator[Violation]:
    """All that is wrong with ``policies``, which stand at ``path``."""
    seen: dict[str, int] = {}
    codes: dict[int, int] = {}
    for index, policy in enumerate(policies):
        place = paths.at(path, index)
        yield from _trigger(policy, place)
        yield from _action(policy, place)
        yield from _timeout(policy, place)
        for event, where in _events(policy, place):
            if event in seen and seen[event] != index:
                yield Violation(
                    where, f"{shown(event)} has a policy already, {paths.at(path, seen[event])}"
                )
            seen.setdefault(event, index)
        if policy.exit_code is not None:
            if policy.exit_code in codes:
                first = paths.at(path, codes[policy.exit_code])
                message = f"{policy.exit_code} has a policy already, {first}"
                yield Violation(paths.at(place, "exitCode"), message)
            codes.setdefault(policy.exit_code, index)
    if JobEvent.ANY in seen and len(seen) > 1:
        others = ", ".join(shown(event) for event in seen if event != JobEvent.ANY)
        message = f"{JobEvent.ANY} means any event, so no policy may name {others} beside it"
        yield Violation(paths.at(path, seen[JobEvent.ANY]), message)


def _trigger(policy: LifecyclePolicy, place: str) -> Iterator[Violation]:
    has_event = bool(policy.event or policy.events)
    if has_event and policy.exit_code is not None:
        yield Violation(place, "must not have both an event and an exitCode")
    if not has_event and policy.exit_code is None:
        yield Violation(place, "must have an event, events, or an exitCode")
    if policy.exit_code == 0:
        yield Violation(paths.at(place, "exitCode"), "must not be 0, which is no failure")
    for event, where in _events(policy, place):
        if event not in EVENTS:
            message = f"must be one of {', '.join(EVENTS)}, is {shown(event)}"
            yield Violation(where, message)


def _action(policy: LifecyclePolicy, place: str) -> Iterator[Violation]:
    if policy.action not in ACTIONS:
        message = f"must be one of {', '.join(ACTIONS)}, is {shown(policy.action)}"
        yield Violation(paths.at(place, "action"), message)


def _timeout(policy: LifecyclePolicy, place: str) -> Iterator[Violation]:
    if policy.timeout is None:
        return
    try:
        negative = duration.parse(policy.timeout).total_seconds() < 0
    except InvalidError:
        return  # out of bounds, and told of as such
    if negative:
        message = f"must not be negative, is {shown(policy.timeout)}"
        yield Violation(paths.at(place, "timeout"), message)


def _events(policy: LifecyclePolicy, place: str) -> Iterator[tuple[str, str]]:
    """The events that a policy names, each once, and where."""
    named: set[str] = set()
    for index, event in enumerate(policy.events or ()):
        if event not in named:
            named.add(event)
            yield event, paths.at(place, "events", index)
    if policy.event and policy.event not in named:
        yield policy.event, paths.at(place, "event")
