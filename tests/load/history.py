"""What Postgres remembers of a run: its jobs, attempts and binds, removed ones too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import dict_row
from sqlalchemy import make_url


@dataclass(frozen=True, slots=True)
class JobPast:
    """A job."""

    uid: str
    name: str
    version: int
    phases: Sequence[str]
    """Those its conditions name, in order, the present one last."""
    created: float
    running: float | None
    """When it was first found running."""
    finished: float | None
    min_available: int
    removed: bool
    """It is in the history."""


@dataclass(frozen=True, slots=True)
class AttemptPast:
    """An attempt of a pod."""

    uid: str
    job: str
    task: str
    index: int
    run: int
    group: str
    pod: str
    planned: float
    ended: float | None
    """When its containers were."""
    outcome: str
    superseded: bool


class BindPast(NamedTuple):
    """A pod's placement."""

    pod: str
    group: str
    node: str
    request: dict[str, int]
    state: str
    at: float


@dataclass(frozen=True, slots=True)
class History:
    """A run, as Postgres tells it."""

    jobs: Sequence[JobPast]
    attempts: Sequence[AttemptPast]
    binds: Sequence[BindPast]
    nodes: dict[str, dict[str, int]] = field(default_factory=dict)
    """What each node has, where that is known."""


_JOBS = """
    select uid::text, name, version, status, spec, phase, created_at, started_at, finished_at,
           false as removed
      from job where name like %(names)s
    union all
    select uid::text, name, (object->'metadata'->>'resourceVersion')::bigint,
           object->'status', object->'spec', object->'status'->'state'->>'phase',
           (object->'metadata'->>'creationTimestamp')::timestamptz, null, null, true
      from job_history where name like %(names)s
"""
_ATTEMPTS = """
    select to_jsonb(attempt) as row from attempt join job on job.uid = attempt.job_uid
     where job.name like %(names)s
    union all
    select row from attempt_history
     where job_uid in (select uid from job_history where name like %(names)s)
"""
_BINDS = """
    select pod_uid, group_uid, node, request, state, created_at from bind
     where pod_name like %(names)s
"""


def read(database_url: str, prefix: str) -> History:
    """The history of the jobs whose names begin so."""
    url = make_url(database_url).set(drivername="postgresql")
    names = {"names": f"{prefix}-%"}
    with psycopg.connect(url.render_as_string(hide_password=False)) as connection:
        # One moment, however long reading takes.
        connection.execute("set transaction isolation level repeatable read, read only")
        with connection.cursor(row_factory=dict_row) as cursor:
            jobs = [_job(row) for row in cursor.execute(_JOBS, names)]
            attempts = [_attempt(row["row"]) for row in cursor.execute(_ATTEMPTS, names)]
            binds = [_bind(row) for row in cursor.execute(_BINDS, names)]
    return History(jobs, attempts, binds)


def _job(row: dict[str, Any]) -> JobPast:
    status = row["status"] or {}
    phases = [one["status"] for one in status.get("conditions") or ()]
    if not phases or phases[-1] != row["phase"]:
        phases.append(row["phase"])
    return JobPast(
        uid=row["uid"],
        name=row["name"],
        version=row["version"],
        phases=phases,
        created=row["created_at"].timestamp(),
        running=_instant(row["started_at"]),
        finished=_instant(row["finished_at"]),
        min_available=row["spec"].get("minAvailable") or 0,
        removed=row["removed"],
    )


def _attempt(row: dict[str, Any]) -> AttemptPast:
    ended = row["finished_at"]
    return AttemptPast(
        uid=row["uid"],
        job=row["job_uid"],
        task=row["task"],
        index=row["index"],
        run=row["run"],
        group=row["group_uid"] or "",
        pod=row["pod_uid"] or "",
        planned=datetime.fromisoformat(row["created_at"]).timestamp(),
        ended=None if ended is None else datetime.fromisoformat(ended).timestamp(),
        outcome=row["outcome"] or "",
        superseded=row["superseded"],
    )


def _bind(row: dict[str, Any]) -> BindPast:
    return BindPast(
        row["pod_uid"],
        row["group_uid"],
        row["node"],
        row["request"],
        row["state"],
        row["created_at"].timestamp(),
    )


def _instant(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()
