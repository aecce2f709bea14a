"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from hekla.store.tables import Xid8

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make everything; the feed's ring and the history's first partition are made by hand."""
    op.execute(sa.schema.CreateSequence(sa.Sequence("change_seq")))
    op.create_table(
        "attempt_history",
        sa.Column("removed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("uid", sa.Uuid(), nullable=False),
        sa.Column("job_uid", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("row", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("removed_at", "uid", name=op.f("attempt_history_pkey")),
        postgresql_partition_by="RANGE (removed_at)",
    )
    op.create_index(
        "attempt_history_job_idx",
        "attempt_history",
        ["job_uid", "created_at", "uid"],
        unique=False,
    )
    op.create_index("attempt_history_uid_idx", "attempt_history", ["uid"], unique=False)
    op.create_table(
        "bind",
        sa.Column("pod_uid", sa.String(), nullable=False),
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("pod_name", sa.String(), nullable=False),
        sa.Column("group_uid", sa.String(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column(
            "request",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(), server_default="open", nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("pod_uid", name=op.f("bind_pkey")),
    )
    op.create_index(
        "bind_open_idx",
        "bind",
        ["epoch"],
        unique=False,
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_table(
        "change",
        sa.Column("slot", sa.SmallInteger(), nullable=False),
        sa.Column(
            "seq",
            sa.BigInteger(),
            server_default=sa.text("nextval('change_seq')"),
            nullable=False,
        ),
        sa.Column(
            "xid", Xid8(), server_default=sa.text("pg_current_xact_id()"), nullable=False
        ),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("uid", sa.String(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("last", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.PrimaryKeyConstraint("slot", "seq", name=op.f("change_pkey")),
        postgresql_partition_by="LIST (slot)",
    )
    op.create_index("change_xid_idx", "change", ["xid"], unique=False)
    op.create_table(
        "job",
        sa.Column("uid", sa.Uuid(), nullable=False),
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("generation", sa.Integer(), server_default="1", nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("origin", sa.String(), server_default="rpc", nullable=False),
        sa.Column("cr_uid", sa.Uuid(), nullable=True),
        sa.Column(
            "labels",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "annotations",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("owner", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("spec", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "status",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "counters",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("wait", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("queue", sa.String(), nullable=False),
        sa.Column("phase", sa.String(), server_default="Pending", nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("deleting_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "(finished_at is not null) = (phase in ('Completed', 'Failed', 'Terminated'))",
            name=op.f("job_finished_at_check"),
        ),
        sa.CheckConstraint("origin in ('rpc', 'kube')", name=op.f("job_origin_check")),
        sa.CheckConstraint(
            "phase in ('Pending', 'Running', 'Restarting', 'Aborting', 'Aborted', 'Completing', 'Completed', 'Terminating', 'Terminated', 'Failed')",
            name=op.f("job_phase_check"),
        ),
        sa.PrimaryKeyConstraint("uid", name=op.f("job_pkey")),
        sa.UniqueConstraint("namespace", "name", name=op.f("job_namespace_key")),
    )
    op.create_index("job_created_at_idx", "job", ["created_at", "uid"], unique=False)
    op.create_index("job_queue_idx", "job", ["queue"], unique=False)
    op.create_table(
        "job_history",
        sa.Column("removed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("uid", sa.Uuid(), nullable=False),
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("object", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("events", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("removed_at", "uid", name=op.f("job_history_pkey")),
        postgresql_partition_by="RANGE (removed_at)",
    )
    op.create_index(
        "job_history_name_idx", "job_history", ["namespace", "name", "removed_at"], unique=False
    )
    op.create_index("job_history_uid_idx", "job_history", ["uid"], unique=False)
    op.create_table(
        "lease",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("released", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("lease_pkey")),
        sa.UniqueConstraint("name", "epoch", name=op.f("lease_name_key")),
    )
    op.create_table(
        "queue",
        sa.Column("uid", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("generation", sa.Integer(), server_default="1", nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("origin", sa.String(), server_default="rpc", nullable=False),
        sa.Column("cr_uid", sa.Uuid(), nullable=True),
        sa.Column(
            "labels",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "annotations",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("spec", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("parent", sa.String(), server_default="", nullable=False),
        sa.Column("state", sa.String(), server_default="Open", nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "state in ('Open', 'Closed', 'Closing', 'Unknown')", name=op.f("queue_state_check")
        ),
        sa.PrimaryKeyConstraint("uid", name=op.f("queue_pkey")),
        sa.UniqueConstraint("name", name=op.f("queue_name_key")),
    )
    op.create_table(
        "request",
        sa.Column("caller", sa.String(), nullable=False),
        sa.Column("method", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("body_hash", sa.LargeBinary(), nullable=False),
        sa.Column("uids", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "warnings",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.Column("incarnation", sa.Uuid(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("caller", "method", "id", name=op.f("request_pkey")),
    )
    op.create_index(op.f("request_created_at_idx"), "request", ["created_at"], unique=False)
    op.create_table(
        "store",
        sa.Column("one", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column(
            "incarnation",
            sa.Uuid(),
            server_default=sa.text("gen_random_uuid()"),
            nullable=False,
        ),
        sa.Column("system", sa.String(), server_default="", nullable=False),
        sa.Column("feed_horizon", Xid8(), server_default="0", nullable=False),
        sa.CheckConstraint("one", name=op.f("store_one_check")),
        sa.PrimaryKeyConstraint("one", name=op.f("store_pkey")),
    )
    op.create_table(
        "work",
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("uid", sa.String(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("not_before", sa.DateTime(timezone=True), nullable=True),
        sa.Column("wake_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("claim_token", sa.Uuid(), nullable=True),
        sa.Column("claimed_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("urgent", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.PrimaryKeyConstraint("kind", "uid", name=op.f("work_pkey")),
        postgresql_with={
            "autovacuum_vacuum_scale_factor": "0.0",
            "autovacuum_vacuum_threshold": "1000",
            "autovacuum_vacuum_cost_delay": "0",
            "fillfactor": "70",
        },
    )
    op.create_index(
        "work_due_idx",
        "work",
        ["kind", sa.literal_column("greatest(due_at, not_before)")],
        unique=False,
    )
    op.create_table(
        "attempt",
        sa.Column("uid", sa.Uuid(), nullable=False),
        sa.Column("job_uid", sa.Uuid(), nullable=False),
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("job_version", sa.Integer(), nullable=False),
        sa.Column("group_uid", sa.Uuid(), nullable=True),
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("pod_name", sa.String(), nullable=False),
        sa.Column("pod_uid", sa.String(), nullable=True),
        sa.Column("phase", sa.String(), server_default="Pending", nullable=False),
        sa.Column("ready", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("terminating", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("restarts", sa.Integer(), server_default="0", nullable=False),
        sa.Column(
            "exit_codes",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("reason", sa.String(), server_default="", nullable=False),
        sa.Column("node", sa.String(), server_default="", nullable=False),
        sa.Column("resource_version", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.Column("handled", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("doomed", sa.String(), nullable=True),
        sa.Column("superseded", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("current", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("gone_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "outcome in ('Succeeded', 'Failed', 'Evicted', 'Rejected', 'Lost', 'Removed')",
            name=op.f("attempt_outcome_check"),
        ),
        sa.CheckConstraint("index >= 0", name=op.f("attempt_index_check")),
        sa.CheckConstraint("run >= 0", name=op.f("attempt_run_check")),
        sa.ForeignKeyConstraint(["job_uid"], ["job.uid"], name=op.f("attempt_job_uid_fkey")),
        sa.PrimaryKeyConstraint("uid", name=op.f("attempt_pkey")),
    )
    op.create_index(
        "attempt_current_key",
        "attempt",
        ["job_uid", "task", "index"],
        unique=True,
        postgresql_where=sa.text("current"),
    )
    op.create_index(
        "attempt_job_idx", "attempt", ["job_uid", "created_at", "uid"], unique=False
    )
    op.create_index(
        "attempt_live_key",
        "attempt",
        ["job_uid", "task", "index"],
        unique=True,
        postgresql_where=sa.text("outcome is null"),
    )
    op.create_index(
        "attempt_present_idx",
        "attempt",
        ["job_uid"],
        unique=False,
        postgresql_where=sa.text("gone_at is null"),
    )
    op.create_index(
        "attempt_to_act_idx",
        "attempt",
        ["job_uid"],
        unique=False,
        postgresql_where=sa.text("gone_at is null and (pod_uid is null or doomed is not null)"),
    )
    op.create_index(
        "attempt_unhandled_idx",
        "attempt",
        ["job_uid"],
        unique=False,
        postgresql_where=sa.text("outcome is not null and not handled"),
    )
    op.create_table(
        "command",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("job_uid", sa.Uuid(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("task", sa.String(), server_default="", nullable=False),
        sa.Column("index", sa.Integer(), nullable=True),
        sa.Column("reason", sa.String(), server_default="", nullable=False),
        sa.Column("message", sa.String(), server_default="", nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(["job_uid"], ["job.uid"], name=op.f("command_job_uid_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("command_pkey")),
    )
    op.create_index(op.f("command_job_uid_idx"), "command", ["job_uid"], unique=False)
    op.create_table(
        "job_event",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("job_uid", sa.Uuid(), nullable=False),
        sa.Column(
            "at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        sa.CheckConstraint("type in ('Normal', 'Warning')", name=op.f("job_event_type_check")),
        sa.ForeignKeyConstraint(["job_uid"], ["job.uid"], name=op.f("job_event_job_uid_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("job_event_pkey")),
    )
    op.create_index(op.f("job_event_job_uid_idx"), "job_event", ["job_uid"], unique=False)
    op.create_table(
        "pod_group",
        sa.Column("uid", sa.Uuid(), nullable=False),
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("job_uid", sa.Uuid(), nullable=True),
        sa.Column("generation", sa.Integer(), server_default="1", nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("origin", sa.String(), server_default="rpc", nullable=False),
        sa.Column("cr_uid", sa.Uuid(), nullable=True),
        sa.Column(
            "labels",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "annotations",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("spec", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("queue", sa.String(), nullable=False),
        sa.Column("phase", sa.String(), server_default="Pending", nullable=False),
        sa.Column(
            "scheduling",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("scheduling_version", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "phase in ('Pending', 'Inqueue', 'Running', 'Unknown', 'Completed')",
            name=op.f("pod_group_phase_check"),
        ),
        sa.ForeignKeyConstraint(["job_uid"], ["job.uid"], name=op.f("pod_group_job_uid_fkey")),
        sa.PrimaryKeyConstraint("uid", name=op.f("pod_group_pkey")),
        sa.UniqueConstraint("namespace", "name", name=op.f("pod_group_namespace_key")),
    )
    op.create_index(
        "pod_group_created_at_idx", "pod_group", ["created_at", "uid"], unique=False
    )
    op.create_index(op.f("pod_group_job_uid_idx"), "pod_group", ["job_uid"], unique=False)
    op.create_index("pod_group_queue_idx", "pod_group", ["queue"], unique=False)
    op.create_table(
        "trigger",
        sa.Column("job_uid", sa.Uuid(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("task", sa.String(), server_default="", nullable=False),
        sa.Column("index", sa.Integer(), nullable=True),
        sa.CheckConstraint(
            "(due_at is not null) = (state = 'armed')", name=op.f("trigger_due_at_check")
        ),
        sa.CheckConstraint(
            "state in ('new', 'armed', 'fired', 'cancelled')", name=op.f("trigger_state_check")
        ),
        sa.ForeignKeyConstraint(["job_uid"], ["job.uid"], name=op.f("trigger_job_uid_fkey")),
        sa.PrimaryKeyConstraint(
            "job_uid", "version", "scope", "event", name=op.f("trigger_pkey")
        ),
    )
    op.create_table(
        "job_flow",
        sa.Column("uid", sa.Uuid(), nullable=False),
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("generation", sa.Integer(), server_default="1", nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("origin", sa.String(), server_default="rpc", nullable=False),
        sa.Column("cr_uid", sa.Uuid(), nullable=True),
        sa.Column(
            "labels",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "annotations",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("spec", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "status",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("phase", sa.String(), server_default="Pending", nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("deleting_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("origin in ('rpc', 'kube')", name=op.f("job_flow_origin_check")),
        sa.CheckConstraint(
            "phase in ('Pending', 'Running', 'Succeed', 'Failed', 'Terminating')",
            name=op.f("job_flow_phase_check"),
        ),
        sa.CheckConstraint(
            "phase not in ('Succeed', 'Failed') or finished_at is not null",
            name=op.f("job_flow_finished_at_check"),
        ),
        sa.PrimaryKeyConstraint("uid", name=op.f("job_flow_pkey")),
        sa.UniqueConstraint("namespace", "name", name=op.f("job_flow_namespace_key")),
    )
    op.create_index("job_flow_created_at_idx", "job_flow", ["created_at", "uid"], unique=False)
    op.create_table(
        "flow_step",
        sa.Column("flow_uid", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("job", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("job_uid", sa.Uuid(), nullable=True),
        sa.Column("job_version", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("seen", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("refused", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("gone_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("attempt >= 0", name=op.f("flow_step_attempt_check")),
        sa.CheckConstraint(
            "gone_at is null or job_uid is not null", name=op.f("flow_step_gone_at_check")
        ),
        sa.ForeignKeyConstraint(
            ["flow_uid"], ["job_flow.uid"], name=op.f("flow_step_flow_uid_fkey")
        ),
        sa.PrimaryKeyConstraint("flow_uid", "name", name=op.f("flow_step_pkey")),
    )
    op.create_index("flow_step_name_idx", "flow_step", ["name"], unique=False)
    op.create_table(
        "job_template",
        sa.Column("uid", sa.Uuid(), nullable=False),
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("generation", sa.Integer(), server_default="1", nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("origin", sa.String(), server_default="rpc", nullable=False),
        sa.Column("cr_uid", sa.Uuid(), nullable=True),
        sa.Column(
            "labels",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "annotations",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("spec", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "status",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint("origin in ('rpc', 'kube')", name=op.f("job_template_origin_check")),
        sa.PrimaryKeyConstraint("uid", name=op.f("job_template_pkey")),
        sa.UniqueConstraint("namespace", "name", name=op.f("job_template_namespace_key")),
    )
    op.create_index(
        "job_template_created_at_idx", "job_template", ["created_at", "uid"], unique=False
    )
    op.create_table(
        "job_flow_history",
        sa.Column("removed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("uid", sa.Uuid(), nullable=False),
        sa.Column("namespace", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("object", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("removed_at", "uid", name=op.f("job_flow_history_pkey")),
        postgresql_partition_by="RANGE (removed_at)",
    )
    op.create_index("job_flow_history_uid_idx", "job_flow_history", ["uid"], unique=False)
    for slot in range(4):
        op.execute(f"create table change_{slot} partition of change for values in ({slot})")
    for table in ("job_history", "attempt_history", "job_flow_history"):
        op.execute(f"create table {table}_default partition of {table} default")
    op.execute("insert into store default values")
