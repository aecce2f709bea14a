"""What JobService does, without gRPC: admission, request ids, transactions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from hekla.api.job import Job
from hekla.api.naming import named
from hekla.domain import selector
from hekla.domain.errors import (
    ConflictError,
    InvalidError,
    NotFoundError,
    Violation,
)
from hekla.domain.names import Key
from hekla.domain.trigger import Command
from hekla.kube.mirror.door import Call, Door
from hekla.rpc.admission import UPDATE, Admission
from hekla.store import commands, feed, history, jobs
from hekla.store.database import Database, Session
from hekla.store.feed import Cursor
from hekla.store.jobs import Period, StoredJob
from hekla.store.objects import KUBE, Place
from hekla.store.once import Asking, once
from hekla.store.requests import Answered
from services.controller.creating import Creating, Made
from services.controller.job_commands import check_command, require_staying
from services.controller.mirror.reading import job_to_content, stored_to_row

SCANNED_AT_ONCE: Final = 500
MOST_SCANNED: Final = 5_000
"""Jobs that one call reads to find those with the labels asked for; the next goes on."""


class JobPage(NamedTuple):
    """A page of jobs, where it ended unless it was the last, and where to watch from."""

    jobs: Sequence[Job]
    end: Place | None
    cursor: Cursor


class JobCalls:
    """Calls on jobs."""

    def __init__(
        self,
        database: Database,
        admission: Admission,
        *,
        door: Door | None = None,
        most_scanned: int = MOST_SCANNED,
    ) -> None:
        """See the class; by the ``door`` custom resources are written that jobs follow."""
        self._door = door
        self._database = database
        self._admission = admission
        self._creating = Creating(database, admission)
        self._most_scanned = most_scanned

    def create(self, job: Job, asking: Asking) -> Made:
        """Admit and store a job."""
        return once(
            self._database,
            asking,
            lambda: self._creating.create(_named(job), asking),
            _made_before,
        )

    def get(self, *, uid: UUID | None, key: Key | None) -> Job:
        """A job that exists; by uid also one that was removed."""
        with self._database.transaction() as session:
            if uid is not None:
                return _by_uid(session, uid)
            assert key is not None
            return jobs.get(session, key).job

    def page(
        self,
        *,
        namespace: str,
        queue: str,
        phases: Collection[str],
        labels: str,
        created: Period = jobs.ALWAYS,
        finished: Period = jobs.ALWAYS,
        after: Place | None,
        limit: int,
    ) -> JobPage:
        """A page of jobs that match."""
        wanted = selector.parse(labels)
        at_once = min(SCANNED_AT_ONCE, self._most_scanned) if labels else limit + 1
        found: list[StoredJob] = []
        scanned = 0
        end: Place | None = None
        with self._database.snapshot() as session:
            cursor = feed.start(session)
            while len(found) <= limit and scanned < self._most_scanned:
                rows = jobs.page(
                    session,
                    namespace=namespace,
                    queue=queue,
                    phases=phases,
                    created=created,
                    finished=finished,
                    after=end or after,
                    limit=at_once,
                )
                found += [row for row in rows if wanted.matches(row.job.metadata.labels or {})]
                scanned += len(rows)
                end = Place(rows[-1].created_at, rows[-1].uid) if rows else None
                if len(rows) < at_once:
                    end = None
                    break
        if len(found) > limit:
            last = found[limit - 1]
            end = Place(last.created_at, last.uid)
        return JobPage([row.job for row in found[:limit]], end, cursor)

    def update(self, job: Job, asking: Asking, *, expected_generation: int | None) -> Made:
        """Admit and store a new spec for a job that exists."""
        return once(
            self._database,
            asking,
            lambda: self._update(job, asking, expected_generation),
            _made_before,
        )

    def _update(self, job: Job, asking: Asking, expected_generation: int | None) -> Made:
        if not job.metadata.name:
            raise InvalidError.of([Violation("metadata.name", "is required")])
        key = Key(job.metadata.namespace or "default", job.metadata.name)
        with self._database.transaction() as session:
            stored = jobs.get(session, key)
        if job.metadata.uid and job.metadata.uid != str(stored.uid):
            raise ConflictError(f"job {key} is another one now, with the uid {stored.uid}")
        generation = stored.job.metadata.generation
        if expected_generation is not None and expected_generation != generation:
            raise ConflictError(
                f"job {key} is at generation {generation}, not {expected_generation}"
            )
        require_staying(stored)
        admitted = self._admission.job(UPDATE, _named(job), stored.job)
        door = self._door_of(stored)
        if door is not None:
            content = job_to_content(admitted.object)
            door.change(content, _call(asking), stored_to_row(stored))
            with self._database.transaction() as session:
                asking.note(session, uids=[stored.uid], warnings=admitted.warnings)
                return Made(_by_uid(session, stored.uid), admitted.warnings)
        with self._database.transaction() as session:
            # The version moves with every status; users are held to the generation alone.
            current = jobs.get_by_uid(session, stored.uid, to_remove=True)
            if current.job.metadata.generation != generation:
                raise ConflictError(f"job {key} changed since it was read; try again")
            require_staying(current)
            asking.note(session, uids=[stored.uid], warnings=admitted.warnings)
            if _same(current.job, admitted.object):
                return Made(current.job, admitted.warnings)
            changed = jobs.update_spec(session, current, admitted.object)
        return Made(changed.job, admitted.warnings)

    def delete(self, key: Key, asking: Asking, *, uid: UUID | None) -> Job:
        """Have a job removed."""

        def act() -> Job:
            with self._database.transaction() as session:
                stored = _the_one(jobs.get(session, key), uid)
                door = self._door_of(stored)
                if door is None or stored.deleting_at is not None:
                    asking.note(session, uids=[stored.uid])
                    return jobs.mark_deleting(session, stored.uid).job
            door.delete(stored_to_row(stored))
            with self._database.transaction() as session:
                asking.note(session, uids=[stored.uid])
                return _by_uid(session, stored.uid)

        return once(self._database, asking, act, _job_before)

    def _door_of(self, stored: StoredJob) -> Door | None:
        """By what a job is changed that follows its custom resource; None if its row is."""
        if stored.origin != KUBE or self._door is None or not self._door.used:
            return None
        return self._door

    def command(self, key: Key, command: Command, asking: Asking, *, uid: UUID | None) -> Job:
        """Have an action carried out."""

        def act() -> Job:
            with self._database.transaction() as session:
                stored = _the_one(jobs.get(session, key), uid)
                check_command(stored, command)
                asking.note(session, uids=[stored.uid])
                commands.ask(session, stored.uid, command)
                return stored.job

        return once(self._database, asking, act, _job_before)


def _call(asking: Asking) -> Call:
    return Call.of(asking.method, asking.id, asking.body)


def _named(job: Job) -> Job:
    return job.model_copy(update={"metadata": named(job.metadata)})


def _made_before(session: Session, answered: Answered) -> Made:
    return Made(_by_uid(session, answered.uids[0]), answered.warnings)


def _job_before(session: Session, answered: Answered) -> Job:
    return _by_uid(session, answered.uids[0])


def _same(one: Job, other: Job) -> bool:
    """Whether an update from one to the other changes nothing."""
    return one.spec == other.spec and all(
        (getattr(one.metadata, part) or {}) == (getattr(other.metadata, part) or {})
        for part in ("labels", "annotations")
    )


def _by_uid(session: Session, uid: UUID) -> Job:
    try:
        return jobs.get_by_uid(session, uid).job
    except NotFoundError:
        return history.job(session, uid=uid)


def _the_one(stored: StoredJob, uid: UUID | None) -> StoredJob:
    if uid is not None and uid != stored.uid:
        raise NotFoundError(f"job {stored.key} with the uid {uid} does not exist any more")
    return stored
