"""Reads what a pass wants to know of a job, in counts and in picks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from hekla.domain.attempt import Slot
from hekla.domain.errors import DomainError
from hekla.domain.phases import JobEvent, PodGroupPhase
from hekla.domain.trigger import Waiting, Watched
from hekla.store import attempts, batch, commands, jobs, pod_groups, triggers, work
from hekla.store.attempts import Counts
from hekla.store.batch import Question
from hekla.store.database import Session
from hekla.store.jobs import StoredJob
from hekla.store.pod_groups import StoredGroup
from hekla.store.work import Claim
from services.controller.core import policies
from services.controller.core.observed import Counters, Group, Observed, TaskCounts

SLICE: Final = 500
"""How many pods one slice of a pass makes or removes, and outcomes it considers."""
REJECTED_PAUSE: Final = timedelta(seconds=5)
"""For how long an index whose pod a kubelet refused waits for another."""


class Seen(NamedTuple):
    """What a look at a job sees."""

    at: datetime
    stored: StoredJob
    """The job, locked."""
    observed: Observed


def read(session: Session, claim: Claim) -> Seen:
    """The time, the job, locked, and all that deciding about it takes.

    What cannot matter is not asked for, and the rest together.

    Raises:
        ConflictError: the claim is not ours any more.
        NotFoundError: the job is gone.
    """
    [found] = read_many(session, [claim], limit=SLICE)
    if isinstance(found, DomainError):
        raise found
    return found


def read_many(
    session: Session, claims: Sequence[Claim], *, limit: int
) -> Sequence[Seen | DomainError]:
    """As :func:`read`, of many jobs at once; in place of one that raises, what it raises.

    Each may have up to ``limit`` pods made.
    """
    readings = [_Reading(claim) for claim in claims]
    batch.ask(session, *(one for reading in readings for one in reading.questions()))
    further = [one for reading in readings for one in reading.further(limit)]
    batch.ask(session, *further)
    return [reading.seen() for reading in readings]


class _Known(NamedTuple):
    """The first answers."""

    at: datetime
    stored: StoredJob
    counts: Counts
    group: StoredGroup | None


class _Reading:
    """What is asked about one job: first what always matters, then what that shows to."""

    def __init__(self, claim: Claim) -> None:
        uid = UUID(claim.uid)
        self._uid = uid
        self._held = work.holding(claim)
        self._here = jobs.locked(uid)
        self._counting = attempts.counting(uid)
        self._grouped = pod_groups.group(uid)
        self._ended = attempts.ended(uid, limit=SLICE)
        self._asked = commands.asked(uid)
        self._missing: Question[Sequence[Slot]] | None = None
        self._triggers: Question[Sequence[Watched]] | None = None
        self._waiting: Question[Sequence[Waiting]] | None = None
        self._retry_at: Question[datetime | None] | None = None
        self._known: _Known | DomainError | None = None

    def questions(self) -> Sequence[Question[Any]]:
        """What is always asked."""
        return [
            self._held,
            self._here,
            self._counting,
            self._grouped,
            self._ended,
            self._asked,
        ]

    def further(self, limit: int) -> Iterator[Question[Any]]:
        """What is asked by the answers."""
        try:
            known = _Known(
                self._held.answer,
                self._here.answer,
                self._counting.answer,
                self._grouped.answer,
            )
        except DomainError as error:
            self._known = error
            return
        self._known = known
        _, stored, counts, group = known
        spec, version = stored.job.spec, stored.job.status.version
        # Pods are made only while the group is admitted.
        if group is not None and group.phase is not PodGroupPhase.PENDING:
            wanted = [(task.name, task.replicas) for task in spec.tasks or []]
            if not all(_is_filled(counts, task, replicas) for task, replicas in wanted):
                self._missing = attempts.missing(
                    self._uid, wanted, pause=REJECTED_PAUSE, limit=limit
                )
                yield self._missing
            if _any_unsettled(counts):
                self._retry_at = attempts.retry_at(self._uid, pause=REJECTED_PAUSE)
                yield self._retry_at
        if policies.are_there_any(spec):
            self._triggers = triggers.of_job(self._uid, version=version, limit=SLICE)
            yield self._triggers
        hearing = policies.tasks_that_hear(spec, JobEvent.POD_PENDING)
        if hearing:
            self._waiting = triggers.pending_unarmed(
                self._uid, version=version, tasks=hearing, limit=SLICE
            )
            yield self._waiting

    def seen(self) -> Seen | DomainError:
        """What was answered."""
        assert self._known is not None, "nobody has asked further"
        if isinstance(self._known, DomainError):
            return self._known
        at, stored, counts, group = self._known
        observed = Observed(
            uid=self._uid,
            job=stored.job,
            created_at=stored.created_at,
            counters=Counters(**stored.counters),
            started_at=stored.started_at,
            finished_at=stored.finished_at,
            deleting=stored.deleting_at is not None,
            counts=task_counts(counts),
            present=counts.present,
            restarts=counts.restarts,
            unseen=counts.unseen,
            ended=self._ended.answer,
            missing=() if self._missing is None else self._missing.answer,
            commands=self._asked.answer,
            triggers=() if self._triggers is None else self._triggers.answer,
            waiting=() if self._waiting is None else self._waiting.answer,
            group=None if group is None else _to_group(group),
            wait=stored.wait,
            retry_at=None if self._retry_at is None else self._retry_at.answer,
        )
        return Seen(at, stored, observed)


def _to_group(group: StoredGroup) -> Group:
    return Group(
        uid=group.uid,
        phase=group.phase,
        spec=group.group.spec,
        conditions=group.group.status.conditions or (),
    )


def _any_unsettled(counts: Counts) -> bool:
    return any(attempts.UNSETTLED & states.keys() for states in counts.by_task.values())


def _is_filled(counts: Counts, task: str, replicas: int) -> bool:
    """Whether each index of a task has what it wants, by numbers alone."""
    states = counts.by_task.get(task, {})
    settled = sum(count for name, count in states.items() if name not in attempts.UNSETTLED)
    return settled == replicas and counts.highest.get(task, -1) < replicas


def task_counts(counts: Counts) -> Mapping[str, TaskCounts]:
    """Counts by the states that the store tells apart."""
    return {
        task: TaskCounts(
            planned=states.get("Planned", 0),
            pending=states.get("Pending", 0),
            running=states.get("Running", 0),
            succeeded=states.get("Succeeded", 0),
            failed=states.get("Failed", 0),
            unknown=states.get("Unknown", 0),
            terminating=states.get("Terminating", 0),
            stale=states.get("Stale", 0),
        )
        for task, states in counts.by_task.items()
    }
