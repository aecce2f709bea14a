"""Carries placements out: first written down, then sent, then settled.

Once a bind may have been sent, its pod is that node's until the API server says otherwise:
the same bind is sent again, by this leader or the next, however long it takes. So a request
of ours that lands late finds its own work done, and no room is given away twice.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from operator import attrgetter
from typing import Final

from hekla import failpoint
from hekla.domain.errors import DomainError, PreconditionError
from hekla.kube.client import KubeClient
from hekla.kube.requests import Binding, Reply
from hekla.lifecycle import backoff
from hekla.store import binds
from hekla.store.binds import BindRecord
from hekla.store.database import Database
from hekla.telemetry import metrics
from services.scheduler.campaign import LEASE
from services.scheduler.events import Bound, Deposed, Event, Refused
from services.scheduler.verdict import Verdict, judge

CHUNK: Final = 1000
"""Rows written in one transaction, but never only a part of a group's."""

LONGEST_PAUSE: Final = timedelta(seconds=2)
"""Between two tries of one bind."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Order:
    """One bind on its way."""

    record: BindRecord
    tries: int = 0
    faults: int = 0
    """Answers that blamed the server."""


class Binder:
    """Binds pods, one batch after the other, in the order in which they were decided."""

    def __init__(
        self,
        database: Database,
        client: KubeClient,
        tell: Callable[[Event], None],
        *,
        timeout: timedelta,
        batch: int,
    ) -> None:
        self._database = database
        self._client = client
        self._tell = tell
        self._timeout = timeout.total_seconds()
        self._batch = batch
        self._lock = threading.Lock()
        self._turns = itertools.count()
        self._busy = False
        self._failed = False
        self._epoch: int | None = None
        self._decided: deque[list[BindRecord]] = deque()
        """Not written down yet, group by group."""
        self._recorded: deque[_Order] = deque()
        self._later: list[tuple[float, int, _Order]] = []
        """Recorded, to be sent again from an instant on."""
        self._bound: list[str] = []
        self._refused: list[str] = []
        self.wake = threading.Event()

    # The scheduling thread's side.

    def begin(self, epoch: int) -> None:
        """A term begins."""
        with self._lock:
            self._epoch = epoch

    def submit(self, records: Sequence[BindRecord]) -> None:
        """Carry out placements of this term; a group's come one after the other."""
        groups = [list(some) for _, some in groupby(records, attrgetter("group_uid"))]
        with self._lock:
            if self._epoch is not None:
                self._decided.extend(groups)
        self.wake.set()

    def resume(self, records: Iterable[BindRecord]) -> None:
        """Carry out placements that an earlier term has written down."""
        with self._lock:
            if self._epoch is not None:
                self._recorded.extend(_Order(record) for record in records)
        self.wake.set()

    def settle(self, *, bound: Iterable[str] = (), refused: Iterable[str] = ()) -> None:
        """Note in the store what became of recorded placements."""
        with self._lock:
            if self._epoch is not None:
                self._bound.extend(bound)
                self._refused.extend(refused)
        self.wake.set()

    def end(self) -> None:
        """The term is over: send nothing more. What is recorded is the next leader's."""
        with self._lock:
            self._epoch = None
            self._decided.clear()
            self._recorded.clear()
            self._later.clear()
            self._bound.clear()
            self._refused.clear()

    def at_rest(self) -> bool:
        """Whether the term has ended and nothing of it is under way."""
        with self._lock:
            return self._epoch is None and not self._busy

    def done(self) -> bool:
        """Whether there is nothing to do now."""
        with self._lock:
            waiting = self._decided or self._recorded or self._later
            return not (waiting or self._bound or self._refused or self._busy)

    # The binder's own thread.

    def look(self) -> bool:
        """Do one step of what there is to do; return whether there may be more at once."""
        with self._lock:
            epoch = self._epoch
            self._busy = epoch is not None
        if epoch is None:
            return False
        try:
            self._write(epoch)
            self._send(epoch)
        except PreconditionError as error:
            self._tell(Deposed(epoch, str(error)))
            return False
        except DomainError as error:
            if not self._failed:
                log.warning("binds held up", extra={"epoch": epoch, "reason": str(error)})
            self._failed = True
            return False
        else:
            self._failed = False
            with self._lock:
                # What is to be settled waits for what is decided next, or the next look.
                return bool(self._decided or self._recorded)
        finally:
            with self._lock:
                self._busy = False

    def _write(self, epoch: int) -> None:
        """Write down what was decided, and what became of earlier binds, in one go."""
        chunk: list[BindRecord] = []
        groups: list[list[BindRecord]] = []
        with self._lock:
            while self._decided and len(chunk) < CHUNK:
                groups.append(self._decided.popleft())
                chunk.extend(groups[-1])
            bound, refused = list(self._bound), list(self._refused)
        if not (chunk or bound or refused):
            return
        written = False
        try:
            with self._database.transaction() as session:
                # Settled first: what was refused may have been decided anew. An old leader
                # that wakes up settles nothing, for it must not record what it would.
                binds.settle(session, bound=bound, failed=refused)
                binds.record(session, LEASE, epoch=epoch, binds=chunk)
            written = True
        finally:
            with self._lock:
                if self._epoch == epoch and written:
                    self._recorded.extend(_Order(record) for record in chunk)
                    del self._bound[: len(bound)]
                    del self._refused[: len(refused)]
                elif self._epoch == epoch:
                    # Perhaps it is written all the same; to do it again changes nothing.
                    self._decided.extendleft(reversed(groups))
        if chunk:
            failpoint.hit("scheduler.recorded")

    def _send(self, epoch: int) -> None:
        orders = self._due(epoch)
        if not orders:
            return
        wanted = [
            Binding(it.record.namespace, it.record.pod_name, it.record.pod_uid, it.record.node)
            for it in orders
        ]
        replies: Sequence[Reply] | None = None
        try:
            replies = self._client.bind_many(wanted, timeout=self._timeout)
        finally:
            with self._lock:
                if replies is None and self._epoch == epoch:
                    self._recorded.extendleft(reversed(orders))
        with self._lock:
            if self._epoch != epoch:
                return
            events = [
                event
                for order, reply in zip(orders, replies, strict=True)
                for event in self._judged(epoch, order, reply)
            ]
        for event in events:
            self._tell(event)
        if events:
            failpoint.hit("scheduler.bound")

    def _due(self, epoch: int) -> list[_Order]:
        now = time.monotonic()
        orders: list[_Order] = []
        with self._lock:
            if self._epoch != epoch:
                return []
            while self._later and self._later[0][0] <= now and len(orders) < self._batch:
                orders.append(heapq.heappop(self._later)[2])
            while self._recorded and len(orders) < self._batch:
                orders.append(self._recorded.popleft())
        return orders

    def _judged(self, epoch: int, order: _Order, reply: Reply) -> Iterable[Event]:
        order.tries += 1
        order.faults += reply.status >= 500
        uid = order.record.pod_uid
        verdict = judge(reply, order.faults)
        metrics.binds.labels(verdict.name.lower()).inc()
        match verdict:
            case Verdict.BOUND:
                self._bound.append(uid)
                yield Bound(epoch, uid)
            case Verdict.REFUSED:
                self._refused.append(uid)
                reason = f"{reply.status} {reply.reason}: {reply.message}"
                log.warning(
                    "bind refused",
                    extra={
                        "pod": f"{order.record.namespace}/{order.record.pod_name}",
                        "node": order.record.node,
                        "reason": reason,
                    },
                )
                yield Refused(epoch, uid, gone=reply.status == 404)
            case Verdict.AGAIN | Verdict.FENCED:
                pause = min(backoff(order.tries), LONGEST_PAUSE)
                due = time.monotonic() + pause.total_seconds()
                heapq.heappush(self._later, (due, next(self._turns), order))
