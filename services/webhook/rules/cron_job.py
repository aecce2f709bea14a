"""Rules for cron jobs: a time that can be read, and a job that would be admitted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hekla.api.cron_job import CronJob
from hekla.api.fields import shown
from hekla.api.job import Job
from hekla.api.meta import ObjectMeta
from hekla.domain import syntax
from hekla.domain.errors import Violation
from services.webhook.rules import cron, unbuilt, whole_job
from services.webhook.rules.job import GENERATED
from services.webhook.rules.registry import WRITES, Case, Rule

CRON_JOB: Final = ("CronJob",)
SUFFIX: Final = 11
"""Characters that a job's name has after its cron job's: a dash, and minutes since 1970."""
LONGEST: Final = syntax.LABEL_LENGTH - SUFFIX
TEMPLATE: Final = "spec.jobTemplate"


def _schedule(case: Case[CronJob]) -> Iterator[Violation]:
    schedule = case.object.spec.schedule
    if schedule == "":
        yield Violation("spec.schedule", "is required")
    wrong = cron.schedule_error(schedule) if schedule else None
    if wrong is not None:
        yield Violation("spec.schedule", f"{wrong}, is {shown(schedule)}")


def _zone(case: Case[CronJob]) -> Iterator[Violation]:
    zone = case.object.spec.time_zone
    wrong = cron.zone_error(zone) if zone is not None else None
    if wrong is not None:
        yield Violation("spec.timeZone", f"{wrong}, is {shown(zone)}")


def _name(case: Case[CronJob]) -> Iterator[Violation]:
    name = _longest(case.object.metadata)
    if len(name) > LONGEST:
        message = (
            f"must be no more than {LONGEST} characters, since its jobs' names add {SUFFIX};"
        )
        yield Violation("metadata.name", f"{message} has {len(name)}")


def _longest(meta: ObjectMeta) -> str:
    return meta.name or f"{meta.generate_name or ''}{'x' * GENERATED}"


def _job(case: Case[CronJob]) -> Job | None:
    """A job that would be made, under the longest name."""
    template = case.object.spec.job_template
    if template is None:
        return None
    of, meta = case.object.metadata, template.metadata
    made = ObjectMeta(
        name=f"{_longest(of)[:LONGEST]}-{'0' * (SUFFIX - 1)}",
        namespace=of.namespace,
        labels=meta.labels if meta is not None else None,
        annotations=meta.annotations if meta is not None else None,
    )
    return Job(metadata=made, spec=template.spec)


def _for_ever(case: Case[CronJob]) -> Iterator[Violation]:
    job = _job(case)
    for violation in whole_job.violations(job, case) if job is not None else ():
        if not violation.passing:
            yield _inside(violation)


def _for_now(case: Case[CronJob]) -> Iterator[Violation]:
    job = _job(case)
    if job is None:
        return
    for violation in whole_job.violations(job, case):
        if violation.passing:
            yield _inside(violation)
    for violation in whole_job.warnings(job, case):
        yield _inside(violation)


def _inside(violation: Violation) -> Violation:
    # What is said of the job's own name is said of the cron job's.
    inside = violation.path.startswith("spec")
    path = f"{TEMPLATE}.{violation.path}" if inside else violation.path
    message = violation.message
    if not path and message.startswith("spec."):
        message = f"{TEMPLATE}.{message}"
    return Violation(path, message, violation.passing, violation.rule)


def _never(case: Case[CronJob]) -> Iterator[Violation]:
    schedule = case.object.spec.schedule
    if schedule and cron.schedule_error(schedule) is None and cron.never_comes(schedule):
        yield Violation("spec.schedule", f"never comes: {shown(schedule)}")


def _unbuilt(case: Case[CronJob]) -> Iterator[Violation]:
    del case
    yield Violation("", unbuilt.CRON_JOB)


RULES: Final = (
    Rule(
        name="cron-job.unbuilt",
        kinds=CRON_JOB,
        operations=WRITES,
        check=_unbuilt,
        path="spec",
        says="What is not built yet is named.",
        example="any CronJob",
        warns=True,
    ),
    Rule(
        name="cron-job.schedule",
        kinds=CRON_JOB,
        operations=WRITES,
        check=_schedule,
        path="spec.schedule",
        says="The schedule has five fields, or is a word such as @daily or @every 90m; it names"
        " no time zone.",
        example="schedule: 0 0 * *",
    ),
    Rule(
        name="cron-job.time-zone",
        kinds=CRON_JOB,
        operations=WRITES,
        check=_zone,
        path="spec.timeZone",
        says="A time zone that is given is known, and not Local.",
        example="timeZone: Mars/Olympus",
    ),
    Rule(
        name="cron-job.name",
        kinds=CRON_JOB,
        operations=WRITES,
        check=_name,
        path="metadata.name",
        says=f"The name has at most {LONGEST} characters, for its jobs' names add {SUFFIX}.",
        example="metadata: {name: <53 characters>}",
    ),
    Rule(
        name="cron-job.job",
        kinds=CRON_JOB,
        operations=WRITES,
        check=_for_ever,
        path=TEMPLATE,
        says="What is to be made would do for a Job: all rules for new Jobs hold.",
        example="jobTemplate: {spec: {tasks: [{name: a}, {name: a}]}}",
        beyond=True,
    ),
    Rule(
        name="cron-job.never",
        kinds=CRON_JOB,
        operations=WRITES,
        check=_never,
        path="spec.schedule",
        says="The schedule names a time that comes.",
        example="schedule: 0 0 31 2 *",
        warns=True,
    ),
    Rule(
        name="cron-job.job-now",
        kinds=CRON_JOB,
        operations=WRITES,
        check=_for_now,
        path=TEMPLATE,
        says="What its Jobs would be refused for as things are now, or warned of.",
        example="jobTemplate: {spec: {queue: closed}}",
        warns=True,
    ),
)
