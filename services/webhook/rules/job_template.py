"""Rules for templates: what a template says must do for a job, on its own or after a patch.

A template is stored as it was written: a default that is filled in would no longer follow
what a patch changes, as ``minAvailable`` follows ``replicas``.
"""

from __future__ import annotations

from collections.abc import Iterator

from hekla.api.job import Job
from hekla.api.job_template import JobTemplate
from hekla.domain.errors import Violation
from services.webhook.rules import defaults, job, unbuilt
from services.webhook.rules.world import Limits, World


def as_job(template: JobTemplate, limits: Limits) -> Job:
    """The job that would be made, with its defaults; under the template's name."""
    return defaults.created_job(Job(metadata=template.metadata, spec=template.spec), limits)


def violations(template: JobTemplate, world: World, limits: Limits) -> Iterator[Violation]:
    """All that would be wrong with every job that is made from ``template``."""
    for violation in job.violations(as_job(template, limits), world, limits):
        if not violation.passing:
            yield violation


def warnings(template: JobTemplate, world: World, limits: Limits) -> Iterator[str]:
    """What jobs of it would ask for in vain, or be refused for as things are now."""
    made = as_job(template, limits)
    yield from unbuilt.in_job(made)
    for violation in job.violations(made, world, limits):
        if violation.passing:
            yield str(violation)
