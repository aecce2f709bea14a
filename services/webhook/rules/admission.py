"""One judgement of one object: complete it, then say all that is wrong with it.

The order is Kubernetes': defaults of the webhook first, then the bounds of the definition,
then the rules of the webhook. The object must have been read already (``decode.read`` or
``convert.to_model``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from hekla.api import bounds
from hekla.api.job import Job
from hekla.api.job_flow import JobFlow
from hekla.api.job_template import JobTemplate
from hekla.api.queue import Queue
from hekla.domain.errors import Violation
from services.webhook.rules import (
    defaults,
    job,
    job_flow,
    job_template,
    job_update,
    queue,
    unbuilt,
)
from services.webhook.rules.world import Limits, World

Object = Job | Queue | JobFlow | JobTemplate
Kind = TypeVar("Kind", Job, Queue, JobFlow, JobTemplate)


class Operation(StrEnum):
    """What is to be done with the object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True)
class Admission(Generic[Kind]):
    """The answer."""

    object: Kind
    """With the defaults filled in."""
    violations: tuple[Violation, ...]
    warnings: tuple[str, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.violations


def admit(
    operation: Operation,
    obj: Kind,
    old: Kind | None,
    world: World,
    limits: Limits = Limits(),  # noqa: B008 - immutable
) -> Admission[Kind]:
    """Judge ``obj``, which takes the place of ``old`` if it is an update."""
    if operation is Operation.UPDATE and old is None:
        return Admission(obj, (Violation("", "cannot be judged without what it replaces"),))
    if isinstance(obj, Job):
        assert old is None or isinstance(old, Job)
        return _job(operation, obj, old, world, limits)
    if isinstance(obj, JobFlow):
        assert old is None or isinstance(old, JobFlow)
        return _job_flow(operation, obj, old)
    if isinstance(obj, JobTemplate):
        return _job_template(operation, obj, world, limits)
    assert old is None or isinstance(old, Queue)
    return _queue(operation, obj, old, world, limits)


def _job(
    operation: Operation, obj: Job, old: Job | None, world: World, limits: Limits
) -> Admission[Job]:
    if operation is Operation.DELETE:
        return Admission(obj, ())
    if operation is Operation.UPDATE and old is not None:
        filled, before = (defaults.updated_job(each, old, limits) for each in (obj, old))
        found = job_update.violations(filled, before, limits)
        return _judged(filled, [found], unbuilt.in_job)
    filled = defaults.created_job(obj, limits)
    return _judged(filled, [job.violations(filled, world, limits)], unbuilt.in_job)


def _queue(
    operation: Operation, obj: Queue, old: Queue | None, world: World, limits: Limits
) -> Admission[Queue]:
    if operation is Operation.DELETE:
        return Admission(obj, tuple(queue.deletion_violations(obj.metadata.name, world)))
    if operation is Operation.UPDATE and old is not None:
        found = queue.update_violations(obj, old, world, limits)
        return _judged(obj, [found], unbuilt.in_queue)
    filled = defaults.created_queue(obj)
    return _judged(filled, [queue.creation_violations(filled, world, limits)], unbuilt.in_queue)


def _job_flow(operation: Operation, obj: JobFlow, old: JobFlow | None) -> Admission[JobFlow]:
    if operation is Operation.DELETE:
        return Admission(obj, ())
    filled = defaults.placed(obj)
    found = [job_flow.violations(filled)]
    if operation is Operation.UPDATE and old is not None:
        found.append(job_flow.update_violations(filled, old))
    return _judged(filled, found, job_flow.warnings)


def _job_template(
    operation: Operation, obj: JobTemplate, world: World, limits: Limits
) -> Admission[JobTemplate]:
    if operation is Operation.DELETE:
        return Admission(obj, ())

    def warnings(template: JobTemplate) -> Iterable[str]:
        return job_template.warnings(template, world, limits)

    filled = defaults.stored_template(obj)
    found = job_template.violations(filled, world, limits)
    return _judged(filled, [found], warnings)


def _judged(
    obj: Kind, found: Iterable[Iterable[Violation]], warnings: Callable[[Kind], Iterable[str]]
) -> Admission[Kind]:
    # A value that is out of bounds may break a rule too: the first word on a field is enough.
    by_path: dict[str, Violation] = {}
    for violation in (*bounds.violations(obj), *(each for rules in found for each in rules)):
        by_path.setdefault(violation.path, violation)
    return Admission(obj, tuple(by_path.values()), tuple(dict.fromkeys(warnings(obj))))
