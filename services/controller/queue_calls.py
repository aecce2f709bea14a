"""What QueueService does, without gRPC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import uuid4

from hekla.api.queue import Queue
from hekla.domain import names, selector
from hekla.domain.errors import (
    ConflictError,
    InvalidError,
    NotFoundError,
    PreconditionError,
    Violation,
)
from hekla.domain.phases import QueueState
from hekla.store import feed, jobs, pod_groups, queues, requests
from hekla.store.database import Database, Session
from hekla.store.feed import Cursor
from hekla.store.requests import RequestKey
from services.controller.clients import CREATE, DELETE, UPDATE, Admission
from services.controller.job_calls import CALLER
from services.controller.queue_counts import QueueCounts

OPEN: Final = "OpenQueue"
CLOSE: Final = "CloseQueue"


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

    def __init__(self, database: Database, admission: Admission, counts: QueueCounts) -> None:
        self._database = database
        self._admission = admission
        self._counts = counts

    def create(self, queue: Queue, *, request_id: str, body: bytes) -> MadeQueue:
        """Admit and store a queue, once for each request id."""
        key = RequestKey(CALLER, "CreateQueue", request_id)
        with self._database.transaction() as session:
            found = requests.find(session, key, body)
            if found is not None:
                return MadeQueue(queues.get_by_uid(session, found.uids[0]), found.warnings)
        admitted = self._admission.queue(CREATE, queue)
        uid = uuid4()
        with self._database.transaction() as session:
            if not requests.record(session, key, body, uids=[uid], warnings=admitted.warnings):
                raise ConflictError("the same request is under way; try again")
            made = queues.make(session, admitted.queue, uid=uid)
        return MadeQueue(made, admitted.warnings)

    def get(self, name: str) -> Queue:
        """The queue of that name, with its counts."""
        with self._database.transaction() as session:
            queue = queues.get(session, name)
        return self._counts.fill(queue)

    def page(self, *, after: str, limit: int, labels: str) -> QueuePage:
        """A page of queues, with their counts."""
        wanted = selector.parse(labels)
        with self._database.snapshot() as session:
            cursor = feed.start(session)
            rows = queues.page(session, after=after, limit=limit + 1)
        shown = [
            self._counts.fill(queue)
            for queue in rows[:limit]
            if wanted.matches(queue.metadata.labels or {})
        ]
        end = rows[limit - 1].metadata.name if len(rows) > limit else ""
        return QueuePage(shown, end, cursor)

    def update(self, queue: Queue, *, expected_generation: int | None) -> MadeQueue:
        """Admit and store a new spec for a queue that exists."""
        name = queue.metadata.name
        with self._database.transaction() as session:
            old = queues.get(session, name)
        generation = old.metadata.generation
        if expected_generation is not None and expected_generation != generation:
            raise ConflictError(
                f"queue {name} is at generation {generation}, not {expected_generation}"
            )
        admitted = self._admission.queue(UPDATE, queue, old)
        with self._database.transaction() as session:
            if queues.get(session, name).metadata.generation != generation:
                raise ConflictError(f"queue {name} changed since it was read; try again")
            changed = queues.change(session, name, queue=admitted.queue)
        return MadeQueue(self._counts.fill(changed), admitted.warnings)

    def delete(self, name: str) -> None:
        """Delete a queue that nothing uses."""
        with self._database.transaction() as session:
            old = queues.get(session, name)
        self._admission.queue(DELETE, old)
        with self._database.transaction() as session:
            queues.remove(session, name)

    def command(self, name: str, action: str) -> Queue:
        """Open or close a queue. One that still has jobs is Closing until they are gone."""
        if action not in (OPEN, CLOSE):
            raise InvalidError.of(
                [Violation("action", f"must be one of {OPEN}, {CLOSE}, is {action!r}")]
            )
        with self._database.transaction() as session:
            if action == OPEN:
                _require_open_parent(session, queues.get(session, name))
                changed = queues.change(session, name, state=QueueState.OPEN)
            else:
                if name in (names.ROOT_QUEUE, names.DEFAULT_QUEUE):
                    raise PreconditionError(f"queue {name} is always open")
                busy = is_busy(session, name)
                state = QueueState.CLOSING if busy else QueueState.CLOSED
                changed = queues.change(session, name, state=state)
        return self._counts.fill(changed)

    def settle_once(self) -> bool:
        """Close queues that were waiting for their last job; nothing more to do for a while."""
        with self._database.transaction() as session:
            for queue in queues.in_state(session, QueueState.CLOSING):
                if not is_busy(session, queue.metadata.name):
                    queues.change(session, queue.metadata.name, state=QueueState.CLOSED)
        return False


def is_busy(session: Session, name: str) -> bool:
    """Whether jobs wait or run in the queue."""
    return jobs.exists_live_in_queue(session, name) or bool(
        pod_groups.page(session, queue=name, limit=1)
    )


def _require_open_parent(session: Session, queue: Queue) -> None:
    parent = queue.spec.parent or names.ROOT_QUEUE
    if queue.metadata.name == names.ROOT_QUEUE:
        return
    try:
        state = queues.get(session, parent).status.state
    except NotFoundError:
        raise PreconditionError(
            f"queue {queue.metadata.name} cannot be opened: its parent {parent} does not exist"
        ) from None
    if state != QueueState.OPEN:
        raise PreconditionError(
            f"queue {queue.metadata.name} cannot be opened: its parent {parent} is {state}"
        )
