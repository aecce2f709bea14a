"""``hekla job wait``, and waiting as other commands do it: live, with the reason at the end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import click

from hekla.api.job import Job
from hekla.cli import options
from hekla.cli.progress import Progress
from hekla.client import Client, Sighting
from hekla.client.waiting import (
    DELETED,
    FINISHED_SOMEHOW,
    Verdict,
    Waited,
    begin,
    overdue,
    phase,
    refusal,
    wait_for,
)
from hekla.domain import names
from hekla.domain.attempt import Outcome
from hekla.domain.errors import (
    DomainError,
    NotFoundError,
    PreconditionError,
    TimedOutError,
    UnavailableError,
)
from hekla.domain.phases import JobPhase

EVER: Final = datetime.min.replace(tzinfo=UTC)
WANTED: Final = (*map(str, JobPhase), FINISHED_SOMEHOW, DELETED)


@click.command(
    "wait",
    epilog=options.examples(
        "hekla job wait job-1 --for Running",
        "hekla job wait job-1 --for Completed --timeout 10m && echo done",
    ),
)
@options.job_name
@click.option(
    "--for",
    "wanted",
    required=True,
    type=click.Choice(WANTED, case_sensitive=False),
    metavar="PHASE",
    help=f"A phase, such as Running; {FINISHED_SOMEHOW} for any last one; or {DELETED}.",
)
@options.timeout()
@options.namespace
@options.with_patient_client
def wait(
    client: Client, *, name: str, wanted: str, timeout: timedelta | None, namespace: str
) -> None:
    """Wait until a job is or was in a phase.

    Exit code 0 if it is reached, 1 as soon as it cannot be reached any more (the job finished
    in another phase, or was deleted), 2 if the time is over.
    """
    try:
        job, cursor = begin(client.jobs, namespace, name)
    except NotFoundError:
        if wanted != DELETED:
            raise
        click.echo(f"job {names.Key(namespace, name)} does not exist")
        return
    conclude(client, live(client, job, cursor, wanted, timeout), wanted, timeout)


def live(
    client: Client, job: Job, cursor: str, wanted: str, timeout: timedelta | None
) -> Waited:
    """Wait with a live line."""
    name = job.metadata.name
    with Progress() as progress:

        def on_sighting(sighting: Sighting) -> None:
            found = sighting.job
            progress.tell(line(found), done=found.status.succeeded, of=pods_of(found))

        def on_outage(error: UnavailableError) -> None:
            progress.tell(f"{name}: {error}; trying again")

        return wait_for(
            client.jobs,
            job,
            wanted,
            cursor=cursor,
            timeout=timeout,
            on_sighting=on_sighting,
            on_outage=on_outage,
        )


def conclude(
    client: Client,
    waited: Waited,
    wanted: str,
    timeout: timedelta | None,
    *,
    quiet: bool = False,
) -> None:
    """Say how a wait ended (if ``quiet`` only if it ended badly); exit with its code."""
    job = waited.job
    if waited.verdict is Verdict.MET:
        if quiet:
            return
        end = phase(job) if wanted == FINISHED_SOMEHOW else wanted
        key = names.Key(job.metadata.namespace, job.metadata.name)
        click.echo(f"job {key} reached {end}")
        return
    if waited.verdict is Verdict.IMPOSSIBLE:
        raise PreconditionError(refusal(waited, wanted, why_failed(client, job)))
    why = "" if waited.outage else why_pending(client, job)
    raise TimedOutError(overdue(waited, timeout, why))


def pods_of(job: Job) -> int:
    """How many pods a job is to have."""
    return sum(task.replicas for task in job.spec.tasks or ())


def line(job: Job) -> str:
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


def why_failed(client: Client, job: Job) -> str:
    """Which pod of a job failed last, and how."""
    metadata = job.metadata
    try:
        failed = client.jobs.attempts(
            metadata.namespace, metadata.name, uid=metadata.uid, outcomes=[Outcome.FAILED]
        )
    except DomainError:
        return ""
    ended = [attempt for attempt in failed if attempt.finished_at is not None]
    if not ended:
        return ""
    last = max(ended, key=lambda attempt: attempt.finished_at or EVER)
    codes = ", ".join(f"{name} with {code}" for name, code in last.exit_codes.items() if code)
    return f"{last.pod_name} failed" + (f": {codes}" if codes else "")


def why_pending(client: Client, job: Job) -> str:
    """What a job waits for; the scheduler's word of its group counts for more."""
    said = [job.status.state.message] if job.status.state.message else []
    if job.status.state.phase in (None, JobPhase.PENDING):
        group = names.pod_group_name(job.metadata.name, job.metadata.uid)
        try:
            conditions = client.pod_groups.get(job.metadata.namespace, group).status.conditions
        except DomainError:
            conditions = None
        said += [condition.message for condition in conditions or () if condition.message]
    return said[-1] if said else ""
