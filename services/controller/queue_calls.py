"""What QueueService does, without gRPC."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple
from uuid import UUID, uuid4

from hekla.api.naming import named
from hekla.api.queue import Queue
from hekla.domain import selector
from hekla.domain.errors import (
    ConflictError,
    InvalidError,
    Violation,
)
from hekla.domain.phases import QueueState
from hekla.kube.mirror.deciding import Row
from hekla.kube.mirror.door import Call, Content, Door
from hekla.rpc.admission import CREATE, DELETE, UPDATE, Admission
from hekla.store import feed, queues
from hekla.store.database import Database, Session
from hekla.store.feed import Cursor
from hekla.store.objects import to_json
from hekla.store.once import Asking, done_before, once
from hekla.store.requests import Answered
from services.controller.mirror.queues import queue_key
from services.controller.queue_counts import QueueCounts
from services.controller.queue_states import CLOSE, OPEN, close, follow_parent, is_busy, open_

LOOK_SECONDS: Final = 10.0


class MadeQueue(NamedTuple):
    """A queue as it is stored, and what its user should be told."""

    queue: Queue
    warnings: Sequence[str]


class QueuePage(NamedTuple):
    """A page of queues, the name it ended with unless it was the last, and the cursor."""

    queues: Sequence[Queue]
    end: str
    cursor: Cursor


class QueueCalls:
    """Calls on queues."""

    def __init__(
        self,
        database: Database,
        admission: Admission,
        counts: QueueCounts,
        door: Door | None = None,
        closing: threading.Event | None = None,
    ) -> None:
        """See the class.

        Args:
            database: where queues are.
            admission: who judges them.
            counts: what is in them.
            door: by which custom resources are written, where there are any.
            closing: is set when somebody else has a queue closed.
        """
        self._door = door
        self._database = database
        self._admission = admission
        self._counts = counts
        self._closing = threading.Event() if closing is None else closing
        self._closing.set()  # as far as is known
        self._look_at = 0.0

    def create(self, queue: Queue, asking: Asking) -> MadeQueue:
        """Admit and store a queue."""
        return once(
            self._database, asking, lambda: self._create(queue, asking), self._made_before
        )

    def _create(self, queue: Queue, asking: Asking) -> MadeQueue:
        meta = named(queue.metadata, namespace="")
        admitted = self._admission.queue(CREATE, queue.model_copy(update={"metadata": meta}))
        if self._door is not None and self._door.used:
            row = self._door.post(_content(admitted.object), _call(asking))
            return self._written(row, asking, admitted.warnings)
        uid = uuid4()
        with self._database.transaction() as session:
            asking.note(session, uids=[uid], warnings=admitted.warnings)
            made = follow_parent(session, queues.make(session, admitted.object, uid=uid))
        return MadeQueue(made, admitted.warnings)

    def _written(self, row: Row, asking: Asking, warnings: Sequence[str]) -> MadeQueue:
        """A queue whose custom resource was written, and the note that it was."""
        with self._database.transaction() as session:
            asking.note(session, uids=[UUID(row.uid)], warnings=warnings)
            return MadeQueue(queues.get_by_uid(session, UUID(row.uid)), warnings)

    def _made_before(self, session: Session, answered: Answered) -> MadeQueue:
        return MadeQueue(queues.get_by_uid(session, answered.uids[0]), answered.warnings)

    def get(self, name: str) -> Queue:
        """The queue of that name, with its counts."""
        with self._database.transaction() as session:
            queue = queues.get(session, name)
        return self._counts.fill(queue)

    def page(
        self,
        *,
        after: str,
        limit: int,
        labels: str,
        states: Collection[str] = (),
        parent: str = "",
    ) -> QueuePage:
        """A page of queues, with their counts."""
        wanted = selector.parse(labels)
        with self._database.snapshot() as session:
            cursor = feed.start(session)
            rows = queues.page(
                session, after=after, states=states, parent=parent, limit=limit + 1
            )
        shown = [
            self._counts.fill(queue)
            for queue in rows[:limit]
            if wanted.matches(queue.metadata.labels or {})
        ]
        end = rows[limit - 1].metadata.name if len(rows) > limit else ""
        return QueuePage(shown, end, cursor)

    def update(
        self, queue: Queue, asking: Asking, *, expected_generation: int | None
    ) -> MadeQueue:
        """Admit and store a new spec for a queue that exists."""
        made = once(
            self._database,
            asking,
            lambda: self._update(queue, asking, expected_generation),
            self._made_before,
        )
        return MadeQueue(self._counts.fill(made.queue), made.warnings)

    def _update(
        self, queue: Queue, asking: Asking, expected_generation: int | None
    ) -> MadeQueue:
        name = queue.metadata.name
        if not name:
            raise InvalidError.of([Violation("metadata.name", "is required")])
        with self._database.transaction() as session:
            old = queues.get(session, name)
        generation = old.metadata.generation
        if expected_generation is not None and expected_generation != generation:
            raise ConflictError(
                f"queue {name} is at generation {generation}, not {expected_generation}"
            )
        admitted = self._admission.queue(UPDATE, queue, old)
        if self._door is not None and self._door.used:
            row = self._door.tied(queue_key(name))
            if row.generation != generation:
                raise ConflictError(f"queue {name} changed since it was read; try again")
            spec = admitted.object.spec
            if spec.parent is None:
                spec = spec.model_copy(update={"parent": old.spec.parent})
            wanted = admitted.object.model_copy(update={"spec": spec})
            row = self._door.change(_content(wanted), _call(asking), row)
            return self._written(row, asking, admitted.warnings)
        with self._database.transaction() as session:
            if queues.get(session, name).metadata.generation != generation:
                raise ConflictError(f"queue {name} changed since it was read; try again")
            asking.note(session, uids=[UUID(old.metadata.uid)], warnings=admitted.warnings)
            changed = queues.change(session, name, queue=admitted.object)
            changed = follow_parent(session, changed)
        return MadeQueue(changed, admitted.warnings)

    def delete(self, name: str, asking: Asking) -> None:
        """Delete a queue that nothing uses."""
        once(self._database, asking, lambda: self._delete(name, asking), done_before)

    def _delete(self, name: str, asking: Asking) -> None:
        with self._database.transaction() as session:
            old = queues.get(session, name)
        self._admission.queue(DELETE, old)
        if self._door is not None and self._door.used:
            with self._database.transaction() as session:
                queues.require_unused(session, name)
            self._door.delete(self._door.tied(queue_key(name)))
            with self._database.transaction() as session:
                asking.note(session)
            return
        with self._database.transaction() as session:
            asking.note(session)
            queues.remove(session, name)

    def command(self, name: str, action: str, asking: Asking) -> Queue:
        """Open or close a queue, and those below it; see :mod:`queue_states`."""
        if action not in (OPEN, CLOSE):
            raise InvalidError.of(
                [Violation("action", f"must be one of {OPEN}, {CLOSE}, is {action[:60]!r}")]
            )

        def act() -> Queue:
            with self._database.transaction() as session:
                queue = queues.get(session, name)
                asking.note(session, uids=[UUID(queue.metadata.uid)])
                return open_(session, queue) if action == OPEN else close(session, queue)

        def again(session: Session, answered: Answered) -> Queue:
            return queues.get_by_uid(session, answered.uids[0])

        changed = once(self._database, asking, act, again)
        if action == CLOSE:
            self._closing.set()
        return self._counts.fill(changed)

    def settle_once(self) -> bool:
        """Close queues that were waiting for their last job; nothing more to do for a while.

        Unless a queue is known to be closing, only now and then: another replica may have been
        asked, and be gone since.
        """
        if not self._closing.is_set() and time.monotonic() < self._look_at:
            return False
        self._closing.clear()
        with self._database.transaction() as session:
            closing = queues.in_state(session, QueueState.CLOSING)
            for queue in closing:
                if not is_busy(session, queue.metadata.name):
                    queues.change(session, queue.metadata.name, state=QueueState.CLOSED)
        if closing:
            self._closing.set()
        self._look_at = time.monotonic() + LOOK_SECONDS
        return False


def _content(queue: Queue) -> Content:
    """An admitted queue as a custom resource."""
    meta = queue.metadata
    return Content(
        key=queue_key(meta.name),
        spec=to_json(queue.spec),
        labels=meta.labels or {},
        annotations=meta.annotations or {},
    )


def _call(asking: Asking) -> Call:
    return Call.of(asking.method, asking.id, asking.body)
