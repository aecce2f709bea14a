"""The job of a step: its template's spec, patched, under names that tell whose it is."""

from __future__ import annotations

import hashlib
from typing import Final
from uuid import UUID, uuid5

from hekla.api.job import Job
from hekla.api.job_flow import Flow, JobFlow
from hekla.api.job_template import JobTemplate
from hekla.api.meta import ObjectMeta, OwnerReference
from hekla.domain import names, syntax
from hekla.domain.names import Key
from services.flow.core.patch import patched

_DIGEST: Final = 8
"""Characters that make a shortened label's value its own."""


def step_job(flow: JobFlow, step: Flow, template: JobTemplate) -> Job:
    """The job that is made for a step."""
    meta = flow.metadata
    made_by = {
        names.CREATED_BY_JOB_FLOW: f"{meta.namespace}.{meta.name}",
        names.CREATED_BY_JOB_TEMPLATE: f"{meta.namespace}.{step.name}",
    }
    return Job(
        metadata=ObjectMeta(
            name=names.flow_job_name(meta.name, step.name),
            namespace=meta.namespace,
            labels={key: label_value(value) for key, value in made_by.items()},
            annotations=made_by,
            owner_references=[
                OwnerReference(
                    api_version=names.FLOW_API_VERSION,
                    kind="JobFlow",
                    name=meta.name,
                    uid=meta.uid,
                    controller=True,
                    block_owner_deletion=True,
                )
            ],
        ),
        spec=patched(template.spec, step.patch.job_spec if step.patch is not None else None),
    )


def label_value(text: str) -> str:
    """``text``, shortened if it is too long for a label, so that it stays one of a kind."""
    if len(text) <= syntax.LABEL_LENGTH:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]
    kept = text[: syntax.LABEL_LENGTH - _DIGEST - 1].rstrip("-._")
    return f"{kept}-{digest}"


def flow_of(job: Job) -> UUID | None:
    """The uid of the flow that a job belongs to, if it belongs to one."""
    for owner in job.metadata.owner_references or ():
        if owner.kind == "JobFlow" and owner.api_version == names.FLOW_API_VERSION:
            try:
                return UUID(owner.uid)
            except (TypeError, ValueError):
                return None
    return None


def forgotten(key: Key, uid: UUID) -> Job:
    """A job that is gone, and of which nobody knows any more than this."""
    return Job(metadata=ObjectMeta(name=key.name, namespace=key.namespace, uid=str(uid)))


def request_id(flow: UUID, step: str, attempt: int, what: str = "create") -> str:
    """Names a call about a step's job, the same whoever makes it and however often."""
    return str(uuid5(flow, f"{step}/{attempt}/{what}"))
