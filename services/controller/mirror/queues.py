"""Queues as the mirror sees them: rows that follow custom resources, wherever there are any."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Final

from hekla.api.queue import Queue
from hekla.domain import names
from hekla.domain.errors import ConflictError, PreconditionError
from hekla.domain.names import Key
from hekla.kube.mirror.custom import Custom
from hekla.kube.mirror.deciding import (
    Adopt,
    Gone,
    Insert,
    Removed,
    Replace,
    Row,
    RowStep,
    Rules,
    Source,
    Update,
    moved,
)
from hekla.kube.mirror.engine import Engine
from hekla.kube.mirror.following import follow
from hekla.kube.mirror.rows import Mirrored
from hekla.kube.resources import QUEUES
from hekla.rpc.admission import CREATE, UPDATE, Admission
from hekla.store import pod_groups, queues
from hekla.store.database import Database, Session
from hekla.store.hub import Item
from hekla.store.objects import KUBE, to_json
from services.controller.mirror.jobs import Hold, held
from services.controller.mirror.reading import to_birth, to_object, to_uid
from services.controller.queue_counts import QueueCounts
from services.controller.queue_states import ALWAYS_OPEN, SHUT, close, follow_parent, is_busy

COUNT_EVERY: Final = timedelta(seconds=1)


def queue_key(name: str) -> Key:
    """How the mirror names a queue."""
    return Key("", name)


class QueueRows:
    """The rows of queues."""

    def __init__(
        self,
        database: Database,
        counts: QueueCounts,
        admission: Admission,
        hold: Hold,
    ) -> None:
        """See the class; ``hold`` proves in a transaction that this process mirrors."""
        self._database = database
        self._admission = admission
        self._counts = counts
        self._hold = hold

    def read(self, keys: Collection[Key]) -> Mapping[Key, Row]:
        """The rows of these names that there are."""
        with self._database.transaction() as session:
            found = queues.mirrored(session, [key.name for key in keys])
        return {queue_key(one.queue.metadata.name): self._row(one) for one in found}

    def keys(self) -> Collection[Key]:
        """The names of all queues."""
        with self._database.transaction() as session:
            return [queue_key(name) for name in queues.all_names(session)]

    def take(self, step: RowStep) -> None:
        """Do one step.

        Raises:
            InvalidError: the custom resource is no queue.
            PreconditionError: its queue cannot go yet.
        """
        if isinstance(step, Gone):
            self._end(step.row)
        else:
            self.take_many([step])

    def take_many(self, steps: Sequence[RowStep]) -> None:
        """Do steps, all or none."""
        if any(isinstance(step, Gone) for step in steps):
            raise ConflictError("queues go one by one")
        read = [
            (self._reviewed(step), step.custom)
            for step in steps
            if not isinstance(step, Gone | Removed)
        ]
        with self._database.transaction() as session:
            held(self._hold, session)
            for queue, custom in read:
                stored = queues.follow(
                    session,
                    queue,
                    cr_uid=to_uid(custom),
                    generation=custom.generation,
                    created_at=to_birth(custom),
                )
                follow_parent(session, stored)

    def _reviewed(self, step: Insert | Replace | Update | Adopt) -> Queue:
        """The queue that a custom resource is, admitted: a webhook may have been away."""
        queue = to_object(Queue, step.custom)
        meta = queue.metadata
        if isinstance(step, Update):
            with self._database.transaction() as session:
                before = queues.get(session, meta.name)
            queue = self._admission.queue(UPDATE, queue, before).object
        elif not isinstance(step, Adopt):  # what is stored already stays a queue
            queue = self._admission.queue(CREATE, queue).object
        return queue.model_copy(update={"metadata": meta})

    def _end(self, row: Row) -> None:
        """Its custom resource is gone: the queue goes too, when nothing uses it any more."""
        name = row.key.name
        with self._database.transaction() as session:
            held(self._hold, session)
            if [str(one.uid) for one in queues.mirrored(session, [name])] != [row.uid]:
                return  # it was done before
            if name in ALWAYS_OPEN:
                queues.untie(session, name)  # and it is made again
                return
            why = _users(session, name)
            if why is None:
                queues.drop(session, name)
                return
            queue = queues.get(session, name)
            if queue.status.state not in SHUT:
                close(session, queue)
        raise PreconditionError(f"queue {name} was deleted, and goes when {why}")

    def _row(self, one: queues.Mirrored) -> Row:
        queue = self._counts.fill(one.queue)
        meta = queue.metadata
        return Row(
            key=queue_key(meta.name),
            uid=str(one.uid),
            source=Source.CUSTOM if one.origin == KUBE else Source.ROW,
            custom_uid=str(one.cr_uid) if one.cr_uid is not None else "",
            generation=meta.generation or 1,
            labels=meta.labels or {},
            annotations=_without_ours(meta.annotations or {}),
            spec=to_json(queue.spec),
            status=to_json(queue.status),
        )


def _users(session: Session, name: str) -> str | None:
    """What keeps a queue from going, in words that follow *when*."""
    if is_busy(session, name):
        return "its jobs are gone"
    below = queues.children(session, name)
    return f"{', '.join(below)} below it are gone" if below else None


def _without_ours(annotations: Mapping[str, str]) -> dict[str, str]:
    """Annotations without that which tells how a queue came to its state: that is the row's."""
    return {key: value for key, value in annotations.items() if key != names.CLOSED_BY_PARENT}


def _behind(custom: Custom, row: Row) -> bool:
    """Whether a row is behind its custom resource."""
    meta = custom.raw.get("metadata") or {}
    shown = {**meta, "annotations": _without_ours(custom.annotations)}
    bare = Custom(
        key=custom.key,
        uid=custom.uid,
        version=custom.version,
        generation=custom.generation,
        raw={**custom.raw, "metadata": shown},
    )
    return moved(bare, row)


def mirrored_queues(
    database: Database, admission: Admission, hold: Hold, counts: QueueCounts
) -> Mirrored:
    """Queues, as the mirror takes them."""
    rows = QueueRows(database, counts, admission, hold)
    return Mirrored(QUEUES, rows, rules=Rules(behind=_behind), decide=follow)


class Counting:
    """Has queues looked at when their rows, or the groups in them, change."""

    def __init__(self, engine: Engine, counts: QueueCounts) -> None:
        self._engine = engine
        self._counts = counts
        self._stale = threading.Event()

    def take(self, items: Sequence[Item]) -> None:
        """Hear of changed rows, of queues and pod groups."""
        of_queues = [item for item in items if item.kind == queues.KIND]
        self._engine.mark(queue_key(_name(item.object)) for item in of_queues)
        if any(item.kind == pod_groups.KIND for item in items):
            self._stale.set()

    def look_at_all(self) -> None:
        """Changes may have been missed."""
        self._stale.set()
        self._engine.mark_all()

    def count_once(self) -> bool:
        """Count again if something changed. Repeat it, but not more often than statuses go."""
        if self._stale.is_set():
            self._stale.clear()
            self._engine.mark(map(queue_key, self._counts.recount()))
        return False


def _name(found: Queue | Mapping[str, Mapping[str, str]]) -> str:
    """Of a queue, or of the last state of one."""
    return found.metadata.name if isinstance(found, Queue) else found["metadata"]["name"]
