"""Templates of jobs. Which jobs were made from one is told by the steps of flows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import delete, insert, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from hekla.api.job_template import JobTemplate, JobTemplateStatus
from hekla.domain import names, timestamps
from hekla.domain.errors import AlreadyExistsError, NotFoundError
from hekla.domain.names import Key
from hekla.store import feed, flow_steps, job_flows, work
from hekla.store.database import Session, is_duplicate
from hekla.store.flow_schema import JobTemplateRow
from hekla.store.objects import KUBE, Place, any_of, last_state, metadata, readable, to_json

KIND: Final = "job_template"


def make(session: Session, template: JobTemplate, *, uid: UUID) -> JobTemplate:
    """Store an admitted template, and have flows looked at that wait for it.

    Raises:
        AlreadyExistsError: a template of that name exists.
    """
    meta = template.metadata
    statement = insert(JobTemplateRow).values(
        uid=uid,
        namespace=meta.namespace,
        name=meta.name,
        labels=meta.labels or {},
        annotations=meta.annotations or {},
        spec=to_json(template.spec),
    )
    key = Key(meta.namespace, meta.name)
    try:
        with session.begin_nested():
            row = session.scalars(statement.returning(JobTemplateRow)).one()
    except IntegrityError as error:
        if not is_duplicate(error):
            raise
        raise AlreadyExistsError(f"job template {key} exists already") from error
    feed.record(session, feed.Change(KIND, str(uid), row.version, feed.ADDED))
    _news(session, row)
    return _to_template(row)


def get(session: Session, key: Key) -> JobTemplate:
    """The template of that name.

    Raises:
        NotFoundError: there is none.
    """
    return _to_template(_row(session, key))


def get_by_uid(session: Session, uid: UUID) -> JobTemplate:
    """The template of that uid.

    Raises:
        NotFoundError: it is gone, or never was.
    """
    row = session.get(JobTemplateRow, uid, populate_existing=True)
    if row is None:
        raise NotFoundError(f"job template {uid} does not exist")
    return _to_template(row)


def named(session: Session, namespace: str, wanted: Sequence[str]) -> Mapping[str, JobTemplate]:
    """Those of these templates that exist, by name."""
    statement = select(JobTemplateRow).where(
        JobTemplateRow.namespace == namespace, JobTemplateRow.name.in_(wanted)
    )
    return {row.name: _to_template(row) for row in session.scalars(statement)}


def load(session: Session, uids: Sequence[str] | None) -> Mapping[str, JobTemplate]:
    """Templates by uid: those named that exist, or all. For the feed's reader."""
    statement = select(JobTemplateRow)
    if uids is not None:
        statement = statement.where(JobTemplateRow.uid == any_of(uids))
    return readable(session.scalars(statement), _to_template)


def page(
    session: Session, *, namespace: str = "", after: Place | None = None, limit: int
) -> Sequence[tuple[Place, JobTemplate]]:
    """Templates from the oldest to the newest, at most ``limit`` after ``after``."""
    place = tuple_(JobTemplateRow.created_at, JobTemplateRow.uid)
    statement = (
        select(JobTemplateRow)
        .order_by(JobTemplateRow.created_at, JobTemplateRow.uid)
        .limit(limit)
    )
    if namespace:
        statement = statement.where(JobTemplateRow.namespace == namespace)
    if after is not None:
        statement = statement.where(place > tuple(after))
    rows = session.scalars(statement)
    return [(Place(row.created_at, row.uid), _to_template(row)) for row in rows]


def change(session: Session, key: Key, template: JobTemplate) -> JobTemplate:
    """Give a template an admitted new spec, labels and annotations.

    Raises:
        NotFoundError: there is none of that name.
    """
    row = _row(session, key, to_change=True)
    spec = to_json(template.spec)
    values = {
        "spec": spec,
        "labels": template.metadata.labels or {},
        "annotations": template.metadata.annotations or {},
    }
    if all(getattr(row, column) == value for column, value in values.items()):
        return _to_template(row)
    changed = _changed(session, row, generation=row.generation + (spec != row.spec), **values)
    _news(session, changed)
    return _to_template(changed)


def count(session: Session, uid: UUID) -> Sequence[UUID]:
    """Note in a template's status which jobs were made from it and exist.

    Returns:
        The flows that wait for a template from which nothing was made so far. Who stored it
        woke those it could see; one that was stored at the same time saw no template either.

    Raises:
        NotFoundError: it is gone.
    """
    row = session.get(JobTemplateRow, uid, populate_existing=True, with_for_update=True)
    if row is None:
        raise NotFoundError(f"job template {uid} does not exist")
    made = flow_steps.jobs_of_template(session, row.namespace, row.name)
    status = to_json(JobTemplateStatus(job_depends_on_list=list(made) or None))
    before = row.status
    if status != before:
        _changed(session, row, status=status)
    if before.get("jobDependsOnList"):
        return ()
    return flow_steps.waiting_for_template(session, row.namespace, row.name)


def remove(session: Session, key: Key) -> None:
    """Delete a template; watchers get its last state. What was made from it stays.

    Raises:
        NotFoundError: there is none of that name.
    """
    _delete(session, _row(session, key, to_change=True))


def _delete(session: Session, row: JobTemplateRow) -> None:
    version = row.version + 1
    last = last_state(_to_template(row), version)
    session.execute(delete(JobTemplateRow).where(JobTemplateRow.uid == row.uid))
    feed.record(session, feed.Change(KIND, str(row.uid), version, feed.DELETED, last))


class Mirrored(NamedTuple):
    """A template, and what ties it to a custom resource."""

    template: JobTemplate
    uid: UUID
    origin: str
    cr_uid: UUID | None


def mirrored(session: Session, wanted: Collection[Key]) -> Sequence[Mirrored]:
    """Those of these templates that exist."""
    named = tuple_(JobTemplateRow.namespace, JobTemplateRow.name)
    rows = session.scalars(select(JobTemplateRow).where(named.in_(list(wanted))))
    return [Mirrored(_to_template(row), row.uid, row.origin, row.cr_uid) for row in rows]


def all_keys(session: Session) -> Sequence[Key]:
    """The names of all templates."""
    rows = session.execute(select(JobTemplateRow.namespace, JobTemplateRow.name))
    return [Key(*row) for row in rows]


def follow(session: Session, template: JobTemplate, *, cr_uid: UUID) -> None:
    """Store a custom resource as the template of its name, which follows it from now on.

    Another template of that name that followed an earlier one is retired first.
    """
    meta = template.metadata
    values: dict[str, Any] = {
        "generation": meta.generation or 1,
        "origin": KUBE,
        "cr_uid": cr_uid,
        "labels": meta.labels or {},
        "annotations": meta.annotations or {},
        "spec": to_json(template.spec),
    }
    key = Key(meta.namespace, meta.name)
    row = _find(session, key, to_change=True)
    if row is not None and row.cr_uid not in (None, cr_uid):
        _delete(session, row)
        row = None
    if row is None:
        if meta.creation_timestamp is not None:
            values["created_at"] = timestamps.from_text(meta.creation_timestamp)
        statement = insert(JobTemplateRow).values(
            uid=cr_uid, namespace=meta.namespace, name=meta.name, **values
        )
        row = session.scalars(statement.returning(JobTemplateRow)).one()
        feed.record(session, feed.Change(KIND, str(row.uid), row.version, feed.ADDED))
    elif all(getattr(row, column) == value for column, value in values.items()):
        return
    else:
        row = _changed(session, row, **values)
    _news(session, row)


def drop(session: Session, key: Key, *, uid: UUID) -> None:
    """Delete a template, if the one of that name is still this one."""
    row = _find(session, key, to_change=True)
    if row is not None and row.uid == uid:
        _delete(session, row)


def wake(session: Session, namespace: str, wanted: Sequence[str]) -> None:
    """Have the templates of these names looked at."""
    statement = select(JobTemplateRow.uid).where(
        JobTemplateRow.namespace == namespace, JobTemplateRow.name.in_(wanted)
    )
    work.wake(session, KIND, *[str(uid) for uid in session.scalars(statement)])


def _news(session: Session, row: JobTemplateRow) -> None:
    """Flows may wait for it, and jobs of an earlier one of its name may exist."""
    waiting = flow_steps.waiting_for_template(session, row.namespace, row.name)
    # Work rows of templates before those of flows, as everywhere: else two wait in a circle.
    work.wake(session, KIND, str(row.uid))
    work.wake(session, job_flows.KIND, *[str(uid) for uid in waiting], urgent=True)


def _changed(session: Session, row: JobTemplateRow, **values: object) -> JobTemplateRow:
    changed = session.scalars(
        update(JobTemplateRow)
        .where(JobTemplateRow.uid == row.uid)
        .values(**values, version=JobTemplateRow.version + 1)
        .returning(JobTemplateRow)
        .execution_options(populate_existing=True)
    ).one()
    feed.record(session, feed.Change(KIND, str(row.uid), changed.version, feed.MODIFIED))
    return changed


def _row(session: Session, key: Key, *, to_change: bool = False) -> JobTemplateRow:
    row = _find(session, key, to_change=to_change)
    if row is None:
        raise NotFoundError(f"job template {key} does not exist")
    return row


def _find(session: Session, key: Key, *, to_change: bool = False) -> JobTemplateRow | None:
    statement = select(JobTemplateRow).where(
        JobTemplateRow.namespace == key.namespace, JobTemplateRow.name == key.name
    )
    if to_change:
        statement = statement.with_for_update()
    return session.scalars(statement).one_or_none()


def _to_template(row: JobTemplateRow) -> JobTemplate:
    return JobTemplate.model_validate(
        {
            "apiVersion": names.FLOW_API_VERSION,
            "kind": "JobTemplate",
            "metadata": metadata(
                uid=row.uid,
                namespace=row.namespace,
                name=row.name,
                version=row.version,
                generation=row.generation,
                labels=row.labels,
                annotations=row.annotations,
                created_at=row.created_at,
            ),
            "spec": row.spec,
            "status": row.status,
        }
    )
