"""Reads what a pass wants to know of a flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from hekla.api.job_flow import Flow
from hekla.store import flow_steps, job_flows, job_templates
from hekla.store.database import Session
from hekla.store.flow_steps import StoredStep
from hekla.store.job_flows import StoredFlow
from services.flow.core.observed import Observed, Step, Wait
from services.flow.core.sighting import Sighting


@dataclass(frozen=True, slots=True)
class Reading:
    """A flow that is locked, its steps, and what is decided by."""

    stored: StoredFlow
    steps: Sequence[StoredStep]
    observed: Observed


def read(session: Session, uid: UUID, *, mirrored: bool) -> Reading:
    """The flow, locked, and all that deciding about it takes.

    ``mirrored`` tells whether flows have custom resources.

    Raises:
        NotFoundError: the flow is gone.
    """
    stored = job_flows.get_by_uid(session, uid, to_change=True)
    steps = flow_steps.of_flow(session, uid)
    specs = {spec.name: spec for spec in stored.flow.spec.flows or ()}
    wanted = [step.name for step in steps if step.job_uid is None and step.job is None]
    observed = Observed(
        flow=stored.flow,
        steps=[_to_step(specs.get(step.name) or Flow(name=step.name), step) for step in steps],
        templates=job_templates.named(session, stored.key.namespace, wanted) if wanted else {},
        deleting=stored.deleting_at is not None,
        held=mirrored and stored.cr_uid is not None and stored.deleting_at is not None,
        finished_at=stored.finished_at,
    )
    return Reading(stored, steps, observed)


def sighted(step: StoredStep) -> Sighting | None:
    """What was last seen of a step's job."""
    return None if step.seen is None else Sighting.model_validate(step.seen)


def _to_step(spec: Flow, step: StoredStep) -> Step:
    refused = step.refused
    return Step(
        spec=spec,
        planned=step.job is not None,
        job_uid=step.job_uid,
        seen=sighted(step),
        gone=step.gone,
        refused=Wait(refused["reason"], refused["message"]) if refused is not None else None,
    )
