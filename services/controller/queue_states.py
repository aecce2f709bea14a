"""Queues that open and close, and those below them with them.

A queue that is closed takes the open ones below it along, and marks them; when it opens, those
that are marked open with it, the parent first. One that still has jobs is Closing until they
are gone.
"""

from __future__ import annotations

from typing import Final

from hekla.api.queue import Queue
from hekla.domain import names
from hekla.domain.errors import NotFoundError, PreconditionError
from hekla.domain.phases import QueueState
from hekla.store import batch, jobs, pod_groups, queues
from hekla.store.database import Session

OPEN: Final = "OpenQueue"
CLOSE: Final = "CloseQueue"
"""What a queue can be told to do."""
ALWAYS_OPEN: Final = (names.ROOT_QUEUE, names.DEFAULT_QUEUE)
SHUT: Final = (QueueState.CLOSED, QueueState.CLOSING)
_CLOSED_WITH: Final = {names.CLOSED_BY_PARENT: "true"}
_OPENED_WITH: Final = {names.CLOSED_BY_PARENT: "false"}


def is_busy(session: Session, name: str) -> bool:
    """Whether jobs wait or run in the queue."""
    return jobs.exists_live_in_queue(session, name) or bool(
        pod_groups.page(session, queue=name, limit=1)
    )


def close(session: Session, queue: Queue) -> Queue:
    """Close a queue and all below it.

    Raises:
        PreconditionError: it is one of those that are always open.
    """
    name = queue.metadata.name
    if name in ALWAYS_OPEN:
        raise PreconditionError(f"queue {name} is always open")
    closed = queue
    if queue.status.state not in SHUT:
        closed = queues.change(session, name, state=_shut(session, name))
    for child in batch.answer(session, queues.below(name)):
        _close_with_parent(session, child)
    return closed


def _close_with_parent(session: Session, queue: Queue) -> None:
    name = queue.metadata.name
    if queue.status.state not in SHUT:
        state = _shut(session, name)
        queues.change(session, name, state=state, annotations=_CLOSED_WITH)
    for child in batch.answer(session, queues.below(name)):
        _close_with_parent(session, child)


def open_(session: Session, queue: Queue) -> Queue:
    """Open a queue, and those below it that were closed with it.

    Raises:
        PreconditionError: its parent is not open.
    """
    _require_open_parent(session, queue)
    name = queue.metadata.name
    opened = queues.change(session, name, state=QueueState.OPEN, annotations=_unmarked(queue))
    for child in batch.answer(session, queues.below(name)):
        if child.status.state in SHUT and _is_marked(child):
            open_(session, child)
    return opened


def follow_parent(session: Session, queue: Queue) -> Queue:
    """Close a queue that is open and was put below one that is not."""
    parent = batch.answer(session, queues.named(queue.spec.parent or names.ROOT_QUEUE))
    shut = parent is not None and parent.status.state in SHUT
    if not shut or queue.status.state in SHUT or queue.metadata.name in ALWAYS_OPEN:
        return queue
    _close_with_parent(session, queue)
    return queues.get(session, queue.metadata.name)


def _shut(session: Session, name: str) -> QueueState:
    return QueueState.CLOSING if is_busy(session, name) else QueueState.CLOSED


def _is_marked(queue: Queue) -> bool:
    return (queue.metadata.annotations or {}).get(names.CLOSED_BY_PARENT) == "true"


def _unmarked(queue: Queue) -> dict[str, str] | None:
    return _OPENED_WITH if _is_marked(queue) else None


def _require_open_parent(session: Session, queue: Queue) -> None:
    name, parent = queue.metadata.name, queue.spec.parent or names.ROOT_QUEUE
    if name == names.ROOT_QUEUE:
        return
    try:
        state = queues.get(session, parent).status.state
    except NotFoundError:
        raise PreconditionError(
            f"queue {name} cannot be opened: its parent {parent} does not exist"
        ) from None
    if state != QueueState.OPEN:
        raise PreconditionError(
            f"queue {name} cannot be opened: its parent {parent} is {state}"
        )
