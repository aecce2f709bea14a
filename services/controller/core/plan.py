"""One pass over a job, decided: a pure function of what was observed and the time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from hekla.domain.attempt import Kill, Outcome, Span
from hekla.domain.phases import FINISHED, JobAction, JobPhase, PodGroupPhase
from services.controller.core import policies
from services.controller.core.group import group_spec
from services.controller.core.observed import (
    Counters,
    GroupStep,
    Note,
    Observed,
    Plan,
    Reset,
    Weight,
)
from services.controller.core.reactions import Cause, Reaction, Target, react
from services.controller.core.support import unsupported
from services.controller.core.tally import tally
from services.controller.core.transitions import TRANSITIONS, PodStep, Step

GROUPED: Final = frozenset({JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING})
"""Phases in which the job has a pod group."""
REPLACED: Final = (Outcome.EVICTED, Outcome.REJECTED, Outcome.LOST)
"""Ends after which an index wants another pod in the same run."""
MAX_EVICTIONS: Final = "hekla.io/max-evictions"
"""Annotation: how many restarts for evictions are free; each further one is a failure."""
_NUMBER: Final = re.compile(r"[0-9]{1,9}")


def plan(observed: Observed, now: datetime) -> Plan:
    """Decide what to do about a job. No I/O, no clock."""
    if observed.deleting:
        return _removal(observed)
    reaction = react(observed, now)
    step = TRANSITIONS[observed.phase][reaction.action]
    if step.pods is PodStep.RESTART_SOME and not _targets_exist(observed, reaction):
        return _nothing_to_restart(observed, reaction)
    return _step(observed, reaction, step, now)


def _removal(observed: Observed) -> Plan:
    """Everything goes; the job last."""
    gone = observed.present == 0
    return replace(
        _as_it_is(observed),
        kills=() if gone else (Kill("JobDeleted", ended=True),),
        group=GroupStep.REMOVE if gone else GroupStep.KEEP,
        commands=[command.id for command in observed.commands],
        retire=gone,
    )


def _as_it_is(observed: Observed) -> Plan:
    status = observed.job.status
    return Plan(
        phase=observed.phase,
        version=observed.version,
        retry_count=status.retry_count,
        counters=observed.counters,
        reason=status.state.reason or "",
        message=status.state.message or "",
    )


def _targets_exist(observed: Observed, reaction: Reaction) -> bool:
    return any(_restart_kill(observed, reaction.action, one) for one in reaction.targets)


def _nothing_to_restart(observed: Observed, reaction: Reaction) -> Plan:
    """A partial restart that names no pod is said to be one, and does nothing."""
    note = Note(
        str(reaction.action),
        f"{reaction.action} names no task or pod of this job; nothing is restarted",
        Weight.WARNING,
    )
    return replace(
        _as_it_is(observed),
        handled=reaction.handled,
        triggers=reaction.triggers,
        commands=reaction.commands,
        notes=[note],
        due_at=reaction.due_at,
        again=True,
    )


def _step(observed: Observed, reaction: Reaction, step: Step, now: datetime) -> Plan:
    restarts = step.pods in (PodStep.RESTART_ALL, PodStep.RESTART_SOME)
    counted = restarts and _uses_a_retry(observed, reaction)
    retry_count = observed.job.status.retry_count + counted
    # The last attempt stays to be looked at: nothing would come after a removal of it.
    last = counted and retry_count >= observed.job.spec.max_retry
    phase = step.then(tally(observed, retry_count=retry_count))
    whole = step.pods is PodStep.RESTART_ALL and not last
    synced = step.pods is PodStep.SYNC
    kills = list(_kills(observed, reaction, step, last=last))
    needs = unsupported(observed.job)
    ready = synced and _may_have_pods(observed) and phase not in FINISHED and not needs
    expires_at = _expires_at(observed)
    counters = _counters(observed, reaction, step, counted=counted)
    changed = phase is not observed.phase
    return Plan(
        phase=phase,
        version=observed.version + (whole or step.resumes),
        retry_count=retry_count,
        counters=counters,
        reason=_reason(observed, phase, needs),
        message=_message(observed, reaction, phase, needs, changed=changed),
        kills=kills,
        slots=observed.missing if ready else (),
        group=GroupStep.KEEP if needs else _group_step(observed, phase, whole=whole),
        group_spec=group_spec(observed.job, {} if whole else observed.unseen),
        handled=reaction.handled,
        commands=reaction.commands,
        triggers=reaction.triggers,
        resets=[] if last else list(_resets(observed, reaction, step)),
        carry=step.resumes,
        cancel_timers=step.pods is PodStep.STOP or whole,
        notes=_notes(observed, reaction, phase),
        event=reaction.event,
        action=str(reaction.action),
        due_at=_earliest(reaction.due_at, observed.retry_at if synced else None, expires_at),
        again=changed or bool(kills) or reaction.more or (ready and bool(observed.missing)),
        expire=expires_at is not None and expires_at <= now,
    )


def _earliest(*instants: datetime | None) -> datetime | None:
    return min((at for at in instants if at is not None), default=None)


def _expires_at(observed: Observed) -> datetime | None:
    """When a finished job is to be deleted; never, unless it says so."""
    seconds = observed.job.spec.ttl_seconds_after_finished
    if seconds is None or observed.finished_at is None:
        return None
    return observed.finished_at + timedelta(seconds=seconds)


def _uses_a_retry(observed: Observed, reaction: Reaction) -> bool:
    """Whether a restart is counted: those that a user asks for and evictions are not.

    A restart because something went well is, or a job might go round for ever.
    """
    if reaction.cause is Cause.EVICTION:
        allowed = (observed.job.metadata.annotations or {}).get(MAX_EVICTIONS, "")
        # What is no number, or a huge one, allows any number of them.
        return bool(_NUMBER.fullmatch(allowed)) and observed.counters.evictions >= int(allowed)
    return reaction.cause is not Cause.COMMAND


def _counters(observed: Observed, reaction: Reaction, step: Step, *, counted: bool) -> Counters:
    restarts = step.pods in (PodStep.RESTART_ALL, PodStep.RESTART_SOME)
    evicted = restarts and reaction.cause is Cause.EVICTION and not counted
    return replace(
        observed.counters,
        evictions=observed.counters.evictions + evicted,
        resumes=observed.counters.resumes + step.resumes,
        generation=observed.job.metadata.generation or 1,
    )


def _may_have_pods(observed: Observed) -> bool:
    """Pods are made only when the scheduler has admitted the group."""
    group = observed.group
    return group is not None and group.phase is not PodGroupPhase.PENDING


def _group_step(observed: Observed, phase: JobPhase, *, whole: bool) -> GroupStep:
    if whole:
        return GroupStep.RENEW
    if phase in GROUPED:
        return GroupStep.ENSURE
    live = any(counts.live for counts in observed.counts.values())
    return GroupStep.KEEP if live or observed.group is None else GroupStep.REMOVE


def _kills(observed: Observed, reaction: Reaction, step: Step, *, last: bool) -> Iterator[Kill]:
    reason = str(reaction.action)
    if step.pods is PodStep.SYNC:
        beyond = _beyond(observed)
        if beyond is not None:
            yield beyond
        if any(counts.stale for counts in observed.counts.values()):
            # An evicted or refused pod may lie there for good; its index wants another.
            yield Kill("Replaced", ended=True, outcomes=REPLACED)
    elif step.pods is PodStep.STOP or last:
        if any(
            counts.planned + counts.pending + counts.running + counts.unknown
            for counts in observed.counts.values()
        ):
            stopped = str(observed.phase) if reaction.action is JobAction.SYNC_JOB else reason
            yield Kill(stopped)
    elif step.pods is PodStep.RESTART_ALL:
        yield Kill(reason, ended=True, supersede=True)
    else:
        for target in reaction.targets:
            kill = _restart_kill(observed, reaction.action, target)
            if kill is not None:
                yield kill


def _beyond(observed: Observed) -> Kill | None:
    """Pods that the spec has no place for any more."""
    wanted = {task.name: task.replicas for task in observed.job.spec.tasks or []}
    if all(counts.placed <= wanted.get(task, 0) for task, counts in observed.counts.items()):
        return None
    return Kill("ScaledDown", ended=True, beyond=wanted)


def _restart_kill(observed: Observed, action: JobAction, target: Target) -> Kill | None:
    """The pods that a partial restart is about, or None if there are none such."""
    task = policies.find_task(observed.job.spec, target.task)
    if task is None:
        return None
    indices = None
    if action is not JobAction.RESTART_TASK:
        if target.index is None or not 0 <= target.index < task.replicas:
            return None
        indices = Span(target.index, target.index)
        if action is JobAction.RESTART_PARTITION:
            size = task.partition_policy.partition_size if task.partition_policy else None
            if not size:
                return None
            first = target.index // size * size
            indices = Span(first, first + size - 1)
    return Kill(str(action), ended=True, supersede=True, task=task.name, indices=indices)


def _resets(observed: Observed, reaction: Reaction, step: Step) -> Iterator[Reset]:
    if step.pods is PodStep.RESTART_SOME:
        for target in reaction.targets:
            kill = _restart_kill(observed, reaction.action, target)
            if kill is not None and kill.task is not None:
                yield Reset(kill.task, kill.indices)


def _reason(observed: Observed, phase: JobPhase, needs: str) -> str:
    return _why(observed, phase, needs)[0]


def _message(
    observed: Observed, reaction: Reaction, phase: JobPhase, needs: str, *, changed: bool
) -> str:
    if changed and reaction.action is not JobAction.SYNC_JOB:
        return f"{reaction.action}: {reaction.because}"
    return _why(observed, phase, needs)[1]


def _why(observed: Observed, phase: JobPhase, needs: str) -> tuple[str, str]:
    """Reason and message of a job that waits; of others what they were."""
    state = observed.job.status.state
    if phase not in GROUPED:
        return state.reason or "", state.message or ""
    if needs:
        return "NotYetSupported", f"waits for what is not supported yet: {needs}"
    if observed.wait and _has_pods_to_make(observed):
        return observed.wait.get("reason", ""), observed.wait.get("message", "")
    if phase is not JobPhase.PENDING:
        return "", ""
    group = observed.group
    if group is None or group.phase is PodGroupPhase.PENDING:
        said = _condition(group.conditions) if group else None
        return said or ("NotInqueue", "waits for the scheduler to admit its pod group")
    said = _condition(group.conditions)
    return said or ("PodsNotStarted", "waits for its pods to start")


def _has_pods_to_make(observed: Observed) -> bool:
    return bool(observed.missing) or any(one.planned for one in observed.counts.values())


def _condition(conditions: Sequence[object]) -> tuple[str, str] | None:
    """What the scheduler says against the group now."""
    for condition in reversed(conditions):
        kind = getattr(condition, "type", None)
        status = getattr(condition, "status", None)
        if kind == "Unschedulable" and status == "True":
            reason = getattr(condition, "reason", "") or "Unschedulable"
            return reason, getattr(condition, "message", "") or ""
    return None


def _notes(observed: Observed, reaction: Reaction, phase: JobPhase) -> Sequence[Note]:
    notes = []
    if reaction.commands:
        notes.append(Note("CommandIssued", f"{reaction.action}: {reaction.because}"))
    elif reaction.action is not JobAction.SYNC_JOB:
        notes.append(Note("ExecuteAction", f"{reaction.action}, because of {reaction.because}"))
    if phase is not observed.phase:
        weight = Weight.WARNING if phase is JobPhase.FAILED else Weight.NORMAL
        notes.append(Note(str(phase), f"was {observed.phase}", weight))
    return notes
