"""Tells Kubernetes what happened to jobs that have a custom resource, as events of those.

What is told are the job's own events, each once: an event's name follows from which one it is.
Those of the last minutes are told again by a mirror that begins, and are there already. They
are for reading, nothing hangs on them: what cannot be told after some tries is left.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import Final, NamedTuple
from uuid import UUID

from hekla.domain import timestamps
from hekla.domain.errors import DomainError
from hekla.domain.names import Key
from hekla.kube import told
from hekla.kube.client import KubeClient
from hekla.kube.mirror.custom import Custom
from hekla.kube.resources import EVENTS, JOBS
from hekla.store import events
from hekla.store.database import Database

log = logging.getLogger(__name__)

COMPONENT: Final = "hekla-controller"
RECENT: Final = timedelta(minutes=10)
"""Older events are not told any more."""
AT_ONCE: Final = 100
"""Jobs whose events are read together."""
TRIES: Final = 5
TELL_EVERY: Final = timedelta(milliseconds=500)
TIMEOUT: Final = 10.0


class _Owed(NamedTuple):
    key: Key
    tries: int


class Telling:
    """For one term of the mirror. Its methods are for different threads."""

    def __init__(
        self, database: Database, kube: KubeClient, known: Callable[[Key], Custom | None]
    ) -> None:
        """``known`` is the custom resource of a job, if it has one."""
        self._database = database
        self._kube = kube
        self._known = known
        self._lock = threading.Lock()
        self._owed: dict[UUID, _Owed] = {}
        self._last: dict[UUID, int] = {}
        """The newest event that was told of each job."""

    def mark(self, jobs: Mapping[UUID, Key]) -> None:
        """There may be something to tell of these."""
        with self._lock:
            self._owed |= {uid: _Owed(key, 0) for uid, key in jobs.items()}

    def forget(self, uid: UUID) -> None:
        """The job is gone."""
        with self._lock:
            self._owed.pop(uid, None)
            self._last.pop(uid, None)

    def tell_once(self) -> bool:
        """Tell what is owed of some jobs; return whether more is owed."""
        with self._lock:
            some = {uid: self._owed.pop(uid) for uid in list(self._owed)[:AT_ONCE]}
            after = {uid: self._last.get(uid, 0) for uid in some}
        try:
            failed = self._tell(some, after) if some else set()
        except DomainError as error:
            log.info("events not told", extra={"error": str(error)})
            failed = set(some)
        with self._lock:
            for uid in failed:
                owed = some[uid]
                if owed.tries < TRIES:
                    self._owed.setdefault(uid, _Owed(owed.key, owed.tries + 1))
            return bool(self._owed) and not failed

    def _tell(self, some: Mapping[UUID, _Owed], after: Mapping[UUID, int]) -> set[UUID]:
        """Tell of these jobs; return those that were not told of whole."""
        with self._database.transaction() as session:
            news = events.since(session, after, within=RECENT)
        made, whose = [], []
        for uid, number, one in news:
            custom = self._known(some[uid].key)
            if custom is not None and one.at is not None:
                body = told.event(
                    JOBS,
                    custom.key,
                    custom.uid,
                    reason=one.reason,
                    message=one.message,
                    at=timestamps.to_text(one.at),
                    once=f"{uid}/{number}",
                    component=COMPONENT,
                    type_=one.type,
                )
                made.append(body)
                whose.append((uid, number))
        replies = self._kube.create_many(EVENTS, made, timeout=TIMEOUT)
        failed: set[UUID] = set()
        for (uid, number), reply in zip(whose, replies, strict=True):
            if not reply.ok and reply.status != HTTPStatus.CONFLICT:
                failed.add(uid)
            elif uid not in failed:
                with self._lock:
                    self._last[uid] = number
        return failed
