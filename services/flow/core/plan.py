"""One pass over a flow, decided: a pure function of what was observed and the time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from hekla.api.job import Job
from hekla.api.job_flow import DELETE, FlowState, JobFlowStatus
from hekla.domain import timestamps
from hekla.domain.phases import FlowPhase, JobPhase
from services.flow.core.jobs import step_job
from services.flow.core.observed import Observed, Plan, Step, Wait
from services.flow.core.tally import Bucket, bucket, tally
from services.flow.core.transitions import TRANSITIONS, FlowAction, JobStep, settled

ENDED = (FlowPhase.SUCCEED, FlowPhase.FAILED)


def plan(observed: Observed, now: datetime) -> Plan:
    """Decide what to do about a flow. No I/O, no clock."""
    action = FlowAction.DELETE if observed.deleting else FlowAction.SYNC
    phase = settled(observed.phase, action, tally(observed.steps))
    do = TRANSITIONS[phase][action].jobs
    if do is JobStep.RETAIN:
        retained = observed.flow.spec.job_retain_policy != DELETE
        do = JobStep.LEAVE if retained else JobStep.REMOVE
    create: dict[str, Job] = {}
    waits: list[Wait] = []
    if do is JobStep.START:
        for step in _due(observed.steps):
            made = _start(observed, step)
            if isinstance(made, Wait):
                waits.append(made)
            else:
                create[step.name] = made
    waits += _refusals(observed, create)
    finished_at = observed.finished_at
    if phase in ENDED and finished_at is None:
        finished_at = now
    removing = do is JobStep.REMOVE
    return Plan(
        status=status(observed, phase, waits, now),
        finished_at=finished_at,
        create=create,
        making=do is JobStep.START,
        remove=[step.name for step in observed.steps if removing and _is_to_go(step)],
        retire=observed.deleting
        and not observed.held
        and not any(map(_may_be_there, observed.steps)),
    )


def _is_to_go(step: Step) -> bool:
    """Whether its job is to be asked to go: it exists, and nobody asked yet."""
    asked = step.seen is not None and step.seen.deleting
    return step.job_uid is not None and not step.gone and not asked


def _may_be_there(step: Step) -> bool:
    return (step.planned or step.job_uid is not None) and not step.gone


def _due(steps: Sequence[Step]) -> Iterator[Step]:
    """Steps whose targets are all completed, and that have no job yet, nor had one."""
    completed = {step.name for step in steps if step.completed}
    for step in steps:
        begun = step.job_uid is not None or step.planned or step.seen is not None
        if not begun and completed.issuperset(step.targets):
            yield step


def _start(observed: Observed, step: Step) -> Job | Wait:
    """The job of a step that is due, or what it waits for."""
    if step.spec.depends_on is not None and step.spec.depends_on.probe is not None:
        message = f"step {step.name} has a probe, which is not supported yet"
        return Wait("NotYetSupported", message)
    template = observed.templates.get(step.name)
    if template is None:
        named = f"{observed.flow.metadata.namespace}/{step.name}"
        message = f"step {step.name}: JobTemplate {named} does not exist"
        return Wait("JobTemplateNotFound", message)
    return step_job(observed.flow, step.spec, template)


def _refusals(observed: Observed, create: Mapping[str, Job]) -> Iterator[Wait]:
    """Why jobs that are wanted are not there."""
    for step in observed.steps:
        wanted = step.planned or step.name in create
        if wanted and step.job_uid is None and step.refused is not None:
            yield Wait(step.refused.reason, f"step {step.name}: {step.refused.message}")


def status(
    observed: Observed, phase: FlowPhase, waits: Sequence[Wait], now: datetime
) -> JobFlowStatus:
    """The status to store. Equal input gives an equal status, so nothing is written twice."""
    lists: dict[Bucket, list[str]] = {one: [] for one in Bucket}
    for step in observed.steps:
        place = bucket(step)
        if place is not None:
            lists[place].append(observed.job_name(step.name))
    seen = [step for step in observed.steps if step.seen is not None]
    before = observed.flow.status.state
    moved = before.phase != phase or before.last_transition_time is None
    why = _why(observed, phase, waits)
    return JobFlowStatus(
        pending_jobs=lists[Bucket.PENDING] or None,
        running_jobs=lists[Bucket.RUNNING] or None,
        failed_jobs=lists[Bucket.FAILED] or None,
        completed_jobs=lists[Bucket.COMPLETED] or None,
        terminated_jobs=lists[Bucket.TERMINATED] or None,
        un_know_jobs=lists[Bucket.UNKNOWN] or None,
        job_status_list=[step.seen.status for step in seen if step.seen is not None] or None,
        conditions={
            observed.job_name(step.name): step.seen.condition
            for step in seen
            if step.seen is not None
        }
        or None,
        state=FlowState(
            phase=phase,
            reason=why.reason if why is not None else None,
            message=why.message if why is not None else None,
            last_transition_time=timestamps.to_text(now)
            if moved
            else before.last_transition_time,
        ),
    )


def _why(observed: Observed, phase: FlowPhase, waits: Sequence[Wait]) -> Wait | None:
    """What the flow waits for, or why it failed."""
    reasons = list(_ends(observed)) if phase is FlowPhase.FAILED else []
    if phase in (FlowPhase.PENDING, FlowPhase.RUNNING):
        reasons = [*waits, *_stopped(observed)]
    if not reasons:
        return None
    return Wait(reasons[0].reason, "; ".join(one.message for one in reasons))


def _ends(observed: Observed) -> Iterator[Wait]:
    for step in observed.steps:
        if step.lost:
            message = f"step {step.name}: its job was deleted before it had ended"
            yield Wait("StepDeleted", message)
        elif bucket(step) in (Bucket.FAILED, Bucket.TERMINATED):
            yield Wait("StepFailed", f"step {step.name}: its job is {step.phase}")


def _stopped(observed: Observed) -> Iterator[Wait]:
    for step in observed.steps:
        if step.phase in (JobPhase.ABORTING, JobPhase.ABORTED) and not step.gone:
            message = f"step {step.name}: its job is {step.phase}; resume or delete it"
            yield Wait("StepAborted", message)
