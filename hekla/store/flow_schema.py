"""The tables of flows, which the flow service writes."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKeyConstraint,
    Index,
    PrimaryKeyConstraint,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from hekla.domain.phases import FlowPhase
from hekla.store.tables import EMPTY_OBJECT, NOW, Base, JsonObject, listed


class JobFlowRow(Base):
    """A flow that exists. Removal moves it to ``job_flow_history``."""

    __tablename__ = "job_flow"
    __table_args__ = (
        UniqueConstraint("namespace", "name"),
        CheckConstraint(listed("phase", FlowPhase), name="phase"),
        CheckConstraint("origin in ('rpc', 'kube')", name="origin"),
        CheckConstraint(
            "phase not in ('Succeed', 'Failed') or finished_at is not null",
            name="finished_at",
        ),
        Index("job_flow_created_at_idx", "created_at", "uid"),
    )

    uid: Mapped[UUID] = mapped_column(primary_key=True)
    namespace: Mapped[str]
    name: Mapped[str]
    generation: Mapped[int] = mapped_column(server_default="1")
    version: Mapped[int] = mapped_column(BigInteger, server_default="1")
    origin: Mapped[str] = mapped_column(server_default="rpc")
    cr_uid: Mapped[UUID | None]
    labels: Mapped[JsonObject] = mapped_column(server_default=EMPTY_OBJECT)
    annotations: Mapped[JsonObject] = mapped_column(server_default=EMPTY_OBJECT)
    spec: Mapped[JsonObject]
    status: Mapped[JsonObject] = mapped_column(server_default=EMPTY_OBJECT)
    phase: Mapped[str] = mapped_column(server_default=FlowPhase.PENDING.value)
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    finished_at: Mapped[datetime | None]
    deleting_at: Mapped[datetime | None]


class FlowStepRow(Base):
    """A step of a flow, and what is known of its job."""

    __tablename__ = "flow_step"
    __table_args__ = (
        PrimaryKeyConstraint("flow_uid", "name"),
        CheckConstraint("attempt >= 0", name="attempt"),
        CheckConstraint("gone_at is null or job_uid is not null", name="gone_at"),
        ForeignKeyConstraint(["flow_uid"], ["job_flow.uid"]),
        Index("flow_step_name_idx", "name"),
    )

    flow_uid: Mapped[UUID]
    name: Mapped[str]
    position: Mapped[int]
    attempt: Mapped[int] = mapped_column(server_default="0")
    """Which try it is, from 0: the controller makes one job for each."""
    job: Mapped[JsonObject | None]
    """The job that is to be made: written before the controller is asked, cleared after."""
    job_uid: Mapped[UUID | None]
    job_version: Mapped[int] = mapped_column(BigInteger, server_default="0")
    """Of the job when it was last seen; what is older is no news."""
    seen: Mapped[JsonObject | None]
    """What was last seen of the job; kept when it is gone."""
    refused: Mapped[JsonObject | None]
    """Why the job could not be made when that was last tried: reason and message."""
    gone_at: Mapped[datetime | None]
    """When the job was found to be no longer there."""


class JobTemplateRow(Base):
    """The spec of jobs that flows make."""

    __tablename__ = "job_template"
    __table_args__ = (
        UniqueConstraint("namespace", "name"),
        CheckConstraint("origin in ('rpc', 'kube')", name="origin"),
        Index("job_template_created_at_idx", "created_at", "uid"),
    )

    uid: Mapped[UUID] = mapped_column(primary_key=True)
    namespace: Mapped[str]
    name: Mapped[str]
    generation: Mapped[int] = mapped_column(server_default="1")
    version: Mapped[int] = mapped_column(BigInteger, server_default="1")
    origin: Mapped[str] = mapped_column(server_default="rpc")
    cr_uid: Mapped[UUID | None]
    labels: Mapped[JsonObject] = mapped_column(server_default=EMPTY_OBJECT)
    annotations: Mapped[JsonObject] = mapped_column(server_default=EMPTY_OBJECT)
    spec: Mapped[JsonObject]
    status: Mapped[JsonObject] = mapped_column(server_default=EMPTY_OBJECT)
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)


class JobFlowHistoryRow(Base):
    """A flow that was removed, partitioned by the time it was."""

    __tablename__ = "job_flow_history"
    __table_args__ = (
        PrimaryKeyConstraint("removed_at", "uid"),
        Index("job_flow_history_uid_idx", "uid"),
        {"postgresql_partition_by": "RANGE (removed_at)"},
    )

    removed_at: Mapped[datetime]
    uid: Mapped[UUID]
    namespace: Mapped[str]
    name: Mapped[str]
    object: Mapped[JsonObject]
    """The flow as it was last seen, in Kubernetes' shape, its steps in its status."""
