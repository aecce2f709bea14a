"""Waiting for a job: whether what is waited for has come, can still come, or never will."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from hekla.api.job import Job
from hekla.client.follow import Sighting, Source, follow
from hekla.domain import duration, names
from hekla.domain.errors import UnavailableError
from hekla.domain.phases import FINISHED, JobPhase

DELETED: Final = "Deleted"
"""Waited for as if it were a phase: the job is gone, and all of it."""
FINISHED_SOMEHOW: Final = "Finished"
"""Waited for as if it were a phase: any of those that a job never leaves."""


class Verdict(StrEnum):
    """How a wait stands."""

    MET = "met"
    IMPOSSIBLE = "impossible"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Waited:
    """How a wait ended."""

    verdict: Verdict
    """``OPEN`` if the time was over first."""
    job: Job
    """As it was at last."""
    gone: bool
    outage: str = ""
    """Why nothing is heard of the job any more."""


def verdict(job: Job, wanted: str, *, gone: bool) -> Verdict:
    """How a wait for ``wanted`` stands, once ``job`` was seen so (at last so, if ``gone``).

    A phase that the job was in and left counts as reached.
    """
    if wanted in reached(job) or (gone and wanted == DELETED):
        return Verdict.MET
    if gone:
        return Verdict.IMPOSSIBLE
    finished = job.status.state.phase in FINISHED
    if finished and wanted == FINISHED_SOMEHOW:
        return Verdict.MET
    return Verdict.IMPOSSIBLE if finished and wanted != DELETED else Verdict.OPEN


def reached(job: Job) -> set[str]:
    """The phases the job is or was in."""
    past = {condition.status for condition in job.status.conditions or () if condition.status}
    return past | {job.status.state.phase or JobPhase.PENDING}


def phase(job: Job) -> str:
    """A job's phase in one word; ``Deleting`` while its removal is under way."""
    if job.metadata.deletion_timestamp is not None:
        return "Deleting"
    return job.status.state.phase or JobPhase.PENDING


def wait_for(
    jobs: Source[Job],
    job: Job,
    wanted: str,
    *,
    cursor: str,
    timeout: timedelta | None = None,
    on_sighting: Callable[[Sighting], None] = lambda _sighting: None,
    on_outage: Callable[[UnavailableError], None] = lambda _error: None,
) -> Waited:
    """Wait until the verdict is clear or the time is over.

    ``cursor`` is to be older than ``job``, so that nothing is missed. ``on_sighting`` is told
    of each state, the first included; ``on_outage`` of each failed try to hear more.
    """
    outage = ""
    seen = Sighting(job, gone=False)

    def away(error: UnavailableError) -> None:
        nonlocal outage
        outage = str(error)
        on_outage(error)

    on_sighting(seen)
    found = verdict(job, wanted, gone=False)
    sightings = follow(jobs, job, cursor=cursor, timeout=timeout, on_outage=away)
    while found is Verdict.OPEN and (sighting := next(sightings, None)) is not None:
        seen, outage = sighting, ""
        on_sighting(seen)
        found = verdict(seen.job, wanted, gone=seen.gone)
    sightings.close()
    return Waited(found, seen.job, seen.gone, outage)


def begin(jobs: Source[Job], namespace: str, name: str) -> tuple[Job, str]:
    """A job, and a cursor that is older than what is known of it.

    Raises:
        NotFoundError: there is no such job.
    """
    # The cursor comes first: what changes after it is watched, what changed before is read.
    cursor = jobs.cursor(namespace)
    return jobs.get(namespace, name), cursor


def refusal(waited: Waited, wanted: str, why: str = "") -> str:
    """Why ``wanted`` will not come; ``why`` is what is known beyond the job's status."""
    job = waited.job
    key = names.Key(job.metadata.namespace, job.metadata.name)
    end = "was deleted" if waited.gone else f"is {phase(job)}"
    said = job.status.state.message or why
    return f"job {key} {end} and will not be {wanted}" + (f": {said}" if said else "")


def overdue(waited: Waited, timeout: timedelta | None, why: str = "") -> str:
    """What the job is at the end of the time; ``why`` is what is known beyond its status."""
    job = waited.job
    key = names.Key(job.metadata.namespace, job.metadata.name)
    after = f"timed out after {duration.format(timeout)}" if timeout else "timed out"
    if waited.outage:
        return f"{after}: {waited.outage}"
    said = why or job.status.state.message or ""
    return f"{after}: job {key} is {phase(job)}" + (f": {said}" if said else "")
