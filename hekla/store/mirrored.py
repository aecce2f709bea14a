"""Rows beside custom resources: what the mirror reads of jobs and pod groups, and writes.

A row that follows a custom resource has its uid, so that pods, groups and history tell of the
object that users see. Its generation is that of the custom resource.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import TextClause, text

from hekla.api.job import Job, JobStatus
from hekla.api.pod_group import PodGroup
from hekla.domain.attempt import Kill
from hekla.domain.errors import AlreadyExistsError, NotFoundError
from hekla.domain.names import Key
from hekla.store import attempts, batch, events, feed, history, jobs, pod_groups, work
from hekla.store.database import Session
from hekla.store.events import Event
from hekla.store.objects import to_json, to_text

NAMESPACE_TERMINATING: Final = "NamespaceTerminating"


class Mirrored(NamedTuple):
    """A row as the mirror sees it."""

    key: Key
    uid: UUID
    origin: str
    custom_uid: UUID | None
    generation: int
    deleting: bool
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Mapping[str, Any]
    status: Mapping[str, Any]
    job_uid: UUID | None = None
    """Of a pod group: its job's."""


class Born(NamedTuple):
    """A custom resource that is to be stored, and what it holds."""

    uid: UUID
    generation: int
    object: Any
    created_at: datetime
    """When the custom resource was made, to the second below."""
    ended: JobStatus | None = None
    """How it stands, if it has ended already: it is not run again."""


_NAMED: Final = """
    in (select * from unnest(cast(:namespaces as text[]), cast(:names as text[])))
"""
_JOBS = text(f"""
    select namespace, name, uid, origin, cr_uid, generation,
           deleting_at is not null as deleting,
           labels, annotations, spec, status, null as job_uid
      from job where (namespace, name) {_NAMED}
""")  # noqa: S608
_GROUPS = text(f"""
    select namespace, name, uid, origin, cr_uid, generation, false as deleting,
           labels, annotations, spec,
           jsonb_build_object('phase', phase) || scheduling as status, job_uid
      from pod_group where (namespace, name) {_NAMED}
""")  # noqa: S608


def jobs_named(session: Session, keys: Collection[Key]) -> Mapping[Key, Mirrored]:
    """The jobs of these names that there are."""
    return _named(session, _JOBS, keys)


def groups_named(session: Session, keys: Collection[Key]) -> Mapping[Key, Mirrored]:
    """The pod groups of these names that there are."""
    return _named(session, _GROUPS, keys)


def _named(
    session: Session, statement: TextClause, keys: Collection[Key]
) -> Mapping[Key, Mirrored]:
    values = {
        "namespaces": [key.namespace for key in keys],
        "names": [key.name for key in keys],
    }
    rows = batch.answer(session, batch.rows_of(statement, values))
    return {
        Key(row.namespace, row.name): Mirrored(Key(row.namespace, row.name), *row[2:])
        for row in rows
    }


def job_keys(session: Session) -> Sequence[Key]:
    """Names of the jobs that have a custom resource."""
    rows = session.execute(text("select namespace, name from job where cr_uid is not null"))
    return [Key(*row) for row in rows]


def group_keys(session: Session) -> Sequence[Key]:
    """Names of the pod groups that have a custom resource, or may have one."""
    rows = session.execute(
        text(
            "select namespace, name from pod_group where cr_uid is not null or job_uid is null"
            " union select g.namespace, g.name from job j join pod_group g on g.job_uid = j.uid"
            " where j.cr_uid is not null"
        )
    )
    return [Key(*row) for row in rows]


_INSERT_JOBS = text("""
    insert into job (uid, cr_uid, origin, generation, counters, namespace, name, labels,
                     annotations, spec, queue, owner, created_at, status, phase,
                     started_at, finished_at)
    select uid, uid, 'kube', generation, jsonb_build_object('generation', generation),
           namespace, name, labels, annotations, spec, queue, owner,
           least(clock_timestamp(), created_at + interval '1 s'),
           coalesce(status, '{}'), coalesce(phase, 'Pending'),
           finished_at, finished_at
      from jsonb_to_recordset(cast(:rows as jsonb))
           as j(uid uuid, generation int, namespace text, name text, labels jsonb,
                annotations jsonb, spec jsonb, queue text, owner jsonb,
                created_at timestamptz, status jsonb, phase text, finished_at timestamptz)
    on conflict do nothing
    returning uid, version
""")


def insert_jobs(session: Session, born: Sequence[Born]) -> None:
    """Store jobs that follow custom resources, and have them looked at.

    One that is stored already stays as it is.

    Raises:
        AlreadyExistsError: another job has such a name; roll back.
    """
    rows = [_new_job(one) for one in born]
    made = batch.answer(session, batch.rows_of(_INSERT_JOBS, {"rows": to_text(rows)}))
    if len(made) < len(born):
        _refuse_others(
            session, [one for one in born if one.uid not in {row.uid for row in made}]
        )
    feed.record(
        session,
        *[feed.Change(jobs.KIND, str(row.uid), row.version, feed.ADDED) for row in made],
    )
    work.wake(session, jobs.KIND, *[str(row.uid) for row in made])


def _new_job(born: Born) -> dict[str, Any]:
    row = jobs.new_row(born.uid, born.object)
    row |= {"generation": born.generation, "created_at": born.created_at.isoformat()}
    if born.ended is not None:
        state = born.ended.state
        row |= {
            "status": to_json(born.ended),
            "phase": state.phase,
            "finished_at": state.last_transition_time or row["created_at"],
        }
    return row


def _refuse_others(session: Session, born: Sequence[Born]) -> None:
    keys = {one.uid: Key(*_place(one.object)) for one in born}
    there = jobs_named(session, list(keys.values()))
    for uid, key in keys.items():
        if key not in there or there[key].uid != uid:
            raise AlreadyExistsError(f"another job {key} exists")


def _place(found: Job | PodGroup) -> tuple[str, str]:
    return found.metadata.namespace, found.metadata.name


def known(session: Session, uids: Collection[UUID]) -> set[UUID]:
    """Those of ``uids`` that are of jobs, present or removed, or of pod groups."""
    found = session.scalars(
        text("select uid from pod_group where uid = any(cast(:uids as uuid[]))"),
        {"uids": list(uids)},
    )
    return {*found, *history.known(session, uids)}


def spent(session: Session, uids: Collection[UUID]) -> set[UUID]:
    """Those of ``uids`` that are of jobs that were removed."""
    return history.past(session, uids)


_NOT_EVICTED = text("""
    with locked as (
        select uid from attempt
         where job_uid = :job and outcome = 'Evicted' and current
           and (not handled or finished_at > clock_timestamp() - interval '5 s')
         order by uid for update
    )
    update attempt set outcome = 'Removed', handled = true, doomed = 'JobDeleted'
     where uid in (select uid from locked)
""")


def remove_job(session: Session, uid: UUID) -> None:
    """Have a job removed whose custom resource is gone, or going.

    Kubernetes deletes the pods of an owner that is gone, mostly before we do: that is no
    eviction, and no policy hears of it.

    Raises:
        NotFoundError: it is gone.
    """
    if jobs.get_by_uid(session, uid, to_remove=True).deleting_at is not None:
        return
    jobs.mark_deleting(session, uid)
    session.execute(_NOT_EVICTED, {"job": uid})
    attempts.doom(session, uid, Kill("JobDeleted", ended=True))


_ABANDON = text("""
    with locked as (
        select uid from attempt where job_uid = :job and outcome is null
         order by uid for update
    )
    update attempt
       set outcome = 'Removed', handled = true, doomed = coalesce(doomed, :reason),
           finished_at = coalesce(finished_at, clock_timestamp())
     where uid in (select uid from locked)
""")


def replace_job(session: Session, old: UUID, born: Born) -> None:
    """Retire a job whose custom resource is gone and store the one that has its name now."""
    try:
        stored = jobs.get_by_uid(session, old, to_remove=True)
    except NotFoundError:
        stored = None
    if stored is not None:
        # Its pods go with their owner; what comes of them is of no account any more.
        session.execute(_ABANDON, {"job": old, "reason": "JobReplaced"})
        history.retire(session, stored)
    insert_jobs(session, [born])


def orphan_job(session: Session, uid: UUID) -> None:
    """Retire a job whose pods are nobody's any more, and stay.

    Raises:
        NotFoundError: it is gone.
    """
    stored = jobs.get_by_uid(session, uid, to_remove=True)
    session.execute(_ABANDON, {"job": uid, "reason": "JobOrphaned"})
    history.retire(session, stored)


def update_job(session: Session, uid: UUID, job: Job, *, generation: int) -> None:
    """Bring a job up to its custom resource.

    Raises:
        NotFoundError: it is gone.
    """
    stored = jobs.get_by_uid(session, uid, to_remove=True)
    jobs.update_spec(session, stored, job, generation=generation)


def end_in_namespace(session: Session, namespace: str, *, limit: int) -> Sequence[UUID]:
    """Have jobs of a namespace that is being deleted go, and say so; return their uids.

    Those that somebody looks at just now are left for the next time.
    """
    found = session.scalars(
        text(
            "select uid from job where namespace = :namespace and deleting_at is null"
            " order by uid limit :limit for update skip locked"
        ),
        {"namespace": namespace, "limit": limit},
    ).all()
    message = f"namespace {namespace} is being deleted, and its jobs with it"
    for uid in found:
        stored = jobs.get_by_uid(session, uid, to_remove=True)
        state = stored.job.status.state.model_copy(
            update={"reason": NAMESPACE_TERMINATING, "message": message}
        )
        jobs.record(
            session,
            stored,
            status=stored.job.status.model_copy(update={"state": state}),
            counters=stored.counters,
            started_at=stored.started_at,
            finished_at=stored.finished_at,
        )
        events.add(session, uid, [Event(events.WARNING, NAMESPACE_TERMINATING, message)])
        jobs.mark_deleting(session, uid)
    return found


def is_in_namespace(session: Session, namespace: str) -> bool:
    """Whether a namespace has jobs that are not on their way out."""
    query = "select from job where namespace = :namespace and deleting_at is null limit 1"
    return session.execute(text(query), {"namespace": namespace}).first() is not None


_ADOPT_JOB = text("""
    update job set cr_uid = :custom where uid = :uid and cr_uid is distinct from :custom
    returning uid
""")


def adopt_job(session: Session, uid: UUID, custom: UUID, *, wake: bool = True) -> None:
    """Note which custom resource a job has, and have it looked at unless its pass does this."""
    values = {"uid": uid, "custom": custom}
    if not wake:
        batch.later(session, _ADOPT_JOB, values)
    elif batch.answer(session, batch.rows_of(_ADOPT_JOB, values)):
        work.wake(session, jobs.KIND, str(uid))


_INSERT_GROUP = text("""
    insert into pod_group (uid, cr_uid, origin, generation, namespace, name, labels,
                           annotations, spec, queue, created_at)
    values (:uid, :uid, 'kube', :generation, :namespace, :name, cast(:labels as jsonb),
            cast(:annotations as jsonb), cast(:spec as jsonb), :queue,
            least(clock_timestamp(), cast(:created_at as timestamptz) + interval '1 s'))
    on conflict do nothing
    returning version
""")


def insert_group(session: Session, born: Born) -> None:
    """Store a pod group that follows a custom resource; if it is stored it stays as it is.

    Raises:
        AlreadyExistsError: another group has the name; roll back.
    """
    group: PodGroup = born.object
    meta = group.metadata
    values = {
        "uid": born.uid,
        "generation": born.generation,
        "created_at": born.created_at,
        "namespace": meta.namespace,
        "name": meta.name,
        "labels": to_text(meta.labels or {}),
        "annotations": to_text(meta.annotations or {}),
        "spec": to_text(to_json(group.spec)),
        "queue": group.spec.queue,
    }
    made = batch.answer(session, batch.rows_of(_INSERT_GROUP, values))
    if made:
        change = feed.Change(pod_groups.KIND, str(born.uid), made[0].version, feed.ADDED)
        feed.record(session, change)
        return
    key = Key(meta.namespace, meta.name)
    there = groups_named(session, [key]).get(key)
    if there is None or there.uid != born.uid:
        raise AlreadyExistsError(f"another pod group {key} exists")


def replace_group(session: Session, old: UUID, born: Born) -> None:
    """Remove a group whose custom resource is gone and store the one that has its name now."""
    pod_groups.remove(session, old)
    insert_group(session, born)


_UPDATE_GROUP = text("""
    update pod_group
       set spec = cast(:spec as jsonb), queue = :queue, labels = cast(:labels as jsonb),
           annotations = cast(:annotations as jsonb), generation = :generation,
           version = version + 1
     where uid = :uid
       and (spec, labels, annotations) is distinct from
           (cast(:spec as jsonb), cast(:labels as jsonb), cast(:annotations as jsonb))
    returning version
""")


def update_group(session: Session, uid: UUID, group: PodGroup, *, generation: int) -> None:
    """Bring a group up to its custom resource; nothing happens if it is."""
    values = {
        "uid": uid,
        "spec": to_text(to_json(group.spec)),
        "queue": group.spec.queue,
        "labels": to_text(group.metadata.labels or {}),
        "annotations": to_text(group.metadata.annotations or {}),
        "generation": generation,
    }
    for row in batch.answer(session, batch.rows_of(_UPDATE_GROUP, values)):
        change = feed.Change(pod_groups.KIND, str(uid), row.version, feed.MODIFIED)
        feed.record(session, change)


def adopt_group(session: Session, uid: UUID, custom: UUID) -> None:
    """Note which custom resource a group has."""
    batch.later(session, _ADOPT_GROUP, {"uid": uid, "custom": custom})


_ADOPT_GROUP = text("update pod_group set cr_uid = :custom where uid = :uid")
