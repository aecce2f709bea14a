"""Steps of flows, and what is known of their jobs.

A job is written down here before the controller is asked to make it. What is seen of it later
is guarded by its version, so that any number of observers may tell of it, in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import false, func, select, update

from hekla.domain import names
from hekla.domain.names import flow_job_name
from hekla.store.database import Session
from hekla.store.flow_schema import FlowStepRow, JobFlowHistoryRow, JobFlowRow


@dataclass(frozen=True, slots=True)
class StoredStep:
    """A step as it is stored."""

    name: str
    attempt: int
    job: Mapping[str, Any] | None
    """The job that is to be made."""
    job_uid: UUID | None
    job_version: int
    seen: Mapping[str, Any] | None
    refused: Mapping[str, str] | None
    gone: bool


@dataclass(frozen=True, slots=True)
class StepJob:
    """The job of a step, by where it is found."""

    flow_uid: UUID
    step: str
    namespace: str
    job_name: str
    job_uid: UUID


def of_flow(session: Session, flow: UUID) -> Sequence[StoredStep]:
    """A flow's steps in the order of its spec."""
    statement = (
        select(FlowStepRow)
        .where(FlowStepRow.flow_uid == flow)
        .order_by(FlowStepRow.position)
        .execution_options(populate_existing=True)
    )
    return [_to_step(row) for row in session.scalars(statement)]


def plan(session: Session, flow: UUID, step: str, job: Mapping[str, Any]) -> None:
    """Write down the job that is to be made for a step."""
    _change(session, flow, step, job=dict(job))


def unplan(session: Session, flow: UUID, step: str, refused: Mapping[str, str] | None) -> None:
    """Forget a job that was not made, and note why if it was refused."""
    _change(session, flow, step, job=None, refused=refused)


def put_off(session: Session, flow: UUID, step: str, refused: Mapping[str, str]) -> None:
    """Note why it is not known whether a step's job was made."""
    _change(session, flow, step, refused=refused)


def _change(session: Session, flow: UUID, step: str, **values: object) -> None:
    session.execute(
        update(FlowStepRow)
        .where(
            FlowStepRow.flow_uid == flow,
            FlowStepRow.name == step,
            FlowStepRow.job_uid.is_(None),
        )
        .values(**values)
    )


def locked(session: Session, flow: UUID, job_name: str) -> StoredStep | None:
    """The step whose job has that name, locked until the transaction ends."""
    statement = (
        select(FlowStepRow)
        .join(JobFlowRow, JobFlowRow.uid == FlowStepRow.flow_uid)
        .where(
            FlowStepRow.flow_uid == flow,
            func.concat(JobFlowRow.name, "-", FlowStepRow.name) == job_name,
        )
        .with_for_update(of=FlowStepRow)
        .execution_options(populate_existing=True)
    )
    row = session.scalars(statement).one_or_none()
    return None if row is None else _to_step(row)


def see(
    session: Session,
    flow: UUID,
    step: StoredStep,
    *,
    job: UUID,
    version: int,
    seen: Mapping[str, Any],
    gone: bool,
) -> bool:
    """Note what was seen of a step's job; return whether that is news.

    The step is locked. Another job than the one that is known is none of its.
    """
    stale = step.gone or (step.job_uid is not None and version <= step.job_version)
    if (step.job_uid not in (None, job)) or (stale and not (gone and not step.gone)):
        return False
    session.execute(
        update(FlowStepRow)
        .where(FlowStepRow.flow_uid == flow, FlowStepRow.name == step.name)
        .values(
            job=None,
            refused=None,
            job_uid=job,
            job_version=max(version, step.job_version),
            seen=dict(seen),
            gone_at=func.clock_timestamp() if gone else None,
        )
    )
    return True


def present(session: Session) -> Sequence[StepJob]:
    """Every step whose job is thought to exist."""
    statement = (
        select(FlowStepRow, JobFlowRow.namespace, JobFlowRow.name)
        .join(JobFlowRow, JobFlowRow.uid == FlowStepRow.flow_uid)
        .where(FlowStepRow.job_uid.is_not(None), FlowStepRow.gone_at.is_(None))
    )
    return [
        StepJob(
            step.flow_uid, step.name, namespace, flow_job_name(name, step.name), step.job_uid
        )
        for step, namespace, name in session.execute(statement)
        if step.job_uid is not None
    ]


def is_orphan(session: Session, flow: UUID) -> bool:
    """Whether a flow was removed, so that a job of it must not be."""
    if session.get(JobFlowRow, flow) is not None:
        return False
    stays = JobFlowHistoryRow.object["metadata"]["annotations"].has_key(names.JOBS_STAY)
    statement = select(JobFlowHistoryRow.uid).where(
        JobFlowHistoryRow.uid == flow, func.coalesce(stays, false()).is_(false())
    )
    return session.scalars(statement.limit(1)).first() is not None


def waiting_for_template(session: Session, namespace: str, template: str) -> Sequence[UUID]:
    """Flows with a step of that template whose job has not been made."""
    statement = (
        select(FlowStepRow.flow_uid)
        .join(JobFlowRow, JobFlowRow.uid == FlowStepRow.flow_uid)
        .where(
            FlowStepRow.name == template,
            FlowStepRow.job_uid.is_(None),
            JobFlowRow.namespace == namespace,
        )
    )
    return session.scalars(statement).all()


def jobs_of_template(session: Session, namespace: str, template: str) -> Sequence[str]:
    """Names of the jobs that exist of a template's steps, in alphabetical order."""
    statement = (
        select(JobFlowRow.name)
        .join(FlowStepRow, JobFlowRow.uid == FlowStepRow.flow_uid)
        .where(
            FlowStepRow.name == template,
            FlowStepRow.job_uid.is_not(None),
            FlowStepRow.gone_at.is_(None),
            JobFlowRow.namespace == namespace,
        )
        .order_by(JobFlowRow.name)
    )
    return [flow_job_name(flow, template) for flow in session.scalars(statement)]


def _to_step(row: FlowStepRow) -> StoredStep:
    return StoredStep(
        name=row.name,
        attempt=row.attempt,
        job=row.job,
        job_uid=row.job_uid,
        job_version=row.job_version,
        seen=row.seen,
        refused=row.refused,
        gone=row.gone_at is not None,
    )
