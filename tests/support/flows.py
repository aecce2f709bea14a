"""Flows as a pass sees them, made by naming only what matters."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

from hekla.api.job import Job, JobCondition, JobState, JobStatus
from hekla.api.job_flow import FlowState, JobFlow, JobFlowStatus
from hekla.api.meta import ObjectMeta
from hekla.domain import timestamps
from hekla.domain.names import flow_job_name
from hekla.domain.phases import FlowPhase
from services.flow.core.observed import Observed, Step, Wait
from services.flow.core.sighting import Sighting, sighting
from tests.support.objects import make_flow, make_template

UID = UUID(int=7)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def at(seconds: int) -> str:
    return timestamps.to_text(NOW + timedelta(seconds=seconds))


def seen_job(name: str, phase: str, **status: Any) -> Job:
    """A job that has just come into a phase."""
    status.setdefault("conditions", [JobCondition(status=phase, last_transition_time=at(0))])
    return Job(
        metadata=ObjectMeta(name=name, uid=str(uuid5(UID, name)), creation_timestamp=at(0)),
        status=JobStatus(state=JobState(phase=phase, last_transition_time=at(0)), **status),
    )


def seen(name: str, phase: str, **status: Any) -> Sighting:
    return sighting(seen_job(name, phase, **status), None)


def observe(
    flow: JobFlow,
    phases: Mapping[str, str] | None = None,
    *,
    phase: FlowPhase = FlowPhase.PENDING,
    gone: tuple[str, ...] = (),
    planned: tuple[str, ...] = (),
    missing: tuple[str, ...] = (),
    refused: Mapping[str, Wait] | None = None,
    deleting: bool = False,
) -> Observed:
    """A flow whose steps' jobs are in these phases; all templates but ``missing`` exist."""
    known = phases or {}
    meta = flow.metadata.model_copy(update={"uid": str(UID)})
    status = JobFlowStatus(state=FlowState(phase=phase, last_transition_time=at(0)))
    steps = []
    for spec in flow.spec.flows or ():
        name = flow_job_name(meta.name, spec.name)
        made = spec.name in known
        steps.append(
            Step(
                spec=spec,
                planned=spec.name in planned,
                job_uid=uuid5(UID, name) if made else None,
                seen=seen(name, known[spec.name]) if made else None,
                gone=spec.name in gone,
                refused=(refused or {}).get(spec.name),
            )
        )
    templates = {
        step.name: make_template(step.name)
        for step in flow.spec.flows or ()
        if step.name not in missing
    }
    return Observed(
        flow=flow.model_copy(update={"metadata": meta, "status": status}),
        steps=steps,
        templates=templates,
        deleting=deleting,
    )


DIAMOND = make_flow(a="", b="a", c="a", d="b c")
