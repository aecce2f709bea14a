"""Jobs: rows stay inside, jobs of the API go in and out.

A job's ``version`` moves with every change anybody may see and is what an update names; its
``generation`` moves with the spec alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, delete, func, or_, select, text, tuple_, update

from hekla.api.job import Job, JobStatus
from hekla.domain import names, timestamps
from hekla.domain.errors import AlreadyExistsError, ConflictError, NotFoundError
from hekla.domain.names import Key
from hekla.domain.phases import JobPhase
from hekla.store import batch, feed, work
from hekla.store.batch import Question
from hekla.store.database import Session
from hekla.store.objects import Document, Place, metadata, to_json, to_text
from hekla.store.schema import JobRow

KIND: Final = "job"


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job, and what of it only the controller sees."""

    uid: UUID
    job: Job
    version: int
    counters: Mapping[str, int]
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    deleting_at: datetime | None
    wait: Mapping[str, str] | None
    """Why the last act could not be done: ``reason`` and ``message``."""
    origin: str = "rpc"
    """``kube`` if it follows a custom resource."""
    custom_uid: UUID | None = None
    """The uid of its custom resource, if it has one."""

    @property
    def key(self) -> Key:
        """Its namespace and name."""
        return Key(self.job.metadata.namespace, self.job.metadata.name)


class Period(NamedTuple):
    """From ``first`` on, and before ``before``; each bound may be missing."""

    first: datetime | None = None
    before: datetime | None = None


ALWAYS: Final = Period()

# Cheaper than a savepoint to go back to when a name is taken.
_INSERT = text("""
    insert into job (uid, namespace, name, labels, annotations, spec, queue, owner)
    select uid, namespace, name, labels, annotations, spec, queue, owner
      from jsonb_to_recordset(cast(:rows as jsonb))
           as j(uid uuid, namespace text, name text, labels jsonb, annotations jsonb,
                spec jsonb, queue text, owner jsonb)
    on conflict (namespace, name) do nothing
    returning *
""")


def insert_many(
    session: Session,
    jobs: Sequence[tuple[UUID, Job]],
    *,
    beside: Sequence[Question[Any]] = (),
    due: bool = True,
) -> Sequence[StoredJob]:
    """Store admitted jobs, each with a uid of its own, and have them looked at if ``due``.

    Returns them in the order given. Questions ``beside`` it are asked first, in the same
    round trip.

    Raises:
        AlreadyExistsError: a job of such a name exists, or two of ``jobs`` have one name;
            nothing is stored.
    """
    rows = to_text([new_row(uid, job) for uid, job in jobs])
    inserting = Question(_INSERT, {"rows": rows}, lambda found: {row.uid: row for row in found})
    batch.ask(session, *beside, inserting)
    made = inserting.answer
    if len(made) < len(jobs):
        why = _taken(session, [job for uid, job in jobs if uid not in made])
        session.execute(delete(JobRow).where(JobRow.uid.in_(made)))
        raise AlreadyExistsError(why)
    stored = [made[uid] for uid, _ in jobs]
    feed.record(
        session, *[feed.Change(KIND, str(row.uid), row.version, feed.ADDED) for row in stored]
    )
    if due:
        work.wake(session, KIND, *[str(row.uid) for row in stored])
    return [_to_stored(row) for row in stored]


def new_row(uid: UUID, job: Job) -> dict[str, Any]:
    """What a new job's row holds."""
    meta = job.metadata
    return {
        "uid": str(uid),
        "namespace": meta.namespace,
        "name": meta.name,
        "labels": meta.labels or {},
        "annotations": meta.annotations or {},
        "spec": to_json(job.spec),
        "queue": job.spec.queue,
        "owner": to_json(meta.owner_references[0]) if meta.owner_references else None,
    }


def _taken(session: Session, jobs: Sequence[Job]) -> str:
    names_ = [(job.metadata.namespace, job.metadata.name) for job in jobs]
    statement = select(JobRow.namespace, JobRow.name, JobRow.deleting_at).where(
        tuple_(JobRow.namespace, JobRow.name).in_(names_)
    )
    row = session.execute(statement).first()
    if row is None:  # two of these have one name, or the other one was removed just now
        twice = next((name for name in names_ if names_.count(name) > 1), names_[0])
        return f"job {Key(*twice)} exists already"
    leaving = "; it is being deleted" if row.deleting_at else ""
    return f"job {Key(row.namespace, row.name)} exists already{leaving}"


def get(session: Session, key: Key) -> StoredJob:
    """The job of that name.

    Raises:
        NotFoundError: there is none.
    """
    row = session.scalars(
        select(JobRow).where(JobRow.namespace == key.namespace, JobRow.name == key.name)
    ).one_or_none()
    if row is None:
        raise NotFoundError(f"job {key} does not exist")
    return _to_stored(row)


def get_by_uid(session: Session, uid: UUID, *, to_remove: bool = False) -> StoredJob:
    """The job of that uid, locked until the transaction ends if it is ``to_remove``.

    Raises:
        NotFoundError: it is gone, or never was.
    """
    row = session.get(
        JobRow, uid, populate_existing=True, with_for_update=True if to_remove else None
    )
    if row is None:
        raise NotFoundError(f"job {uid} does not exist")
    return _to_stored(row)


_LOCKED = (
    select(JobRow.__table__)
    .where(JobRow.uid == bindparam("uid"))
    .with_for_update(key_share=True)
)


def locked(uid: UUID) -> Question[StoredJob]:
    """The job of that uid, to be asked together with other things.

    Nobody else changes it until the transaction ends.
    """

    def read(rows: Sequence[Any]) -> StoredJob:
        if not rows:
            raise NotFoundError(f"job {uid} does not exist")
        return _to_stored(rows[0])

    return Question(_LOCKED, {"uid": uid}, read)


def documents(session: Session, uids: Sequence[str] | None) -> Mapping[str, Document]:
    """Jobs by uid: those named that exist, or all. For the feed's reader."""
    loading = batch.rows_of(_ALL, {})
    if uids is not None:
        loading = batch.rows_of(_SOME, {"uids": [UUID(uid) for uid in uids]})
    return {str(row.uid): _document(row) for row in batch.answer(session, loading)}


_ALL = text("select * from job")
_SOME = text("select * from job where uid = any(:uids)")


def page(
    session: Session,
    *,
    namespace: str = "",
    queue: str = "",
    phases: Collection[str] = (),
    created: Period = ALWAYS,
    finished: Period = ALWAYS,
    after: Place | None = None,
    limit: int,
) -> Sequence[StoredJob]:
    """Jobs from the oldest to the newest, at most ``limit`` after ``after``.

    A bound of ``finished`` leaves out the jobs that have not ended.
    """
    statement = select(JobRow).order_by(JobRow.created_at, JobRow.uid).limit(limit)
    if namespace:
        statement = statement.where(JobRow.namespace == namespace)
    if queue:
        statement = statement.where(JobRow.queue == queue)
    if phases:
        statement = statement.where(JobRow.phase.in_(phases))
    for column, period in ((JobRow.created_at, created), (JobRow.finished_at, finished)):
        if period.first is not None:
            statement = statement.where(column >= period.first)
        if period.before is not None:
            statement = statement.where(column < period.before)
    if after is not None:
        statement = statement.where(tuple_(JobRow.created_at, JobRow.uid) > tuple(after))
    return [_to_stored(row) for row in session.scalars(statement)]


_RECORD = text("""
    update job
       set status = cast(:status as jsonb), counters = cast(:counters as jsonb),
           phase = :phase, started_at = :started_at, finished_at = :finished_at,
           version = version + 1
     where uid = :uid and version = :version
    returning version
""")


def record(
    session: Session,
    stored: StoredJob,
    *,
    status: JobStatus,
    counters: Mapping[str, int],
    started_at: datetime | None,
    finished_at: datetime | None,
    locked: bool = False,
) -> int:
    """Store what a pass decided, unless the job changed since it was read.

    Nothing is written when nothing changed. Returns the job's version. A job that this
    transaction has ``locked`` cannot have changed, so nobody waits for the answer.

    Raises:
        ConflictError: it did change; read again.
    """
    phase = status.state.phase or JobPhase.PENDING
    values: dict[str, Any] = {
        "status": to_text(to_json(status)),
        "counters": to_text(dict(counters)),
        "phase": phase,
        "started_at": started_at,
        "finished_at": finished_at,
    }
    if (
        status == stored.job.status
        and counters == stored.counters
        and (started_at, finished_at) == (stored.started_at, stored.finished_at)
    ):
        if not locked:
            _lock(session, stored)
        return stored.version
    values |= {"uid": stored.uid, "version": stored.version}
    if locked:
        batch.later(session, _RECORD, values)
        version = stored.version + 1
    else:
        rows = batch.answer(session, batch.rows_of(_RECORD, values))
        if not rows:
            raise ConflictError(f"job {stored.key} changed since it was read")
        version = int(rows[0].version)
    feed.record(session, feed.Change(KIND, str(stored.uid), version, feed.MODIFIED))
    return version


def _lock(session: Session, stored: StoredJob) -> None:
    found = session.scalars(
        select(JobRow.version).where(JobRow.uid == stored.uid).with_for_update()
    ).one_or_none()
    if found != stored.version:
        raise ConflictError(f"job {stored.key} changed since it was read")


def set_wait(session: Session, uid: UUID, wait: Mapping[str, str] | None) -> None:
    """Note why the last act could not be done, or that it could.

    The next pass shows it; this alone is no change that anybody may see.
    """
    session.execute(
        update(JobRow)
        .where(JobRow.uid == uid, JobRow.wait.is_distinct_from(wait))
        .values(wait=wait)
    )


def mark_deleting(session: Session, uid: UUID) -> StoredJob:
    """Have a job removed; it stays until its pods are gone. Repeating it changes nothing.

    Raises:
        NotFoundError: it is gone.
    """
    row = session.scalars(
        update(JobRow)
        .where(JobRow.uid == uid, JobRow.deleting_at.is_(None))
        .values(deleting_at=func.clock_timestamp(), version=JobRow.version + 1)
        .returning(JobRow)
    ).one_or_none()
    if row is None:
        return get_by_uid(session, uid)
    feed.record(session, feed.Change(KIND, str(uid), row.version, feed.MODIFIED))
    work.wake(session, KIND, str(uid), urgent=True)
    return _to_stored(row)


def update_spec(
    session: Session, stored: StoredJob, job: Job, *, generation: int | None = None
) -> StoredJob:
    """Store an admitted new spec, labels and annotations, and have the job looked at.

    Its generation is the one given, or moves if the spec does.

    Raises:
        ConflictError: the job changed since it was read.
    """
    new = {
        "spec": to_json(job.spec),
        "queue": job.spec.queue,
        "labels": job.metadata.labels or {},
        "annotations": job.metadata.annotations or {},
    }
    spec_changed = new["spec"] != to_json(stored.job.spec)
    row = session.scalars(
        update(JobRow)
        .where(JobRow.uid == stored.uid, JobRow.version == stored.version)
        .values(
            **new,
            version=JobRow.version + 1,
            generation=(
                JobRow.generation + (1 if spec_changed else 0)
                if generation is None
                else generation
            ),
        )
        .returning(JobRow)
    ).one_or_none()
    if row is None:
        raise ConflictError(f"job {stored.key} changed since it was read; try again")
    feed.record(session, feed.Change(KIND, str(stored.uid), row.version, feed.MODIFIED))
    work.wake(session, KIND, str(stored.uid), urgent=True)
    return _to_stored(row)


def exists_live_in_queue(session: Session, queue: str) -> bool:
    """Whether a job that has not finished names the queue."""
    unfinished = or_(JobRow.finished_at.is_(None), JobRow.deleting_at.is_not(None))
    statement = select(JobRow.uid).where(JobRow.queue == queue, unfinished).limit(1)
    return session.scalars(statement).first() is not None


def _to_stored(row: JobRow) -> StoredJob:
    return StoredJob(
        uid=row.uid,
        job=_to_job(row),
        version=row.version,
        counters=row.counters,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        deleting_at=row.deleting_at,
        wait=row.wait,
        origin=row.origin,
        custom_uid=row.cr_uid,
    )


def _to_job(row: JobRow) -> Job:
    return Job.model_validate(_document(row))


def _document(row: JobRow) -> Document:
    """A job as the API shows it, not looked at any closer."""
    status = row.status or {
        "state": {
            "phase": row.phase,
            "lastTransitionTime": timestamps.to_text(row.created_at),
        }
    }
    return {
        "apiVersion": names.JOB_API_VERSION,
        "kind": "Job",
        "metadata": metadata(
            uid=row.uid,
            namespace=row.namespace,
            name=row.name,
            version=row.version,
            generation=row.generation,
            labels=row.labels,
            annotations=row.annotations,
            created_at=row.created_at,
            deleting_at=row.deleting_at,
            owners=[row.owner] if row.owner else (),
        ),
        "spec": row.spec,
        "status": status,
    }
