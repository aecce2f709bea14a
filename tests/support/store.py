"""Rows of the store, made by naming only what matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import text

from hekla.api.pod_group import PodGroupSpec
from hekla.domain.attempt import Kill, PodSeen, Slot
from hekla.domain.names import OUTCOME_FINALIZER, Key, pod_group_name
from hekla.store import attempt_pages, attempts, jobs, observations, pod_groups, work
from hekla.store.attempts import Confirmed
from hekla.store.database import Database, Session
from hekla.store.jobs import StoredJob
from hekla.store.pod_groups import StoredGroup
from hekla.store.schema import AttemptRow
from hekla.store.work import Claim
from tests.support.objects import make_job
from tests.support.waiting import wait_until

MINUTE = timedelta(minutes=1)


def add_job(database: Database, name: str = "j", **spec: Any) -> StoredJob:
    """A stored job that nobody has looked at."""
    with database.transaction() as session:
        [stored] = jobs.insert_many(session, [(uuid4(), make_job(name, **spec))])
    return stored


def read_job(database: Database, uid: UUID) -> StoredJob:
    """The job as it is now."""
    with database.transaction() as session:
        return jobs.get_by_uid(session, uid)


def add_group(database: Database, job: StoredJob, **spec: Any) -> StoredGroup:
    """The job's pod group."""
    key = Key(job.key.namespace, pod_group_name(job.key.name, str(job.uid)))
    with database.transaction() as session:
        return pod_groups.make(
            session, key, PodGroupSpec(**spec), job=job.uid, labels={}, annotations={}
        )


def plan(
    database: Database, job: StoredJob, *slots: tuple[str, int], run: int = 0, version: int = 0
) -> list[AttemptRow]:
    """Attempts of these tasks and indices, and no pods yet; in the order given."""
    with database.transaction() as session:
        wanted = [Slot(task, index, run) for task, index in slots]
        attempts.plan(session, job, wanted, version=version, group=uuid4())
    found = {(row.task, row.index): row for row in rows_of(database, job.uid) if row.current}
    return [found[slot] for slot in slots]


def confirm(database: Database, *rows: AttemptRow) -> list[AttemptRow]:
    """The same attempts, their pods made: each pod's uid is its attempt's, after ``pod-``."""
    with database.transaction() as session:
        attempts.confirm(session, [Confirmed(row.uid, f"pod-{row.uid}") for row in rows])
    return [read_attempt(database, row.uid) for row in rows]


def running(database: Database, job: StoredJob, *slots: tuple[str, int]) -> list[AttemptRow]:
    """Attempts whose pods run."""
    return [after(database, sight(row, phase="Running")) for row in plan(database, job, *slots)]


def doom(database: Database, job: StoredJob, **kill: Any) -> int:
    """Mark the job's pods for removal."""
    with database.transaction() as session:
        return attempts.doom(session, job.uid, Kill(kill.pop("reason", "Test"), **kill))


def rows_of(database: Database, job: UUID) -> Sequence[AttemptRow]:
    """A job's attempts, oldest first."""
    with database.transaction() as session:
        return attempt_pages.page(session, job, limit=10_000)


def read_attempt(database: Database, uid: UUID) -> AttemptRow:
    """The attempt as it is now."""
    with database.transaction() as session:
        row = session.get(AttemptRow, uid, populate_existing=True)
        assert row is not None
        return row


def sight(row: AttemptRow, **seen: Any) -> PodSeen:
    """The attempt's pod as an observer sees it: pending, and newer than what is known."""
    values: dict[str, Any] = {
        "namespace": row.namespace,
        "name": row.pod_name,
        "pod_uid": row.pod_uid or f"pod-{row.uid}",
        "job_uid": row.job_uid,
        "attempt_uid": row.uid,
        "resource_version": row.resource_version + 1,
        "phase": "Pending",
        "ready": False,
        "terminating": False,
        "disrupted": False,
        "rejected": False,
        "restarts": 0,
        "exit_codes": {},
        "reason": "",
        "node": "",
        "started_at": None,
        "finished_at": None,
        "finalizers": (OUTCOME_FINALIZER,),
        "cut": False,
        "gone": False,
    }
    return PodSeen(**values | seen)


def after(database: Database, pod: PodSeen) -> AttemptRow:
    """The attempt once its pod was seen so."""
    with database.transaction() as session:
        observations.observe(session, [pod])
    return read_attempt(database, pod.attempt_uid)


def claim(
    database: Database, kind: str = jobs.KIND, *, limit: int = 10, lease: timedelta = MINUTE
) -> Sequence[Claim]:
    """Claims on what is due."""
    with database.transaction() as session:
        return work.claim(session, [kind], limit=limit, lease=lease)


def forget_work(database: Database) -> None:
    """Nothing wants a look any more."""
    with database.transaction() as session:
        session.execute(text("truncate work"))


def due(database: Database) -> set[str]:
    """Uids of what wants a look now, claimed or not."""
    with database.transaction() as session:
        return set(
            session.scalars(
                text(
                    "select uid from work"
                    " where greatest(due_at, not_before) <= clock_timestamp()"
                )
            )
        )


def wait_for_waiting(database: Database, *, count: int = 1) -> None:
    """Wait until so many transactions of this database wait for a lock."""

    def waiting() -> bool:
        with database.transaction() as session:
            return bool(value(session, _WAITING) >= count)

    wait_until(waiting, what=f"{count} transactions to wait for a lock")


_WAITING = (
    "select count(*) from pg_stat_activity"
    " where datname = current_database() and wait_event_type = 'Lock'"
)


def value(session: Session, sql: str, values: Mapping[str, Any] | None = None) -> Any:
    """What a statement answers, if it is one value."""
    return session.execute(text(sql), values or {}).scalar_one()
