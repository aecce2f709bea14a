"""Rules for lists of life-cycle policies, of a job and of each of its tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from hekla.api.fields import shown
from hekla.api.job import Job, LifecyclePolicy
from hekla.domain import duration, paths
from hekla.domain.errors import InvalidError, Violation
from hekla.domain.phases import JobAction, JobEvent
from services.webhook.rules.job import JOB, placed_tasks
from services.webhook.rules.registry import CREATION, Case, Rule

ACTIONS: Final = tuple(action for action in JobAction if action is not JobAction.SYNC_JOB)
"""What a policy may ask for; SyncJob and the actions on queues are internal."""
EVENTS: Final = tuple(JobEvent)

Policies = Sequence[LifecyclePolicy]


def placed_policies(job: Job) -> Iterator[tuple[str, Policies]]:
    """Every list of policies of a job, with its path."""
    if job.spec.policies:
        yield "spec.policies", job.spec.policies
    for place, task in placed_tasks(job):
        if task.policies:
            yield f"{place}.policies", task.policies


def events(policy: LifecyclePolicy, place: str) -> Iterator[tuple[str, str]]:
    """The events that a policy names, each once, and where."""
    named: set[str] = set()
    for index, event in enumerate(policy.events or ()):
        if event not in named:
            named.add(event)
            yield event, paths.at(place, "events", index)
    if policy.event and policy.event not in named:
        yield policy.event, paths.at(place, "event")


def _each(
    check: Callable[[LifecyclePolicy, str], Iterator[Violation]],
) -> Callable[[Case[Job]], Iterator[Violation]]:
    """Asks ``check`` of every policy."""

    def checked(case: Case[Job]) -> Iterator[Violation]:
        for path, policies in placed_policies(case.object):
            for index, policy in enumerate(policies):
                yield from check(policy, paths.at(path, index))

    return checked


def _each_list(
    check: Callable[[Policies, str], Iterator[Violation]],
) -> Callable[[Case[Job]], Iterator[Violation]]:
    """Asks ``check`` of every list of policies."""

    def checked(case: Case[Job]) -> Iterator[Violation]:
        for path, policies in placed_policies(case.object):
            yield from check(policies, path)

    return checked


def _trigger(policy: LifecyclePolicy, place: str) -> Iterator[Violation]:
    has_event = bool(policy.event or policy.events)
    if has_event and policy.exit_code is not None:
        yield Violation(place, "must not have both an event and an exitCode")
    if not has_event and policy.exit_code is None:
        yield Violation(place, "must have an event, events, or an exitCode")


def _exit_code(policy: LifecyclePolicy, place: str) -> Iterator[Violation]:
    if policy.exit_code == 0:
        yield Violation(paths.at(place, "exitCode"), "must not be 0, which is no failure")


def _event(policy: LifecyclePolicy, place: str) -> Iterator[Violation]:
    for event, where in events(policy, place):
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


def _repeated_event(policies: Policies, path: str) -> Iterator[Violation]:
    seen: dict[str, int] = {}
    for index, policy in enumerate(policies):
        for event, where in events(policy, paths.at(path, index)):
            first = seen.setdefault(event, index)
            if first != index:
                message = f"{shown(event)} has a policy already, {paths.at(path, first)}"
                yield Violation(where, message)


def _repeated_code(policies: Policies, path: str) -> Iterator[Violation]:
    codes: dict[int, int] = {}
    for index, policy in enumerate(policies):
        if policy.exit_code is not None:
            first = codes.setdefault(policy.exit_code, index)
            if first != index:
                message = f"{policy.exit_code} has a policy already, {paths.at(path, first)}"
                yield Violation(paths.at(path, index, "exitCode"), message)


def _any_alone(policies: Policies, path: str) -> Iterator[Violation]:
    seen: dict[str, int] = {}
    for index, policy in enumerate(policies):
        for event, _ in events(policy, path):
            seen.setdefault(event, index)
    if JobEvent.ANY in seen and len(seen) > 1:
        others = ", ".join(shown(event) for event in seen if event != JobEvent.ANY)
        message = f"{JobEvent.ANY} means any event, so no policy may name {others} beside it"
        yield Violation(paths.at(path, seen[JobEvent.ANY]), message)


def _rule(
    name: str,
    check: Callable[[Case[Job]], Iterator[Violation]],
    key: str,
    says: str,
    example: str,
    *,
    beyond: bool = False,
) -> Rule:
    return Rule(
        name=f"policy.{name}",
        kinds=JOB,
        operations=CREATION,
        check=check,
        path=f"spec.policies[]{key}, spec.tasks[].policies[]{key}",
        says=says,
        example=example,
        beyond=beyond,
    )


RULES: Final = (
    _rule(
        "trigger",
        _each(_trigger),
        "",
        "A policy has events or an exit code: one of them, not both.",
        "{action: RestartJob}",
    ),
    _rule(
        "exit-code",
        _each(_exit_code),
        ".exitCode",
        "The exit code is not 0.",
        "{exitCode: 0, action: RestartJob}",
    ),
    _rule(
        "event",
        _each(_event),
        ".event",
        f"The event is one of {', '.join(f'`{event}`' for event in EVENTS)}.",
        "{event: OutOfSync, action: RestartJob}",
    ),
    _rule(
        "action",
        _each(_action),
        ".action",
        f"The action is one of {', '.join(ACTIONS)}, whatever triggers it.",
        "{exitCode: 1, action: CloseQueue}",
    ),
    _rule(
        "timeout",
        _each(_timeout),
        ".timeout",
        "A timeout is not negative.",
        "{event: PodPending, timeout: -1s, action: RestartPod}",
        beyond=True,
    ),
    _rule(
        "one-event",
        _each_list(_repeated_event),
        ".event",
        "In one list an event has one policy. A job's list and a task's may both have one.",
        "[{event: PodFailed, …}, {event: PodFailed, …}]",
    ),
    _rule(
        "one-exit-code",
        _each_list(_repeated_code),
        ".exitCode",
        "In one list an exit code has one policy.",
        "[{exitCode: 3, …}, {exitCode: 3, …}]",
    ),
    _rule(
        "any-alone",
        _each_list(_any_alone),
        "",
        "Beside `*` no event is named in the same list; exit codes may be.",
        '[{event: "*", …}, {event: PodFailed, …}]',
    ),
)
