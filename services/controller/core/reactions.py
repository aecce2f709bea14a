"""Which action a pass carries out: a command, else what policies make of events.

Events are facts in the store, not things one must have watched: an outcome that no policy has
seen, a task that is complete, a timer that is due. So they are acted on once, whoever was
down when they happened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Final
from uuid import UUID

from hekla.api.job import JobSpec, TaskSpec
from hekla.domain.attempt import Ended, Outcome
from hekla.domain.phases import JobAction, JobEvent, JobPhase, PodGroupPhase, PodPhase
from hekla.domain.trigger import Command, Trigger, TriggerState, Watched
from services.controller.core import policies
from services.controller.core.observed import Observed
from services.controller.core.tally import NONE

STRENGTH: Final[Sequence[JobAction]] = (
    JobAction.COMPLETE_JOB,
    JobAction.TERMINATE_JOB,
    JobAction.ABORT_JOB,
    JobAction.RESTART_JOB,
    JobAction.RESTART_TASK,
    JobAction.RESTART_PARTITION,
    JobAction.RESTART_POD,
    JobAction.RESUME_JOB,
    JobAction.SYNC_JOB,
)
"""Of what is asked for within one second, the first of these is done."""
PARTIAL: Final = frozenset(
    {JobAction.RESTART_TASK, JobAction.RESTART_PARTITION, JobAction.RESTART_POD}
)
REACTING: Final = frozenset({JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING})
"""Phases in which events count."""
DEFAULT_TASK_RETRIES: Final = 3


class Cause(Enum):
    """Why an action is done; restarts for commands and evictions use up no retries."""

    COMMAND = auto()
    FAILURE = auto()
    EVICTION = auto()
    PROGRESS = auto()
    """Something went as it should, or the job was changed."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a partial restart is about."""

    task: str
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """An action that something asks for."""

    at: datetime
    action: JobAction
    cause: Cause
    because: str
    target: Target | None = None
    attempt: UUID | None = None
    trigger: Trigger | None = None
    event: JobEvent = JobEvent.ANY


@dataclass(frozen=True, slots=True)
class Reaction:
    """What the pass does, and what it is thereby done with."""

    action: JobAction
    cause: Cause = Cause.PROGRESS
    targets: Sequence[Target] = ()
    because: str = ""
    event: str = ""
    """The event that a policy reacted to; empty without one."""
    handled: Sequence[UUID] = ()
    triggers: Sequence[Trigger] = ()
    commands: Sequence[int] = ()
    due_at: datetime | None = None
    more: bool = False
    """Events are left for another pass."""


def react(observed: Observed, now: datetime) -> Reaction:
    """Choose the action of this pass."""
    if observed.commands:
        return _obey(observed.commands[0], more=True)
    if observed.phase not in REACTING:
        return Reaction(
            JobAction.SYNC_JOB,
            handled=[ended.uid for ended in observed.ended],
            triggers=_cancelled(observed),
        )
    wishes, handled, armed = _wishes_of_outcomes(observed)
    more_wishes, timers = _wishes_of_triggers(observed, now)
    wishes = sorted([*wishes, *more_wishes], key=lambda wish: wish.at)
    triggers = [*armed, *timers]
    due_at = min((one.due_at for one in triggers if one.due_at is not None), default=None)
    if not wishes:
        return Reaction(JobAction.SYNC_JOB, handled=handled, triggers=triggers, due_at=due_at)
    return _strongest(wishes, handled, triggers, due_at)


def _obey(command: Command, *, more: bool) -> Reaction:
    target = Target(command.task, command.index) if command.task else None
    return Reaction(
        command.action,
        Cause.COMMAND,
        targets=[target] if target else [],
        because=command.message or "asked for by a command",
        commands=[command.id],
        more=more,
    )


def _strongest(
    wishes: Sequence[Wish],
    handled: Sequence[UUID],
    triggers: Sequence[Trigger],
    due_at: datetime | None,
) -> Reaction:
    """Of the wishes of the first second the strongest, and what is granted with it."""
    window = [wish for wish in wishes if wish.at < wishes[0].at + timedelta(seconds=1)]
    chosen = min(window, key=lambda wish: STRENGTH.index(wish.action))
    if chosen.action in PARTIAL:
        # Each names pods of its own: all that ask for the same kind of restart get it.
        granted = [wish for wish in window if wish.action is chosen.action]
        left = [wish for wish in wishes if wish not in granted]
    else:
        # The whole job moves on: what else its pods did is an older story.
        granted, left = list(wishes), []
    fired = [
        replace(wish.trigger, state=TriggerState.FIRED, due_at=None)
        for wish in granted
        if wish.trigger is not None
    ]
    causes = {wish.cause for wish in granted if wish.action is chosen.action}
    return Reaction(
        chosen.action,
        # One failure among evictions is a failure.
        Cause.FAILURE if Cause.FAILURE in causes else chosen.cause,
        targets=[wish.target for wish in granted if wish.target is not None],
        because=chosen.because,
        event=str(chosen.event),
        handled=[*handled, *[wish.attempt for wish in granted if wish.attempt is not None]],
        triggers=[*triggers, *fired],
        due_at=due_at,
        more=bool(left),
    )


def _wishes_of_outcomes(
    observed: Observed,
) -> tuple[Sequence[Wish], Sequence[UUID], Sequence[Trigger]]:
    """What policies make of attempts that ended; which they are done with; new timers."""
    wishes: list[Wish] = []
    handled: list[UUID] = []
    armed: list[Trigger] = []
    for ended in observed.ended:
        event = _event_of(ended)
        found = None
        if event is not None and _counts(ended, observed):
            # Who is evicted does not say how it would have ended.
            failed = event is JobEvent.POD_FAILED
            codes = [code for code in ended.exit_codes.values() if failed and code != 0]
            found = policies.match(observed.job.spec, event, task=ended.task, exit_codes=codes)
        if event is None or found is None or found.action is JobAction.SYNC_JOB:
            handled.append(ended.uid)
        elif found.delay:
            handled.append(ended.uid)
            armed.append(
                Trigger(
                    version=observed.version,
                    scope=str(ended.uid),
                    event=event,
                    state=TriggerState.ARMED,
                    action=found.action,
                    due_at=ended.finished_at + found.delay,
                    task=ended.task,
                    index=ended.index,
                )
            )
        else:
            failed = event is JobEvent.POD_FAILED
            wishes.append(
                Wish(
                    at=ended.finished_at,
                    action=found.action,
                    cause=Cause.FAILURE if failed else Cause.EVICTION,
                    because=_story(ended, event),
                    event=event,
                    target=Target(ended.task, ended.index),
                    attempt=ended.uid,
                )
            )
    return wishes, handled, armed


def _event_of(ended: Ended) -> JobEvent | None:
    match ended.outcome:
        case Outcome.FAILED:
            return JobEvent.POD_FAILED
        case Outcome.EVICTED | Outcome.LOST:
            return JobEvent.POD_EVICTED
        case _:
            return None


def _counts(ended: Ended, observed: Observed) -> bool:
    """Whether the attempt is of this run of a task that the job has."""
    task = policies.find_task(observed.job.spec, ended.task)
    return (
        task is not None
        and ended.index < task.replicas
        and ended.job_version >= observed.version
        and not ended.superseded
    )


def _story(ended: Ended, event: JobEvent) -> str:
    codes = ", ".join(f"{name} {code}" for name, code in sorted(ended.exit_codes.items()))
    how = f" (exit codes: {codes})" if codes and event is JobEvent.POD_FAILED else ""
    return f"{event} of {ended.task}-{ended.index}{how}"


def _wishes_of_triggers(
    observed: Observed, now: datetime
) -> tuple[Sequence[Wish], Sequence[Trigger]]:
    """What is asked for by timers that are due and by the job's own events."""
    wishes: list[Wish] = []
    timers: list[Trigger] = []
    known = {(one.trigger.scope, one.trigger.event) for one in observed.triggers}
    for watched in observed.triggers:
        trigger = watched.trigger
        if trigger.state is not TriggerState.ARMED or trigger.due_at is None:
            continue
        if not _still_holds(watched, observed):
            timers.append(replace(trigger, state=TriggerState.CANCELLED, due_at=None))
        elif trigger.due_at <= now:
            wishes.append(_wish(trigger, observed, trigger.due_at))
        else:
            timers.append(trigger)
    for trigger in _new_events(observed, now):
        if (trigger.scope, trigger.event) in known:
            continue
        if trigger.due_at is None or trigger.due_at <= now:
            wishes.append(_wish(trigger, observed, now))
        else:
            timers.append(replace(trigger, state=TriggerState.ARMED))
    return wishes, timers


def _wish(trigger: Trigger, observed: Observed, at: datetime) -> Wish:
    where = f" of {trigger.task}" if trigger.task else ""
    index = "" if trigger.index is None else f"-{trigger.index}"
    return Wish(
        at=at,
        action=trigger.action,
        cause=CAUSES[trigger.event],
        because=f"{trigger.event}{where}{index}",
        event=trigger.event,
        target=Target(trigger.task, trigger.index) if trigger.task else None,
        trigger=trigger,
    )


CAUSES: Final[Mapping[JobEvent, Cause]] = {
    JobEvent.POD_FAILED: Cause.FAILURE,
    JobEvent.POD_EVICTED: Cause.EVICTION,
    JobEvent.POD_PENDING: Cause.FAILURE,
    JobEvent.UNKNOWN: Cause.FAILURE,
    JobEvent.TASK_FAILED: Cause.FAILURE,
    JobEvent.TASK_COMPLETED: Cause.PROGRESS,
    JobEvent.JOB_UPDATED: Cause.PROGRESS,
}


def _still_holds(watched: Watched, observed: Observed) -> bool:
    """Whether what armed a timer is still so."""
    trigger = watched.trigger
    match trigger.event:
        case JobEvent.POD_PENDING:
            return (
                watched.attempt_phase == PodPhase.PENDING
                and watched.attempt_outcome is None
                and not watched.attempt_doomed
            )
        case JobEvent.POD_FAILED | JobEvent.POD_EVICTED:
            return not watched.replaced
        case JobEvent.TASK_COMPLETED | JobEvent.TASK_FAILED:
            task = policies.find_task(observed.job.spec, trigger.task)
            return task is not None and _task_event(task, observed) is trigger.event
        case JobEvent.UNKNOWN:
            return observed.group is not None and observed.group.phase is PodGroupPhase.UNKNOWN
        case _:
            return True


def _task_event(task: TaskSpec, observed: Observed) -> JobEvent | None:
    if task.replicas > 0 and (observed.counts.get(task.name, NONE).succeeded >= task.replicas):
        return JobEvent.TASK_COMPLETED
    retries = task.max_retry or DEFAULT_TASK_RETRIES
    if retries > 0 and observed.restarts.get(task.name, 0) >= retries and task.replicas > 0:
        return JobEvent.TASK_FAILED
    return None


def _new_events(observed: Observed, now: datetime) -> Iterator[Trigger]:
    """Events of tasks, of the job and of pending pods that some policy reacts to."""
    spec = observed.job.spec
    for task in spec.tasks or []:
        event = _task_event(task, observed)
        if event is not None:
            yield from _trigger(spec, observed, now, event, scope=task.name, task=task.name)
    group = observed.group
    if group is not None and group.phase is PodGroupPhase.UNKNOWN:
        scope = str(group.uid)
        yield from _trigger(spec, observed, now, JobEvent.UNKNOWN, scope=scope)
    generation = observed.job.metadata.generation or 1
    if generation > observed.counters.generation:
        scope = f"generation {generation}"
        yield from _trigger(spec, observed, now, JobEvent.JOB_UPDATED, scope=scope)
    for waiting in observed.waiting:
        since = now - timedelta(seconds=waiting.seconds)
        for trigger in _trigger(
            spec,
            observed,
            since,
            JobEvent.POD_PENDING,
            scope=str(waiting.uid),
            task=waiting.task,
        ):
            yield replace(trigger, index=waiting.index)


def _trigger(
    spec: JobSpec,
    observed: Observed,
    since: datetime,
    event: JobEvent,
    *,
    scope: str,
    task: str = "",
) -> Iterator[Trigger]:
    found = policies.match(spec, event, task=task)
    if found is not None and found.action is not JobAction.SYNC_JOB:
        yield Trigger(
            version=observed.version,
            scope=scope,
            event=event,
            state=TriggerState.NEW,
            action=found.action,
            due_at=since + found.delay if found.delay else None,
            task=task,
        )


def _cancelled(observed: Observed) -> Sequence[Trigger]:
    return [
        replace(one.trigger, state=TriggerState.CANCELLED, due_at=None)
        for one in observed.triggers
        if one.trigger.state is TriggerState.ARMED
    ]
