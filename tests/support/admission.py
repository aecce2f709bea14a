"""Jobs as the webhook's rules judge them."""

from __future__ import annotations

from hekla.api.job import Job, TaskSpec
from services.webhook.rules.admission import Admission, Operation, admit
from tests.support.worlds import FixedWorld

WORLD = FixedWorld()


def created(job: Job, world: FixedWorld = WORLD) -> Admission[Job]:
    """The answer to a job's creation."""
    return admit(Operation.CREATE, job, None, world)


def accepted(job: Job, world: FixedWorld = WORLD) -> Job:
    """The job with its defaults; it must be admitted."""
    answer = created(job, world)
    assert answer.violations == ()
    return answer.object


def refused(job: Job, world: FixedWorld = WORLD) -> dict[str, str]:
    """What is wrong, by field; the job must not be admitted."""
    answer = created(job, world)
    assert not answer.allowed
    return {violation.path: violation.message for violation in answer.violations}


def tasks_of(job: Job) -> list[TaskSpec]:
    """The job's tasks."""
    assert job.spec.tasks is not None
    return job.spec.tasks
