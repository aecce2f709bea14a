"""Writes what was seen of a step's job, whoever saw it: a pass that asked, or the observer."""

from __future__ import annotations

from uuid import UUID

from hekla.api.job import Job
from hekla.store import flow_steps
from hekla.store.database import Session
from hekla.store.objects import to_json
from services.flow.core.sighting import sighting
from services.flow.reading import sighted


def see(session: Session, flow: UUID, job: Job, *, gone: bool) -> str | None:
    """Note a job in the step it is of; return the step's name if that is news.

    A job that is nobody's step is no news.
    """
    step = flow_steps.locked(session, flow, job.metadata.name)
    if step is None:
        return None
    seen = sighting(job, sighted(step))
    news = flow_steps.see(
        session,
        flow,
        step,
        job=UUID(job.metadata.uid),
        version=int(job.metadata.resource_version or 0),
        seen=to_json(seen),
        gone=gone,
    )
    return step.name if news else None
