"""Pod groups: the spec is the controller's, ``scheduling`` is the scheduler's word."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid4

from sqlalchemy import bindparam, func, select, text, tuple_, update
from sqlalchemy.dialects.postgresql import insert as insert_unless

from hekla.api.pod_group import PodGroup, PodGroupSpec, PodGroupStatus
from hekla.domain import names
from hekla.domain.errors import AlreadyExistsError, NotFoundError
from hekla.domain.names import Key
from hekla.domain.phases import LET_IN, PodGroupPhase
from hekla.store import batch, feed, jobs, work
from hekla.store.batch import Question
from hekla.store.database import Session
from hekla.store.jobs import StoredJob
from hekla.store.objects import Document, Place, metadata, to_json, to_text
from hekla.store.schema import PodGroupRow

KIND: Final = "pod_group"


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """A pod group, and the job it belongs to."""

    uid: UUID
    group: PodGroup
    version: int
    job_uid: UUID | None
    phase: PodGroupPhase
    created_at: datetime


def make(
    session: Session,
    key: Key,
    spec: PodGroupSpec,
    *,
    job: UUID | None,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    created_at: datetime | None = None,
) -> StoredGroup:
    """Store a new group, in the phase Pending.

    Raises:
        AlreadyExistsError: a group of that name exists.
    """
    values: dict[str, Any] = {
        "uid": uuid4(),
        "namespace": key.namespace,
        "name": key.name,
        "job_uid": job,
        "labels": dict(labels),
        "annotations": dict(annotations),
        "spec": to_json(spec),
        "queue": spec.queue,
    }
    if created_at is not None:
        values["created_at"] = created_at
    unless_taken = (
        insert_unless(PodGroupRow)
        .values(values)
        .on_conflict_do_nothing(index_elements=["namespace", "name"])
        .returning(PodGroupRow)
    )
    row = session.scalars(unless_taken).one_or_none()
    if row is None:
        raise AlreadyExistsError(f"pod group {key} exists already")
    feed.record(session, feed.Change(KIND, str(row.uid), row.version, feed.ADDED))
    return _to_stored(row)


_MAKE_OF_JOB = text("""
    insert into pod_group (uid, namespace, name, job_uid, labels, annotations, spec, queue,
                           created_at)
    values (:uid, :namespace, :name, :job, cast(:labels as jsonb), cast(:annotations as jsonb),
            cast(:spec as jsonb), :queue, :created_at)
""")


def make_of_job(
    session: Session,
    job: StoredJob,
    spec: PodGroupSpec,
) -> UUID:
    """Store a new group of a job, in the phase Pending; return its uid.

    Its place in line is the job's, whatever happened to it since. Nobody waits for the answer:
    the transaction ends in AlreadyExistsError if somebody else took the name.
    """
    uid = uuid4()
    values = {
        "uid": uid,
        "namespace": job.key.namespace,
        "name": names.pod_group_name(job.key.name, str(job.uid)),
        "job": job.uid,
        "labels": to_text(job.job.metadata.labels or {}),
        "annotations": to_text(job.job.metadata.annotations or {}),
        "spec": to_text(to_json(spec)),
        "queue": spec.queue,
        "created_at": job.created_at,
    }
    batch.later(session, _MAKE_OF_JOB, values)
    feed.record(session, feed.Change(KIND, str(uid), 1, feed.ADDED))
    return uid


def reshape(session: Session, stored: StoredGroup, spec: PodGroupSpec) -> None:
    """Give a group a new spec; nothing happens if it is the old one."""
    if to_json(spec) == to_json(stored.group.spec):
        return
    version = session.scalars(
        update(PodGroupRow)
        .where(PodGroupRow.uid == stored.uid)
        .values(
            spec=to_json(spec),
            queue=spec.queue,
            version=PodGroupRow.version + 1,
            generation=PodGroupRow.generation + 1,
        )
        .returning(PodGroupRow.version)
    ).one_or_none()
    if version is not None:
        feed.record(session, feed.Change(KIND, str(stored.uid), version, feed.MODIFIED))


_REMOVE = text("""
    with locked as (
        select uid from pod_group where uid = any(:uids) order by uid for update
    )
    delete from pod_group where uid in (select uid from locked)
    returning *
""")


def remove(session: Session, *uids: UUID) -> None:
    """Delete groups; watchers get their last states. Nothing happens to those that are gone."""
    if not uids:
        return
    removed = batch.answer(session, batch.rows_of(_REMOVE, {"uids": list(uids)}))
    changes = []
    for row in removed:
        version = row.version + 1
        last = _document(row)
        last["metadata"]["resourceVersion"] = str(version)
        changes.append(feed.Change(KIND, str(row.uid), version, feed.DELETED, last))
    feed.record(session, *changes)


def get(session: Session, key: Key) -> StoredGroup:
    """The group of that name.

    Raises:
        NotFoundError: there is none.
    """
    row = session.scalars(
        select(PodGroupRow).where(
            PodGroupRow.namespace == key.namespace, PodGroupRow.name == key.name
        )
    ).one_or_none()
    if row is None:
        raise NotFoundError(f"pod group {key} does not exist")
    return _to_stored(row)


def find(session: Session, uid: UUID) -> PodGroup | None:
    """The group of that uid, if there is one."""
    rows = batch.answer(session, batch.rows_of(_SOME, {"uids": [uid]}))
    return _to_group(rows[0]) if rows else None


def of_job(session: Session, job: UUID) -> StoredGroup | None:
    """A job's group, if it has one now."""
    return batch.answer(session, group(job))


_GROUP = select(PodGroupRow.__table__).where(PodGroupRow.job_uid == bindparam("job"))


def group(job: UUID) -> Question[StoredGroup | None]:
    """As :func:`of_job`, to be asked together with other things."""

    def read(rows: Sequence[Any]) -> StoredGroup | None:
        return _to_stored(rows[0]) if rows else None

    return Question(_GROUP, {"job": job}, read)


def documents(session: Session, uids: Sequence[str] | None) -> Mapping[str, Document]:
    """Groups by uid: those named that exist, or all. For the feed's reader."""
    loading = batch.rows_of(_ALL, {})
    if uids is not None:
        loading = batch.rows_of(_SOME, {"uids": [UUID(uid) for uid in uids]})
    return {str(row.uid): _document(row) for row in batch.answer(session, loading)}


_ALL = text("select * from pod_group")
_SOME = text("select * from pod_group where uid = any(:uids)")


def page(
    session: Session,
    *,
    namespace: str = "",
    queue: str = "",
    phases: Collection[str] = (),
    after: Place | None = None,
    limit: int,
) -> Sequence[StoredGroup]:
    """Groups from the oldest to the newest, at most ``limit`` after ``after``."""
    statement = (
        select(PodGroupRow).order_by(PodGroupRow.created_at, PodGroupRow.uid).limit(limit)
    )
    if namespace:
        statement = statement.where(PodGroupRow.namespace == namespace)
    if queue:
        statement = statement.where(PodGroupRow.queue == queue)
    if phases:
        statement = statement.where(PodGroupRow.phase.in_(phases))
    if after is not None:
        statement = statement.where(
            tuple_(PodGroupRow.created_at, PodGroupRow.uid) > tuple(after)
        )
    return [_to_stored(row) for row in session.scalars(statement)]


_AGAINST = '$.conditions[*] ? (@.type == "Unschedulable" && @.status == "True")'
"""Conditions that say what speaks against a group now."""

_SCHEDULED = text(f"""
    with said as (
        select * from jsonb_to_recordset(cast(:rows as jsonb)) as s(uid uuid, status jsonb)
    ),
    locked as (
        select g.uid, g.phase,
               jsonb_path_query_array(g.scheduling, '{_AGAINST}') as against
          from pod_group g join said on said.uid = g.uid
         where g.scheduling_version <= :epoch
           and g.scheduling is distinct from said.status
         order by g.uid for update of g
    )
    update pod_group g
       set scheduling = said.status, phase = coalesce(said.status ->> 'phase', g.phase),
           scheduling_version = :epoch, version = g.version + 1
      from said join locked on locked.uid = said.uid
     where g.uid = said.uid
    returning g.uid, g.version, g.job_uid,
              g.phase <> locked.phase
              and not (g.phase = any(:let_in) and locked.phase = any(:let_in))
              or jsonb_path_query_array(g.scheduling, '{_AGAINST}') <> locked.against as moved
""")  # noqa: S608 - no words but our own


_KNOWN = text("select uid from pod_group where uid = any(:uids)")


def report(
    session: Session, epoch: int, statuses: Mapping[UUID, PodGroupStatus]
) -> Sequence[UUID]:
    """Store what the scheduler of ``epoch`` said; return the uids of groups that are gone.

    The latest word on a group wins; jobs are woken when their group was let in or is so no
    more, or when something else is said against it, which a job that waits repeats.
    """
    rows = [{"uid": str(uid), "status": to_json(status)} for uid, status in statuses.items()]
    storing = batch.rows_of(
        _SCHEDULED, {"rows": to_text(rows), "epoch": epoch, "let_in": sorted(LET_IN)}
    )
    looking = batch.rows_of(_KNOWN, {"uids": list(statuses)})
    batch.ask(session, storing, looking)
    changed = storing.answer
    feed.record(
        session,
        *[feed.Change(KIND, str(row.uid), row.version, feed.MODIFIED) for row in changed],
    )
    moved = [str(row.job_uid) for row in changed if row.moved and row.job_uid is not None]
    work.wake(session, jobs.KIND, *sorted(moved))
    return sorted(set(statuses) - {row.uid for row in looking.answer})


def counts_by_queue(session: Session) -> Mapping[str, Mapping[str, int]]:
    """How many groups each queue has in each phase."""
    found: dict[str, dict[str, int]] = {}
    rows = session.execute(text("select queue, phase, count(*) from pod_group group by 1, 2"))
    for queue, phase, count in rows:
        found.setdefault(queue, {})[phase] = int(count)
    return found


def running_pods(session: Session, queue: str) -> int:
    """How many pods of the groups in a queue run, as the scheduler last said."""
    running = func.sum(PodGroupRow.scheduling["running"].as_integer())
    return session.scalar(select(running).where(PodGroupRow.queue == queue)) or 0


def _to_stored(row: PodGroupRow) -> StoredGroup:
    return StoredGroup(
        uid=row.uid,
        group=_to_group(row),
        version=row.version,
        job_uid=row.job_uid,
        phase=PodGroupPhase(row.phase),
        created_at=row.created_at,
    )


def _to_group(row: PodGroupRow) -> PodGroup:
    return PodGroup.model_validate(_document(row))


def _document(row: PodGroupRow) -> Document:
    """A group as the API shows it, not looked at any closer."""
    return {
        "apiVersion": names.SCHEDULING_API_VERSION,
        "kind": "PodGroup",
        "metadata": metadata(
            uid=row.uid,
            namespace=row.namespace,
            name=row.name,
            version=row.version,
            generation=row.generation,
            labels=row.labels,
            annotations=row.annotations,
            created_at=row.created_at,
            owners=_owners(row),
        ),
        "spec": row.spec,
        "status": {"phase": row.phase} | row.scheduling,
    }


def _owners(row: PodGroupRow) -> Sequence[Mapping[str, Any]]:
    if row.job_uid is None:
        return ()
    return (
        {
            "apiVersion": names.JOB_API_VERSION,
            "kind": "Job",
            "name": names.job_of_pod_group(row.name, str(row.job_uid)),
            "uid": str(row.job_uid),
            "controller": True,
            "blockOwnerDeletion": True,
        },
    )
