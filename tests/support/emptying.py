"""A database that tests share, emptied before each: to make one takes far longer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from sqlalchemy import text

from hekla.store import history
from hekla.store.database import Database

FILLED: Final = (
    *("attempt", "trigger", "command", "job_event", "pod_group", "job", "queue"),
    *("flow_step", "job_flow", "job_template", "job_flow_history"),
    *("job_history", "attempt_history", "work", "change", "lease", "request", "bind"),
)
"""Every table but the store's own row; who is referred to comes last."""


def empty(database: Database) -> None:
    """Leave it as the migrations made it."""
    with database.transaction() as session:
        session.connection().exec_driver_sql(
            ";".join(f"delete from {table}" for table in FILLED)
        )
        history.drop_partitions(session, datetime(2999, 1, 1, tzinfo=UTC))
        session.execute(
            text(
                "update store set incarnation = gen_random_uuid(), system = '',"
                " feed_horizon = '0'"
            )
        )
