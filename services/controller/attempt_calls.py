"""What JobService tells of the attempts, pods and events of jobs, without gRPC."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from hekla.domain.errors import NotFoundError
from hekla.domain.names import Key
from hekla.store import attempt_pages, events, history, jobs
from hekla.store.database import Database, Session
from hekla.store.events import Event
from hekla.store.objects import Place
from hekla.store.schema import AttemptRow

MOST_PODS_LISTED: Final = 10_000


class AttemptPage(NamedTuple):
    """A page of a job's attempts: of one that exists, or of one that was removed."""

    job: UUID
    present: Sequence[AttemptRow]
    past: Sequence[Mapping[str, Any]]
    end: Place | None


class PodPlace(NamedTuple):
    """Where a page of pods ended."""

    namespace: str
    name: str
    attempt: UUID


class PodPage(NamedTuple):
    """A page of pods with their jobs' names, and where it ended unless it was the last."""

    pods: Sequence[tuple[str, AttemptRow]]
    end: PodPlace | None


class AttemptCalls:
    """Calls on what became of jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def attempts(
        self,
        *,
        uid: UUID | None,
        key: Key | None,
        task: str,
        outcomes: Collection[str],
        after: Place | None,
        limit: int,
    ) -> AttemptPage:
        """A page of the attempts of a job, also of one that was removed."""
        with self._database.transaction() as session:
            job, live = self._find(session, uid, key)
            if live:
                rows = attempt_pages.page(
                    session, job, task=task, outcomes=outcomes, after=after, limit=limit + 1
                )
                end = _end([(row.created_at, row.uid) for row in rows], limit)
                return AttemptPage(job, rows[:limit], (), end)
            past = history.attempts(
                session, job, task=task, outcomes=outcomes, after=after, limit=limit + 1
            )
            places = [_past_place(row) for row in past]
            return AttemptPage(job, (), past[:limit], _end(places, limit))

    def events(self, *, uid: UUID | None, key: Key | None) -> Sequence[Event]:
        """What happened to a job, also to one that was removed."""
        with self._database.transaction() as session:
            job, live = self._find(session, uid, key)
            if live:
                return events.of_job(session, job)
            return history.events_of(session, job)

    def _find(self, session: Session, uid: UUID | None, key: Key | None) -> tuple[UUID, bool]:
        """The uid of a job, and whether it exists or is remembered."""
        try:
            if uid is not None:
                return jobs.get_by_uid(session, uid).uid, True
            assert key is not None
            return jobs.get(session, key).uid, True
        except NotFoundError:
            return UUID(history.job(session, uid=uid, key=key).metadata.uid), False

    def pods(
        self,
        *,
        namespace: str,
        job: str,
        task: str,
        phases: Collection[str],
        after: PodPlace | None,
        limit: int,
    ) -> PodPage:
        """A page of pods that are there, or on their way, with the names of their jobs."""
        with self._database.transaction() as session:
            stored = jobs.get(session, Key(namespace or "default", job)) if job else None
            rows = attempt_pages.present(
                session,
                namespace="" if stored else namespace,
                job=stored.uid if stored else None,
                task=task,
                phases=phases,
                after=after,
                limit=limit + 1,
            )
        last = rows[limit - 1] if len(rows) > limit else None
        return PodPage(
            [(job or _job_name(row), row) for row in rows[:limit]],
            PodPlace(last.namespace, last.pod_name, last.uid) if last is not None else None,
        )


def _end(places: Sequence[tuple[datetime, UUID]], limit: int) -> Place | None:
    return Place(*places[limit - 1]) if len(places) > limit else None


def _past_place(row: Mapping[str, Any]) -> tuple[datetime, UUID]:
    return datetime.fromisoformat(row["created_at"]), UUID(row["uid"])


def _job_name(row: AttemptRow) -> str:
    return row.pod_name.removesuffix(f"-{row.task}-{row.index}")
