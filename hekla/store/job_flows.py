"""Flows: rows stay inside, flows of the API go in and out; for steps see ``flow_steps``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import delete, func, insert, or_, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from hekla.api.job_flow import JobFlow, JobFlowStatus
from hekla.domain import names, timestamps
from hekla.domain.errors import AlreadyExistsError, ConflictError, ExhaustedError, NotFoundError
from hekla.domain.names import Key
from hekla.domain.phases import FlowPhase
from hekla.store import feed, work
from hekla.store.database import Session, is_duplicate, now
from hekla.store.flow_schema import FlowStepRow, JobFlowHistoryRow, JobFlowRow
from hekla.store.objects import KUBE, Place, any_of, last_state, metadata, readable, to_json

KIND: Final = "job_flow"


@dataclass(frozen=True, slots=True)
class StoredFlow:
    """A flow, and what of it only the flow service sees."""

    uid: UUID
    flow: JobFlow
    version: int
    created_at: datetime
    finished_at: datetime | None
    deleting_at: datetime | None
    origin: str
    cr_uid: UUID | None

    @property
    def key(self) -> Key:
        """Its namespace and name."""
        return Key(self.flow.metadata.namespace, self.flow.metadata.name)


class Past(NamedTuple):
    """What became of a flow before it was stored."""

    status: JobFlowStatus
    steps: Mapping[str, Mapping[str, Any]]
    """What is remembered of the jobs of steps, by their names."""


def make(session: Session, flow: JobFlow, *, uid: UUID) -> StoredFlow:
    """Store an admitted flow with its steps, and have it looked at.

    Raises:
        AlreadyExistsError: a flow of that name exists.
    """
    meta = flow.metadata
    statement = insert(JobFlowRow).values(
        uid=uid,
        namespace=meta.namespace,
        name=meta.name,
        labels=meta.labels or {},
        annotations=meta.annotations or {},
        spec=to_json(flow.spec),
    )
    try:
        with session.begin_nested():
            row = session.scalars(statement.returning(JobFlowRow)).one()
    except IntegrityError as error:
        if not is_duplicate(error):
            raise
        key = Key(meta.namespace, meta.name)
        raise AlreadyExistsError(f"job flow {key} exists already") from error
    return _made(session, row, flow)


def _made(
    session: Session, row: JobFlowRow, flow: JobFlow, past: Past | None = None
) -> StoredFlow:
    known = past.steps if past is not None else {}
    steps = [
        {
            "flow_uid": row.uid,
            "name": step.name,
            "position": position,
            "seen": known.get(step.name),
        }
        for position, step in enumerate(flow.spec.flows or ())
    ]
    if steps:
        session.execute(insert(FlowStepRow), steps)
    feed.record(session, feed.Change(KIND, str(row.uid), row.version, feed.ADDED))
    work.wake(session, KIND, str(row.uid))
    return _to_stored(row)


def get(session: Session, key: Key) -> StoredFlow:
    """The flow of that name.

    Raises:
        NotFoundError: there is none.
    """
    statement = select(JobFlowRow).where(
        JobFlowRow.namespace == key.namespace, JobFlowRow.name == key.name
    )
    row = session.scalars(statement).one_or_none()
    if row is None:
        raise NotFoundError(f"job flow {key} does not exist")
    return _to_stored(row)


def get_by_uid(session: Session, uid: UUID, *, to_change: bool = False) -> StoredFlow:
    """The flow of that uid, locked until the transaction ends if it is ``to_change``.

    Raises:
        NotFoundError: it is gone, or never was.
    """
    row = session.get(
        JobFlowRow, uid, populate_existing=True, with_for_update=True if to_change else None
    )
    if row is None:
        raise NotFoundError(f"job flow {uid} does not exist")
    return _to_stored(row)


def load(session: Session, uids: Sequence[str] | None) -> Mapping[str, JobFlow]:
    """Flows by uid: those named that exist, or all. For the feed's reader."""
    statement = select(JobFlowRow)
    if uids is not None:
        statement = statement.where(JobFlowRow.uid == any_of(uids))
    return readable(session.scalars(statement), _to_flow)


def page(
    session: Session,
    *,
    namespace: str = "",
    phases: Collection[str] = (),
    after: Place | None = None,
    limit: int,
) -> Sequence[StoredFlow]:
    """Flows from the oldest to the newest, at most ``limit`` after ``after``."""
    statement = select(JobFlowRow).order_by(JobFlowRow.created_at, JobFlowRow.uid).limit(limit)
    if namespace:
        statement = statement.where(JobFlowRow.namespace == namespace)
    if phases:
        statement = statement.where(JobFlowRow.phase.in_(phases))
    if after is not None:
        place = tuple_(JobFlowRow.created_at, JobFlowRow.uid)
        statement = statement.where(place > tuple(after))
    return [_to_stored(row) for row in session.scalars(statement)]


def record(
    session: Session,
    stored: StoredFlow,
    *,
    status: JobFlowStatus,
    finished_at: datetime | None,
) -> None:
    """Store what a pass decided of a flow that is locked; nothing if nothing changed."""
    if status == stored.flow.status and finished_at == stored.finished_at:
        return
    version = session.scalars(
        update(JobFlowRow)
        .where(JobFlowRow.uid == stored.uid)
        .values(
            status=to_json(status),
            phase=status.state.phase or FlowPhase.PENDING.value,
            finished_at=finished_at,
            version=JobFlowRow.version + 1,
        )
        .returning(JobFlowRow.version)
    ).one()
    feed.record(session, feed.Change(KIND, str(stored.uid), version, feed.MODIFIED))


def change(session: Session, stored: StoredFlow, flow: JobFlow) -> StoredFlow:
    """Store an admitted new spec, labels and annotations, and have the flow looked at.

    Raises:
        ConflictError: the flow changed since it was read.
    """
    spec = to_json(flow.spec)
    spec_changed = spec != to_json(stored.flow.spec)
    row = session.scalars(
        update(JobFlowRow)
        .where(JobFlowRow.uid == stored.uid, JobFlowRow.version == stored.version)
        .values(
            spec=spec,
            labels=flow.metadata.labels or {},
            annotations=flow.metadata.annotations or {},
            version=JobFlowRow.version + 1,
            generation=JobFlowRow.generation + (1 if spec_changed else 0),
        )
        .returning(JobFlowRow)
        .execution_options(populate_existing=True)
    ).one_or_none()
    if row is None:
        raise ConflictError(f"job flow {stored.key} changed since it was read; try again")
    feed.record(session, feed.Change(KIND, str(stored.uid), row.version, feed.MODIFIED))
    work.wake(session, KIND, str(stored.uid), urgent=True)
    return _to_stored(row)


def mark_deleting(session: Session, uid: UUID) -> StoredFlow:
    """Have a flow removed; it stays until its jobs are gone. Repeating it changes nothing.

    Raises:
        NotFoundError: it is gone.
    """
    row = session.scalars(
        update(JobFlowRow)
        .where(JobFlowRow.uid == uid, JobFlowRow.deleting_at.is_(None))
        .values(deleting_at=func.clock_timestamp(), version=JobFlowRow.version + 1)
        .returning(JobFlowRow)
        .execution_options(populate_existing=True)
    ).one_or_none()
    if row is None:
        return get_by_uid(session, uid)
    feed.record(session, feed.Change(KIND, str(uid), row.version, feed.MODIFIED))
    work.wake(session, KIND, str(uid), urgent=True)
    return _to_stored(row)


def retire(session: Session, uid: UUID, *, jobs_stay: bool = False) -> None:
    """Move a flow whose jobs are gone, or are to stay, out of the way.

    It is remembered as it is now.

    Raises:
        NotFoundError: it is gone.
    """
    stored = get_by_uid(session, uid, to_change=True)
    version = stored.version + 1
    last = last_state(stored.flow, version)
    if jobs_stay:
        annotations = last["metadata"].get("annotations") or {}
        last["metadata"]["annotations"] = {**annotations, names.JOBS_STAY: "true"}
    session.execute(
        insert(JobFlowHistoryRow).values(
            removed_at=now(session),
            uid=uid,
            namespace=stored.key.namespace,
            name=stored.key.name,
            object=last,
        )
    )
    session.execute(delete(FlowStepRow).where(FlowStepRow.flow_uid == uid))
    session.execute(delete(JobFlowRow).where(JobFlowRow.uid == uid))
    feed.record(session, feed.Change(KIND, str(uid), version, feed.DELETED, last))


def mirrored(session: Session, wanted: Collection[Key]) -> Sequence[StoredFlow]:
    """Those of these flows that exist."""
    named = tuple_(JobFlowRow.namespace, JobFlowRow.name)
    return [
        _to_stored(row)
        for row in session.scalars(select(JobFlowRow).where(named.in_(list(wanted))))
    ]


def all_keys(session: Session) -> Sequence[Key]:
    """The names of all flows."""
    rows = session.execute(select(JobFlowRow.namespace, JobFlowRow.name))
    return [Key(*row) for row in rows]


def follow(session: Session, flow: JobFlow, *, cr_uid: UUID, past: Past | None = None) -> None:
    """Store a custom resource as the flow of its name, which follows it from now on.

    If it is new here, and something became of it in the ``past``, then that is not done again.

    Raises:
        ExhaustedError: another flow of that name has jobs that must go first; it goes.
    """
    meta = flow.metadata
    values: dict[str, Any] = {
        "generation": meta.generation or 1,
        "origin": KUBE,
        "cr_uid": cr_uid,
        "labels": meta.labels or {},
        "annotations": meta.annotations or {},
        "spec": to_json(flow.spec),
    }
    key = Key(meta.namespace, meta.name)
    row = session.scalars(
        select(JobFlowRow)
        .where(JobFlowRow.namespace == key.namespace, JobFlowRow.name == key.name)
        .with_for_update()
    ).one_or_none()
    if row is not None and (row.cr_uid not in (None, cr_uid) or row.deleting_at is not None):
        if _has_jobs(session, row.uid):
            raise ExhaustedError(f"the flow {key} from before still has jobs")
        retire(session, row.uid)
        row = None
    if row is None:
        statement = insert(JobFlowRow).values(
            uid=cr_uid,
            namespace=key.namespace,
            name=key.name,
            **values,
            **_before(session, flow, past),
        )
        _made(session, session.scalars(statement.returning(JobFlowRow)).one(), flow, past)
    elif any(getattr(row, column) != value for column, value in values.items()):
        _changed(session, row.uid, values)


def _before(session: Session, flow: JobFlow, past: Past | None) -> dict[str, Any]:
    """Columns that tell of what was before a flow was stored."""
    at = now(session)
    made = flow.metadata.creation_timestamp
    values: dict[str, Any] = {}
    if made is not None:
        values["created_at"] = min(at, timestamps.from_text(made))
    if past is not None and past.status.state.phase in (FlowPhase.SUCCEED, FlowPhase.FAILED):
        values |= {
            "status": to_json(past.status),
            "phase": past.status.state.phase,
            "finished_at": at,
        }
    return values


def let_go(session: Session, uid: UUID) -> None:
    """The custom resource of a flow is gone: the flow goes too, its jobs first."""
    row = session.get(JobFlowRow, uid, populate_existing=True, with_for_update=True)
    if row is not None and (row.cr_uid is not None or row.deleting_at is None):
        going = row.deleting_at or now(session)
        _changed(session, uid, {"cr_uid": None, "deleting_at": going})


def _changed(session: Session, uid: UUID, values: Mapping[str, Any]) -> None:
    version = session.scalars(
        update(JobFlowRow)
        .where(JobFlowRow.uid == uid)
        .values(**values, version=JobFlowRow.version + 1)
        .returning(JobFlowRow.version)
    ).one()
    feed.record(session, feed.Change(KIND, str(uid), version, feed.MODIFIED))
    work.wake(session, KIND, str(uid), urgent=True)


def _has_jobs(session: Session, uid: UUID) -> bool:
    """Whether jobs of a flow exist, or may be on their way."""
    made = or_(FlowStepRow.job.is_not(None), FlowStepRow.job_uid.is_not(None))
    statement = select(FlowStepRow.name).where(
        FlowStepRow.flow_uid == uid, FlowStepRow.gone_at.is_(None), made
    )
    return session.scalars(statement.limit(1)).first() is not None


def past(session: Session, uid: UUID) -> JobFlow:
    """The removed flow of that uid.

    Raises:
        NotFoundError: none is remembered.
    """
    statement = (
        select(JobFlowHistoryRow.object)
        .where(JobFlowHistoryRow.uid == uid)
        .order_by(JobFlowHistoryRow.removed_at.desc())
        .limit(1)
    )
    found = session.scalars(statement).one_or_none()
    if found is None:
        raise NotFoundError(f"job flow {uid} does not exist, nor is it remembered")
    return JobFlow.model_validate(found)


def _to_stored(row: JobFlowRow) -> StoredFlow:
    return StoredFlow(
        uid=row.uid,
        flow=_to_flow(row),
        version=row.version,
        created_at=row.created_at,
        finished_at=row.finished_at,
        deleting_at=row.deleting_at,
        origin=row.origin,
        cr_uid=row.cr_uid,
    )


def _to_flow(row: JobFlowRow) -> JobFlow:
    return JobFlow.model_validate(
        {
            "apiVersion": names.FLOW_API_VERSION,
            "kind": "JobFlow",
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
            ),
            "spec": row.spec,
            "status": row.status or {"state": {"phase": row.phase}},
        }
    )
