"""Writes what the controller tells of flows' jobs into their steps, and wakes the flows.

Every replica has one observer; they write the same things, and the rows take each once. A
stream that begins anew tells of all jobs there are first; of those it does not tell of, the
controller is asked what became. A job that comes after its flow was removed is deleted.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final
from uuid import UUID

from hekla.api.job import Job
from hekla.domain.errors import CursorExpiredError, DomainError, NotFoundError
from hekla.domain.names import Key
from hekla.lifecycle import repeating
from hekla.store import flow_steps, job_flows, job_templates, work
from hekla.store.database import Database
from hekla.store.flow_steps import StepJob
from services.flow.clients import BOOKMARK, DELETED, Controller, News
from services.flow.core.jobs import flow_of, forgotten, request_id
from services.flow.seeing import see

RETRY: Final = timedelta(milliseconds=500)
SILENCE_SECONDS: Final = 30.0
DELETE_TIMEOUT: Final = 10.0

log = logging.getLogger(__name__)


class Observer:
    """Follows jobs; one a process."""

    def __init__(self, database: Database, controller: Controller) -> None:
        self._database = database
        self._controller = controller
        self._stop = threading.Event()
        self._cursor = ""
        self._listed = False
        self._heard_at: float | None = None
        self._failure = "jobs were not listed yet"

    def problem(self) -> str | None:
        """Why what is known of jobs may be old, or None: a readiness check."""
        if not self._listed or self._heard_at is None:
            return self._failure
        silence = time.monotonic() - self._heard_at
        return (
            f"nothing heard of jobs for {silence:.0f} s" if silence > SILENCE_SECONDS else None
        )

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follow jobs until the block ends; close the controller first, or it takes a while."""
        with repeating("jobs", self.follow_once, idle=RETRY, stop=self._stop):
            try:
                yield
            finally:
                self._stop.set()

    def stop(self) -> None:
        """Do not connect again."""
        self._stop.set()

    def follow_once(self) -> bool:
        """Follow one stream to its end; return whether another is to be opened at once."""
        heard = False
        try:
            with self._controller.watch(self._cursor) as news:
                for _ in self.take(news):
                    heard = True
                    self._heard_at = time.monotonic()
        except CursorExpiredError as error:
            log.warning("jobs are listed anew", extra={"reason": str(error)})
            self._cursor, self._listed = "", False
            return True
        except DomainError as error:
            self._failure = f"jobs are not seen: {error}"
        self._heard_at = None
        return heard and not self._stop.is_set()

    def take(self, news: Iterator[News]) -> Iterator[None]:
        """Write down what is told, one at a time."""
        listed: set[UUID] = set()
        for cursor, type_, job in news:
            if job is not None:
                self.tell(job, gone=type_ == DELETED)
            if self._listed:
                self._cursor = cursor
            elif type_ == BOOKMARK:
                self.look_for(listed)
                self._listed = True
                # Only from here on does a cursor stand for all that came before.
                self._cursor = cursor
                log.info("jobs listed", extra={"jobs": len(listed)})
            elif job is not None:
                listed.add(UUID(job.metadata.uid))
            yield

    def tell(self, job: Job, *, gone: bool) -> None:
        """Write down what became of a job, if it is a step's."""
        flow = flow_of(job)
        if flow is not None:
            self._write(flow, job, gone=gone)

    def _write(self, flow: UUID, job: Job, *, gone: bool) -> None:
        with self._database.transaction() as session:
            step = see(session, flow, job, gone=gone)
            if step is not None:
                # Templates before flows: see ``job_templates``.
                job_templates.wake(session, job.metadata.namespace, [step])
                work.wake(session, job_flows.KIND, str(flow))
                return
            orphan = not gone and flow_steps.is_orphan(session, flow)
        if orphan and job.metadata.deletion_timestamp is None:
            self._delete(flow, job)

    def look_for(self, listed: set[UUID]) -> None:
        """Find out what became of jobs that were not told of."""
        with self._database.transaction() as session:
            missing = [one for one in flow_steps.present(session) if one.job_uid not in listed]
        for one in missing:
            self._look_for(one)

    def _look_for(self, one: StepJob) -> None:
        found = self._controller.named(Key(one.namespace, one.job_name))
        there = found is not None and found.metadata.uid == str(one.job_uid)
        job = found if there else self._controller.remembered(one.job_uid)
        key = Key(one.namespace, one.job_name)
        self._write(one.flow_uid, job or forgotten(key, one.job_uid), gone=not there)

    def _delete(self, flow: UUID, job: Job) -> None:
        meta = job.metadata
        log.warning("job of a removed flow is deleted", extra={"job": meta.uid})
        asked = request_id(flow, meta.uid, 0, "orphan")
        try:
            self._controller.delete(
                Key(meta.namespace, meta.name),
                UUID(meta.uid),
                request_id=asked,
                timeout=DELETE_TIMEOUT,
            )
        except NotFoundError:
            return
