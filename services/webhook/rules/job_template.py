"""Rules for templates: what a template says must do for a job, on its own or after a patch.

A template is stored as it was written: a default that is filled in would no longer follow
what a patch changes, as ``minAvailable`` follows ``replicas``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hekla.api.job import Job
from hekla.api.job_template import JobTemplate
from hekla.domain.errors import Violation
from services.webhook.rules import whole_job
from services.webhook.rules.registry import WRITES, Case, Rule


def _job(case: Case[JobTemplate]) -> Job:
    """The job that would be made; under the template's name."""
    return Job(metadata=case.object.metadata, spec=case.object.spec)


def _for_ever(case: Case[JobTemplate]) -> Iterator[Violation]:
    for violation in whole_job.violations(_job(case), case):
        if not violation.passing:
            yield violation


def _for_now(case: Case[JobTemplate]) -> Iterator[Violation]:
    for violation in whole_job.violations(_job(case), case):
        if violation.passing:
            yield violation
    yield from whole_job.warnings(_job(case), case)


RULES: Final = (
    Rule(
        name="job-template.job",
        kinds=("JobTemplate",),
        operations=WRITES,
        check=_for_ever,
        path="spec",
        says="What a template says would do for a Job: all rules for new Jobs hold.",
        example="spec: {tasks: [{name: a}, {name: a}]}",
        beyond=True,
    ),
    Rule(
        name="job-template.job-now",
        kinds=("JobTemplate",),
        operations=WRITES,
        check=_for_now,
        path="spec",
        says="What a Job of the template would be refused for as things are now, or warned of.",
        example="spec: {queue: closed}",
        warns=True,
    ),
)
