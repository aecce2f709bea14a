"""Queues. Counts in their status are an aggregate of pod groups, added by who shows them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import delete, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as insert_unless
from sqlalchemy.exc import IntegrityError

from hekla.api.queue import Queue
from hekla.domain import names
from hekla.domain.errors import AlreadyExistsError, NotFoundError, PreconditionError
from hekla.domain.phases import QueueState
from hekla.store import feed, jobs, pod_groups
from hekla.store.batch import Question
from hekla.store.database import Session, is_duplicate
from hekla.store.objects import KUBE, RPC, any_of, last_state, metadata, readable, to_json
from hekla.store.schema import QueueRow

KIND: Final = "queue"


def make_well_known(session: Session) -> None:
    """Make the queues ``root`` and ``default`` unless they are there."""
    for name, reclaimable, parent in (
        (names.ROOT_QUEUE, False, ""),
        (names.DEFAULT_QUEUE, True, names.ROOT_QUEUE),
    ):
        row = session.scalars(
            insert_unless(QueueRow)
            .values(
                uid=uuid4(),
                name=name,
                parent=parent,
                spec={
                    "weight": 1,
                    "reclaimable": reclaimable,
                    "dequeueStrategy": "traverse",
                    **({"parent": parent} if parent else {}),
                },
            )
            .on_conflict_do_nothing(index_elements=["name"])
            .returning(QueueRow)
        ).one_or_none()
        if row is not None:
            feed.record(session, feed.Change(KIND, str(row.uid), row.version, feed.ADDED))


def make(session: Session, queue: Queue, *, uid: UUID) -> Queue:
    """Store an admitted queue, open.

    Raises:
        AlreadyExistsError: a queue of that name exists.
    """
    statement = insert(QueueRow).values(
        uid=uid,
        name=queue.metadata.name,
        labels=queue.metadata.labels or {},
        annotations=queue.metadata.annotations or {},
        spec=to_json(queue.spec),
        parent=queue.spec.parent or names.ROOT_QUEUE,
    )
    try:
        with session.begin_nested():
            row = session.scalars(statement.returning(QueueRow)).one()
    except IntegrityError as error:
        if not is_duplicate(error):
            raise
        raise AlreadyExistsError(f"queue {queue.metadata.name} exists already") from error
    feed.record(session, feed.Change(KIND, str(row.uid), row.version, feed.ADDED))
    return _to_queue(row)


def get(session: Session, name: str) -> Queue:
    """The queue of that name.

    Raises:
        NotFoundError: there is none.
    """
    return _to_queue(_row(session, name))


def get_by_uid(session: Session, uid: UUID) -> Queue:
    """The queue of that uid.

    Raises:
        NotFoundError: it is gone, or never was.
    """
    row = session.get(QueueRow, uid, populate_existing=True)
    if row is None:
        raise NotFoundError(f"queue {uid} does not exist")
    return _to_queue(row)


def children(session: Session, name: str) -> Sequence[str]:
    """Names of the queues directly below ``name``."""
    return session.scalars(
        select(QueueRow.name).where(QueueRow.parent == name).order_by(QueueRow.name)
    ).all()


def annotated(session: Session, key: str) -> Mapping[str, str]:
    """Values of an annotation, by the names of the queues that have it."""
    value = QueueRow.annotations[key].astext
    rows = session.execute(select(QueueRow.name, value).where(value.is_not(None)))
    return {row.name: row[1] for row in rows}


_NAMED = text("select * from queue where name = :name")
_BELOW = text("select * from queue where parent = :name order by name")


def named(name: str) -> Question[Queue | None]:
    """The queue of that name if there is one, to be asked together with other things."""
    return Question(_NAMED, {"name": name}, lambda rows: _to_queue(rows[0]) if rows else None)


def below(name: str) -> Question[Sequence[Queue]]:
    """The queues directly below ``name``, by name, to be asked together with other things."""
    return Question(_BELOW, {"name": name}, lambda rows: [_to_queue(row) for row in rows])


def page(
    session: Session,
    *,
    after: str = "",
    states: Collection[str] = (),
    parent: str = "",
    limit: int,
) -> Sequence[Queue]:
    """Queues by name, at most ``limit`` after the one named ``after``."""
    statement = (
        select(QueueRow).where(QueueRow.name > after).order_by(QueueRow.name).limit(limit)
    )
    if states:
        statement = statement.where(QueueRow.state.in_(states))
    if parent:
        statement = statement.where(QueueRow.parent == parent)
    return [_to_queue(row) for row in session.scalars(statement)]


def in_state(session: Session, state: QueueState) -> Sequence[Queue]:
    """Queues in that state, by name."""
    statement = select(QueueRow).where(QueueRow.state == state.value).order_by(QueueRow.name)
    return [_to_queue(row) for row in session.scalars(statement)]


def load(session: Session, uids: Sequence[str] | None) -> Mapping[str, Queue]:
    """Queues by uid: those named that exist, or all. For the feed's reader."""
    statement = select(QueueRow)
    if uids is not None:
        statement = statement.where(QueueRow.uid == any_of(uids))
    return readable(session.scalars(statement), _to_queue)


def change(
    session: Session,
    name: str,
    *,
    queue: Queue | None = None,
    state: QueueState | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Queue:
    """Give a queue an admitted new spec, a new state, or some new annotations.

    Raises:
        NotFoundError: there is none of that name.
    """
    row = session.scalars(
        select(QueueRow).where(QueueRow.name == name).with_for_update()
    ).one_or_none()
    if row is None:
        raise NotFoundError(f"queue {name} does not exist")
    values: dict[str, object] = {}
    if queue is not None:
        spec = to_json(queue.spec)
        values = {
            "spec": spec,
            "parent": queue.spec.parent or row.parent,
            "labels": queue.metadata.labels or {},
            "annotations": queue.metadata.annotations or {},
            "generation": row.generation + (1 if spec != row.spec else 0),
        }
    if state is not None:
        values["state"] = state.value
    if annotations is not None:
        values["annotations"] = {**row.annotations, **annotations}
    return _changed(session, row, values)


def _changed(session: Session, row: QueueRow, values: Mapping[str, object]) -> Queue:
    """Give a row that is locked new values; nothing if it has them."""
    if all(getattr(row, column) == value for column, value in values.items()):
        return _to_queue(row)
    changed = session.scalars(
        update(QueueRow)
        .where(QueueRow.uid == row.uid)
        .values(**values, version=QueueRow.version + 1)
        .returning(QueueRow)
        .execution_options(populate_existing=True)
    ).one()
    feed.record(session, feed.Change(KIND, str(changed.uid), changed.version, feed.MODIFIED))
    return _to_queue(changed)


def remove(session: Session, name: str) -> None:
    """Delete a queue that nothing uses; watchers get its last state.

    Raises:
        NotFoundError: there is none of that name.
        PreconditionError: it is root or default, has children, or jobs wait or run in it.
    """
    row = session.scalars(
        select(QueueRow).where(QueueRow.name == name).with_for_update()
    ).one_or_none()
    if row is None:
        raise NotFoundError(f"queue {name} does not exist")
    require_unused(session, name)
    _delete(session, row)


def require_unused(session: Session, name: str) -> None:
    """Make sure that a queue may go.

    Raises:
        PreconditionError: it is root or default, has children, or jobs wait or run in it.
    """
    if name in (names.ROOT_QUEUE, names.DEFAULT_QUEUE):
        raise PreconditionError(f"queue {name} is always there and cannot be deleted")
    below = children(session, name)
    if below:
        raise PreconditionError(f"queue {name} has the children {', '.join(below)}")
    if jobs.exists_live_in_queue(session, name) or pod_groups.page(
        session, queue=name, limit=1
    ):
        raise PreconditionError(f"queue {name} has jobs that wait or run; delete them first")


def _delete(session: Session, row: QueueRow) -> None:
    version = row.version + 1
    last = last_state(_to_queue(row), version)
    session.execute(delete(QueueRow).where(QueueRow.uid == row.uid))
    feed.record(session, feed.Change(KIND, str(row.uid), version, feed.DELETED, last))


class Mirrored(NamedTuple):
    """A queue, and what ties it to a custom resource."""

    queue: Queue
    uid: UUID
    origin: str
    cr_uid: UUID | None


def mirrored(session: Session, wanted: Collection[str]) -> Sequence[Mirrored]:
    """Those of these queues that exist."""
    rows = session.scalars(select(QueueRow).where(QueueRow.name.in_(wanted)))
    return [Mirrored(_to_queue(row), row.uid, row.origin, row.cr_uid) for row in rows]


def all_names(session: Session) -> Sequence[str]:
    """The names of all queues."""
    return session.scalars(select(QueueRow.name)).all()


def follow(
    session: Session, queue: Queue, *, cr_uid: UUID, generation: int, created_at: datetime
) -> Queue:
    """Store a custom resource as the queue of its name, which follows it from now on.

    Another queue of that name that followed an earlier one is retired first. State and what
    goes with it (``CLOSED_BY_PARENT``) are ours, and stay.
    """
    meta = queue.metadata
    values: dict[str, Any] = {
        "generation": max(1, generation),
        "origin": KUBE,
        "cr_uid": cr_uid,
        "labels": meta.labels or {},
        "annotations": meta.annotations or {},
        "spec": to_json(queue.spec),
        "parent": queue.spec.parent or _parent_of(meta.name),
    }
    row = session.scalars(
        select(QueueRow).where(QueueRow.name == meta.name).with_for_update()
    ).one_or_none()
    if row is not None and row.cr_uid not in (None, cr_uid):
        _delete(session, row)
        row = None
    if row is None:
        made = session.scalars(
            insert(QueueRow)
            .values(uid=cr_uid, name=meta.name, created_at=created_at, **values)
            .returning(QueueRow)
        ).one()
        feed.record(session, feed.Change(KIND, str(made.uid), made.version, feed.ADDED))
        return _to_queue(made)
    if names.CLOSED_BY_PARENT in row.annotations:
        marked = {names.CLOSED_BY_PARENT: row.annotations[names.CLOSED_BY_PARENT]}
        values["annotations"] = {**values["annotations"], **marked}
    return _changed(session, row, values)


def untie(session: Session, name: str) -> None:
    """Have a queue be without a custom resource, and the source of the next one."""
    row = _row(session, name)
    _changed(session, row, {"origin": RPC, "cr_uid": None})


def drop(session: Session, name: str) -> None:
    """Delete a queue, whatever uses it, if there is one of that name."""
    row = session.scalars(
        select(QueueRow).where(QueueRow.name == name).with_for_update()
    ).one_or_none()
    if row is not None:
        _delete(session, row)


def _parent_of(name: str) -> str:
    return "" if name == names.ROOT_QUEUE else names.ROOT_QUEUE


def _row(session: Session, name: str) -> QueueRow:
    row = session.scalars(select(QueueRow).where(QueueRow.name == name)).one_or_none()
    if row is None:
        raise NotFoundError(f"queue {name} does not exist")
    return row


def _to_queue(row: QueueRow) -> Queue:
    return Queue.model_validate(
        {
            "apiVersion": names.SCHEDULING_API_VERSION,
            "kind": "Queue",
            "metadata": metadata(
                uid=row.uid,
                name=row.name,
                version=row.version,
                generation=row.generation,
                labels=row.labels,
                annotations=row.annotations,
                created_at=row.created_at,
            ),
            "spec": row.spec,
            "status": {"state": row.state},
        }
    )
