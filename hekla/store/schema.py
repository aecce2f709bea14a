"""The tables of what users know: jobs, queues, pods; those of flows are in ``flow_schema``.

Every rule that one row can break is a constraint here. Who writes what is in
``docs/architecture.md``; the tables by which state moves are in ``own_schema``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKeyConstraint,
    Identity,
    Index,
    PrimaryKeyConstraint,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from hekla.domain.phases import FINISHED, JobPhase, PodGroupPhase, QueueState
from hekla.store.tables import (
    EMPTY_OBJECT,
    NOW,
    Base,
    JsonObject,
    listed,
)


class JobRow(Base):
    """A job that exists. Removal moves it to ``job_history``."""

    __tablename__ = "job"
    __table_args__ = (
        UniqueConstraint("namespace", "name"),
        CheckConstraint(listed("phase", JobPhase), name="phase"),
        CheckConstraint("origin in ('rpc', 'kube')", name="origin"),
        CheckConstraint(
            "(finished_at is not null) = (phase in ("
            + ", ".join(sorted(f"'{phase}'" for phase in FINISHED))
            + "))",
            name="finished_at",
        ),
        Index("job_created_at_idx", "created_at", "uid"),
        Index("job_queue_idx", "queue"),
        Index("job_custom_idx", "cr_uid", postgresql_where=text("cr_uid is not null")),
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
    owner: Mapped[JsonObject | None]
    spec: Mapped[JsonObject]
    status: Mapped[JsonObject] = mapped_column(server_default=EMPTY_OBJECT)
    counters: Mapped[JsonObject] = mapped_column(server_default=EMPTY_OBJECT)
    """What the controller counts and the API does not show: evictions, resumes, …"""
    wait: Mapped[JsonObject | None]
    """What the last act was refused, as reason and message; empty when nothing was."""
    queue: Mapped[str]
    phase: Mapped[str] = mapped_column(server_default=JobPhase.PENDING.value)
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    deleting_at: Mapped[datetime | None]


class AttemptRow(Base):
    """One life of one pod of a job: planned here before the pod is made."""

    __tablename__ = "attempt"
    __table_args__ = (
        CheckConstraint("index >= 0", name="index"),
        CheckConstraint("run >= 0", name="run"),
        CheckConstraint(
            "outcome in ('Succeeded', 'Failed', 'Evicted', 'Rejected', 'Lost', 'Removed')",
            name="outcome",
        ),
        ForeignKeyConstraint(["job_uid"], ["job.uid"]),
        # At most one live pod for each index.
        Index(
            "attempt_live_key",
            "job_uid",
            "task",
            "index",
            unique=True,
            postgresql_where=text("outcome is null"),
        ),
        Index(
            "attempt_current_key",
            "job_uid",
            "task",
            "index",
            unique=True,
            postgresql_where=text("current"),
        ),
        Index(
            "attempt_unhandled_idx",
            "job_uid",
            postgresql_where=text("outcome is not null and not handled"),
        ),
        Index(
            "attempt_to_act_idx",
            "job_uid",
            postgresql_where=text(
                "gone_at is null and (pod_uid is null or doomed is not null)"
            ),
        ),
        Index("attempt_present_idx", "job_uid", postgresql_where=text("gone_at is null")),
        Index("attempt_job_idx", "job_uid", "created_at", "uid"),
    )

    uid: Mapped[UUID] = mapped_column(primary_key=True)
    job_uid: Mapped[UUID]
    task: Mapped[str]
    index: Mapped[int]
    run: Mapped[int]
    job_version: Mapped[int]
    """``status.version`` of the job when the attempt was planned."""
    group_uid: Mapped[UUID | None]
    namespace: Mapped[str]
    pod_name: Mapped[str]
    pod_uid: Mapped[str | None]
    """Known once the pod is seen or its creation answered: the attempt is confirmed."""
    phase: Mapped[str] = mapped_column(server_default="Pending")
    ready: Mapped[bool] = mapped_column(server_default=text("false"))
    terminating: Mapped[bool] = mapped_column(server_default=text("false"))
    restarts: Mapped[int] = mapped_column(server_default="0")
    exit_codes: Mapped[JsonObject] = mapped_column(server_default=EMPTY_OBJECT)
    reason: Mapped[str] = mapped_column(server_default="")
    node: Mapped[str] = mapped_column(server_default="")
    resource_version: Mapped[int] = mapped_column(BigInteger, server_default="0")
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    outcome: Mapped[str | None]
    handled: Mapped[bool] = mapped_column(server_default=text("false"))
    """Whether policies have seen the outcome."""
    doomed: Mapped[str | None]
    """Why the controller removes the pod; such an end raises no event."""
    superseded: Mapped[bool] = mapped_column(server_default=text("false"))
    """Whether a restart opened a new run for the index."""
    current: Mapped[bool] = mapped_column(server_default=text("true"))
    """Whether it is the newest attempt of its index."""
    gone_at: Mapped[datetime | None]
    """When the pod was found to be no longer there, or never to have been."""


class TriggerRow(Base):
    """An event of a job that policies react to once; see ``triggers.py``."""

    __tablename__ = "trigger"
    __table_args__ = (
        PrimaryKeyConstraint("job_uid", "version", "scope", "event"),
        CheckConstraint("state in ('new', 'armed', 'fired', 'cancelled')", name="state"),
        CheckConstraint("(due_at is not null) = (state = 'armed')", name="due_at"),
        ForeignKeyConstraint(["job_uid"], ["job.uid"]),
    )

    job_uid: Mapped[UUID]
    version: Mapped[int]
    scope: Mapped[str]
    """The attempt's uid, the task's name, or empty for the job."""
    event: Mapped[str]
    state: Mapped[str]
    due_at: Mapped[datetime | None]
    action: Mapped[str]
    task: Mapped[str] = mapped_column(server_default="")
    index: Mapped[int | None]


class CommandRow(Base):
    """What a user asks of a job. Rows are appended and taken, never merged."""

    __tablename__ = "command"
    __table_args__ = (ForeignKeyConstraint(["job_uid"], ["job.uid"]),)

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    job_uid: Mapped[UUID] = mapped_column(index=True)
    action: Mapped[str]
    task: Mapped[str] = mapped_column(server_default="")
    index: Mapped[int | None]
    reason: Mapped[str] = mapped_column(server_default="")
    message: Mapped[str] = mapped_column(server_default="")
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)


class JobEventRow(Base):
    """What happened to a job, for people; at most 200 a job."""

    __tablename__ = "job_event"
    __table_args__ = (
        ForeignKeyConstraint(["job_uid"], ["job.uid"]),
        CheckConstraint("type in ('Normal', 'Warning')", name="type"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    job_uid: Mapped[UUID] = mapped_column(index=True)
    at: Mapped[datetime] = mapped_column(server_default=NOW)
    type: Mapped[str]
    reason: Mapped[str]
    message: Mapped[str]


class PodGroupRow(Base):
    """A gang. ``scheduling`` is the scheduler's word and is shown as ``status``."""

    __tablename__ = "pod_group"
    __table_args__ = (
        UniqueConstraint("namespace", "name"),
        CheckConstraint(listed("phase", PodGroupPhase), name="phase"),
        ForeignKeyConstraint(["job_uid"], ["job.uid"]),
        Index("pod_group_queue_idx", "queue"),
        Index("pod_group_custom_idx", "cr_uid", postgresql_where=text("cr_uid is not null")),
        Index("pod_group_created_at_idx", "created_at", "uid"),
    )

    uid: Mapped[UUID] = mapped_column(primary_key=True)
    namespace: Mapped[str]
    name: Mapped[str]
    job_uid: Mapped[UUID | None] = mapped_column(index=True)
    generation: Mapped[int] = mapped_column(server_default="1")
    version: Mapped[int] = mapped_column(BigInteger, server_default="1")
    origin: Mapped[str] = mapped_column(server_default="rpc")
    cr_uid: Mapped[UUID | None]
    labels: Mapped[JsonObject] = mapped_column(server_default=EMPTY_OBJECT)
    annotations: Mapped[JsonObject] = mapped_column(server_default=EMPTY_OBJECT)
    spec: Mapped[JsonObject]
    queue: Mapped[str]
    phase: Mapped[str] = mapped_column(server_default=PodGroupPhase.PENDING.value)
    scheduling: Mapped[JsonObject] = mapped_column(server_default=EMPTY_OBJECT)
    scheduling_version: Mapped[int] = mapped_column(BigInteger, server_default="0")
    """Lease epoch of the scheduler that wrote ``scheduling``; an older one is refused."""
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    """When its job came, so that a restart keeps the place in line."""


class QueueRow(Base):
    """A queue. Its counts are an aggregate of pod groups, never written here."""

    __tablename__ = "queue"
    __table_args__ = (CheckConstraint(listed("state", QueueState), name="state"),)

    uid: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    generation: Mapped[int] = mapped_column(server_default="1")
    version: Mapped[int] = mapped_column(BigInteger, server_default="1")
    origin: Mapped[str] = mapped_column(server_default="rpc")
    cr_uid: Mapped[UUID | None]
    labels: Mapped[JsonObject] = mapped_column(server_default=EMPTY_OBJECT)
    annotations: Mapped[JsonObject] = mapped_column(server_default=EMPTY_OBJECT)
    spec: Mapped[JsonObject]
    parent: Mapped[str] = mapped_column(server_default="")
    state: Mapped[str] = mapped_column(server_default=QueueState.OPEN.value)
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)


class JobHistoryRow(Base):
    """A job that was removed, partitioned by the time it was."""

    __tablename__ = "job_history"
    __table_args__ = (
        PrimaryKeyConstraint("removed_at", "uid"),
        Index("job_history_uid_idx", "uid"),
        Index("job_history_name_idx", "namespace", "name", "removed_at"),
        {"postgresql_partition_by": "RANGE (removed_at)"},
    )

    removed_at: Mapped[datetime]
    uid: Mapped[UUID]
    namespace: Mapped[str]
    name: Mapped[str]
    object: Mapped[JsonObject]
    """The job as it was last seen, in Kubernetes' shape."""
    events: Mapped[Any] = mapped_column(JSONB)


class AttemptHistoryRow(Base):
    """An attempt of a job that was removed, partitioned like its job."""

    __tablename__ = "attempt_history"
    __table_args__ = (
        PrimaryKeyConstraint("removed_at", "uid"),
        Index("attempt_history_job_idx", "job_uid", "created_at", "uid"),
        Index("attempt_history_uid_idx", "uid"),
        {"postgresql_partition_by": "RANGE (removed_at)"},
    )

    removed_at: Mapped[datetime]
    uid: Mapped[UUID]
    job_uid: Mapped[UUID]
    created_at: Mapped[datetime]
    row: Mapped[JsonObject]


class BindRow(Base):
    """A pod the scheduler placed; recorded before Kubernetes is told."""

    __tablename__ = "bind"
    __table_args__ = (Index("bind_open_idx", "epoch", postgresql_where=text("state = 'open'")),)

    pod_uid: Mapped[str] = mapped_column(primary_key=True)
    namespace: Mapped[str]
    pod_name: Mapped[str]
    group_uid: Mapped[str]
    node: Mapped[str]
    request: Mapped[JsonObject] = mapped_column(server_default=EMPTY_OBJECT)
    epoch: Mapped[int] = mapped_column(BigInteger)
    state: Mapped[str] = mapped_column(server_default="open")
    """``open`` until Kubernetes answered; then ``bound`` or ``failed``."""
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
