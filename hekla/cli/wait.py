"""``hekla job wait``: whether what is waited for has come, can still come, or never will."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Final

from hekla.api.job import Job
from hekla.cli.kinds import phase
from hekla.cli.progress import Progress
from hekla.client import Client
from hekla.client.follow import follow
from hekla.domain import duration, names
from hekla.domain.errors import DomainError, UnavailableError
from hekla.domain.phases import FINISHED, JobPhase

DELETED: Final = "Deleted"
"""Waited for as if it were a phase: the job is gone, and all of it."""


class Verdict(StrEnum):
    """How a wait stands."""

    MET = "met"
    IMPOSSIBLE = "impossible"
    OPEN = "open"


def verdict(job: Job, wanted: str, *, gone: bool) -> Verdict:
    """How a wait for ``wanted`` stands, once ``job`` was seen so (at last so, if ``gone``).

    A phase that the job was in and left counts as reached.
    """
    if wanted in reached(job) or (gone and wanted == DELETED):
        return Verdict.MET
    if gone:
        return Verdict.IMPOSSIBLE
    finished = job.status.state.phase in FINISHED
    return Verdict.IMPOSSIBLE if finished and wanted != DELETED else Verdict.OPEN


def reached(job: Job) -> set[str]:
    """The phases the job is or was in."""
    past = {condition.status for condition in job.status.conditions or () if condition.status}
    return past | {job.status.state.phase or JobPhase.PENDING}


def wait(
    client: Client, namespace: str, name: str, wanted: str, timeout: timedelta | None
) -> tuple[Verdict, str]:
    """Wait until the verdict is clear or the time is over; say what the job was at last.

    Raises:
        NotFoundError: there is no such job.
    """
    # The cursor comes first: what changes after it is watched, what changed before is read.
    cursor = client.jobs.cursor(namespace)
    job, gone = client.jobs.get(namespace, name), False
    outage: list[str] = []

    with Progress() as progress:

        def on_outage(error: UnavailableError) -> None:
            outage[:] = [str(error)]
            progress.tell(f"{name}: {error}; trying again")

        found = verdict(job, wanted, gone=gone)
        progress.tell(_line(job))
        sightings = follow(
            client.jobs, job, cursor=cursor, timeout=timeout, on_outage=on_outage
        )
        while found is Verdict.OPEN:
            sighting = next(sightings, None)
            if sighting is None:
                break
            outage.clear()
            job, gone = sighting.job, sighting.gone
            found = verdict(job, wanted, gone=gone)
            progress.tell(_line(job))
        sightings.close()
    return found, _outcome(client, job, found, wanted, timeout, gone=gone, outage=outage)


def _line(job: Job) -> str:
    """A job in one line: its phase, and its pods if it has any."""
    status = job.status
    counts = {
        "pending": status.pending,
        "running": status.running,
        "succeeded": status.succeeded,
        "failed": status.failed,
        "terminating": status.terminating,
    }
    pods = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    more = pods or status.state.message or ""
    return f"{job.metadata.name}: {phase(job)}" + (f" ({more})" if more else "")


def _outcome(
    client: Client,
    job: Job,
    found: Verdict,
    wanted: str,
    timeout: timedelta | None,
    *,
    gone: bool,
    outage: list[str],
) -> str:
    key = names.Key(job.metadata.namespace, job.metadata.name)
    if found is Verdict.MET:
        return f"job {key} reached {wanted}"
    if found is Verdict.IMPOSSIBLE:
        end = "was deleted" if gone else f"is {phase(job)}"
        why = f": {job.status.state.message}" if job.status.state.message else ""
        return f"job {key} {end} and will not be {wanted}{why}"
    after = f"after {duration.format(timeout)}" if timeout is not None else ""
    if outage:
        return f"timed out {after}: {outage[0]}"
    return f"timed out {after}: job {key} is {phase(job)}{_why(client, job)}"


def _why(client: Client, job: Job) -> str:
    """What the job waits for; the scheduler's word of its group counts for more."""
    said = [job.status.state.message] if job.status.state.message else []
    if job.status.state.phase not in (None, JobPhase.PENDING):
        return f": {said[0]}" if said else ""
    group = names.pod_group_name(job.metadata.name, job.metadata.uid)
    try:
        conditions = client.pod_groups.get(job.metadata.namespace, group).status.conditions
    except DomainError:
        conditions = None
    said += [condition.message for condition in conditions or () if condition.message]
    return f": {said[-1]}" if said else ""
