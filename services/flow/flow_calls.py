"""What JobFlowService does, without gRPC: admission, request ids, transactions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple
from uuid import UUID, uuid4

from hekla.api.job_flow import JobFlow
from hekla.api.naming import named
from hekla.domain import selector
from hekla.domain.errors import (
    ConflictError,
    InvalidError,
    NotFoundError,
    PreconditionError,
    Violation,
)
from hekla.domain.names import Key
from hekla.domain.phases import FlowPhase
from hekla.kube.mirror.deciding import Row
from hekla.kube.mirror.door import Door
from hekla.rpc.admission import CREATE, UPDATE, Admission
from hekla.store import feed, job_flows
from hekla.store.database import Database, Session
from hekla.store.feed import Cursor
from hekla.store.job_flows import StoredFlow
from hekla.store.objects import Place
from hekla.store.once import Asking, once
from hekla.store.requests import Answered
from hekla.store.scanning import scan
from services.flow.mirror.reading import to_call, to_content


class MadeFlow(NamedTuple):
    """A flow as it is stored, and what its user should be told."""

    flow: JobFlow
    warnings: Sequence[str]


class FlowPage(NamedTuple):
    """A page of flows, where it ended unless it was the last, and where to watch from."""

    flows: Sequence[JobFlow]
    end: Place | None
    cursor: Cursor


class FlowCalls:
    """Calls on flows."""

    def __init__(
        self, database: Database, admission: Admission, door: Door | None = None
    ) -> None:
        """See the class; by the ``door`` custom resources are written where there are any."""
        self._database = database
        self._admission = admission
        self._door = door

    def create(self, flow: JobFlow, asking: Asking) -> MadeFlow:
        """Admit and store a flow."""
        return once(self._database, asking, lambda: self._create(flow, asking), _made_before)

    def _create(self, flow: JobFlow, asking: Asking) -> MadeFlow:
        meta = named(flow.metadata)
        admitted = self._admission.job_flow(CREATE, flow.model_copy(update={"metadata": meta}))
        if self._door is not None and self._door.used:
            row = self._door.post(to_content(admitted.object), to_call(asking))
            return self._written(row, asking, admitted.warnings)
        uid = uuid4()
        with self._database.transaction() as session:
            asking.note(session, uids=[uid], warnings=admitted.warnings)
            stored = job_flows.make(session, admitted.object, uid=uid)
        return MadeFlow(stored.flow, admitted.warnings)

    def _written(self, row: Row, asking: Asking, warnings: Sequence[str]) -> MadeFlow:
        """A flow whose custom resource was written, and the note that it was."""
        with self._database.transaction() as session:
            asking.note(session, uids=[UUID(row.uid)], warnings=warnings)
            return MadeFlow(_by_uid(session, UUID(row.uid)), warnings)

    def get(self, *, uid: UUID | None, key: Key | None) -> JobFlow:
        """A flow that exists; by uid also one that was removed."""
        with self._database.transaction() as session:
            if uid is not None:
                return _by_uid(session, uid)
            assert key is not None
            return job_flows.get(session, key).flow

    def page(
        self,
        *,
        namespace: str,
        phases: Collection[str],
        labels: str,
        after: Place | None,
        limit: int,
    ) -> FlowPage:
        """A page of flows that match."""
        unknown = [phase for phase in phases if phase not in list(FlowPhase)]
        if unknown:
            message = f"must be of {', '.join(FlowPhase)}, is {unknown[0]!r}"
            raise InvalidError.of([Violation("phases", message)])
        wanted = selector.parse(labels)
        with self._database.snapshot() as session:
            cursor = feed.start(session)
            found = scan(
                lambda place, count: job_flows.page(
                    session, namespace=namespace, phases=phases, after=place, limit=count
                ),
                matches=lambda row: wanted.matches(row.flow.metadata.labels or {}),
                place=lambda row: Place(row.created_at, row.uid),
                after=after,
                limit=limit,
                filtered=bool(labels),
            )
        return FlowPage([row.flow for row in found.rows], found.end, cursor)

    def update(
        self, flow: JobFlow, asking: Asking, *, expected_generation: int | None
    ) -> MadeFlow:
        """Admit and store a new spec for a flow that exists."""
        return once(
            self._database,
            asking,
            lambda: self._update(flow, asking, expected_generation),
            _made_before,
        )

    def _update(
        self, flow: JobFlow, asking: Asking, expected_generation: int | None
    ) -> MadeFlow:
        if not flow.metadata.name:
            raise InvalidError.of([Violation("metadata.name", "is required")])
        key = Key(flow.metadata.namespace or "default", flow.metadata.name)
        with self._database.transaction() as session:
            stored = job_flows.get(session, key)
        if flow.metadata.uid and flow.metadata.uid != str(stored.uid):
            raise ConflictError(f"job flow {key} is another one now, with the uid {stored.uid}")
        generation = stored.flow.metadata.generation
        if expected_generation is not None and expected_generation != generation:
            raise ConflictError(
                f"job flow {key} is at generation {generation}, not {expected_generation}"
            )
        _require_staying(stored)
        meta = named(flow.metadata)
        admitted = self._admission.job_flow(
            UPDATE, flow.model_copy(update={"metadata": meta}), stored.flow
        )
        if self._door is not None and self._door.used:
            row = self._door.tied(key)
            if row.generation != generation:
                raise ConflictError(f"job flow {key} changed since it was read; try again")
            row = self._door.change(to_content(admitted.object), to_call(asking), row)
            return self._written(row, asking, admitted.warnings)
        with self._database.transaction() as session:
            # The version moves with every status; users are held to the generation alone.
            current = job_flows.get_by_uid(session, stored.uid, to_change=True)
            if current.flow.metadata.generation != generation:
                raise ConflictError(f"job flow {key} changed since it was read; try again")
            _require_staying(current)
            asking.note(session, uids=[stored.uid], warnings=admitted.warnings)
            if _same(current.flow, admitted.object):
                return MadeFlow(current.flow, admitted.warnings)
            changed = job_flows.change(session, current, admitted.object)
        return MadeFlow(changed.flow, admitted.warnings)

    def delete(self, key: Key, asking: Asking, *, uid: UUID | None) -> JobFlow:
        """Have a flow removed, and its jobs first; its custom resource goes with it."""

        def act() -> JobFlow:
            with self._database.transaction() as session:
                stored = job_flows.get(session, key)
                if uid is not None and uid != stored.uid:
                    message = f"job flow {key} with the uid {uid} does not exist any more"
                    raise NotFoundError(message)
                asking.note(session, uids=[stored.uid])
                return job_flows.mark_deleting(session, stored.uid).flow

        return once(self._database, asking, act, _flow_before)


def _require_staying(stored: StoredFlow) -> None:
    if stored.deleting_at is not None:
        raise PreconditionError(f"job flow {stored.key} is being deleted")


def _same(one: JobFlow, other: JobFlow) -> bool:
    """Whether an update from one to the other changes nothing."""
    return one.spec == other.spec and all(
        (getattr(one.metadata, part) or {}) == (getattr(other.metadata, part) or {})
        for part in ("labels", "annotations")
    )


def _made_before(session: Session, answered: Answered) -> MadeFlow:
    return MadeFlow(_by_uid(session, answered.uids[0]), answered.warnings)


def _flow_before(session: Session, answered: Answered) -> JobFlow:
    return _by_uid(session, answered.uids[0])


def _by_uid(session: Session, uid: UUID) -> JobFlow:
    try:
        return job_flows.get_by_uid(session, uid).flow
    except NotFoundError:
        return job_flows.past(session, uid)
