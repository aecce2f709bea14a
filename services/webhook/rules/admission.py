"""One judgement of one object: complete it, then say all that is wrong with it.

The order is Kubernetes': defaults of the webhook first, then the bounds of the definition,
then the rules of the webhook. The object must have been read already (``decode.read`` or
``convert.to_model``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from hekla.api.command import Command
from hekla.api.cron_job import CronJob
from hekla.api.decode import encode
from hekla.api.fields import Model
from hekla.api.hyper_node import HyperNode
from hekla.api.job import Job
from hekla.api.job_flow import JobFlow
from hekla.api.job_template import JobTemplate
from hekla.api.numatopology import Numatopology
from hekla.api.pod_group import PodGroup
from hekla.api.queue import Queue
from hekla.domain.errors import Violation
from services.webhook.rules import defaults
from services.webhook.rules.places import value_at
from services.webhook.rules.pod import Pod, created_pod
from services.webhook.rules.registry import Case, Operation, asked
from services.webhook.rules.rulebook import RULES
from services.webhook.rules.world import Limits, World

__all__ = ["Admission", "Kind", "Operation", "admit"]

Kind = TypeVar(
    "Kind",
    Job,
    Queue,
    JobFlow,
    JobTemplate,
    CronJob,
    PodGroup,
    HyperNode,
    Command,
    Numatopology,
    Pod,
)


@dataclass(frozen=True, slots=True)
class Admission(Generic[Kind]):
    """The answer."""

    object: Kind
    """With the defaults filled in."""
    violations: tuple[Violation, ...]
    notes: tuple[Violation, ...] = ()
    """What its author should be told, each with its rule."""

    @property
    def allowed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.violations

    @property
    def warnings(self) -> tuple[str, ...]:
        """The notes in words."""
        return tuple(dict.fromkeys(str(note) for note in self.notes))


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
    case = _case(operation, obj, old, world, limits)
    # A value that is out of bounds may break a rule too: the first word on a field is enough.
    by_path: dict[str, Violation] = {}
    notes: dict[Violation, None] = {}
    for rule, violation in asked(RULES, type(obj).__name__, case):
        if rule.warns or (rule.beyond and limits.extra_warns):
            notes.setdefault(violation)
        else:
            by_path.setdefault(violation.path, violation)
    return Admission(case.object, _with_values(case.object, by_path), tuple(notes))


def _case(
    operation: Operation, obj: Kind, old: Kind | None, world: World, limits: Limits
) -> Case[Any]:
    """What there is to judge, with its defaults."""
    if operation is Operation.UPDATE:
        if isinstance(obj, Job):
            assert isinstance(old, Job)
            filled, before = (defaults.updated_job(each, old, limits) for each in (obj, old))
            return Case(operation, filled, before, world, limits)
        if isinstance(obj, JobTemplate):
            return Case(operation, defaults.stored_template(obj), old, world, limits)
        if isinstance(obj, JobFlow | CronJob):
            return Case(operation, defaults.placed(obj), old, world, limits)
        return Case(operation, obj, old, world, limits)
    if operation is Operation.CREATE:
        fill: _Fill = _FILLS[type(obj)]
        return Case(operation, fill(obj, world, limits), None, world, limits)
    return Case(operation, obj, None, world, limits)


_Fill = Callable[[Any, World, Limits], Any]

_FILLS: Final[Mapping[type[Any], _Fill]] = {
    Job: lambda job, _, limits: defaults.created_job(job, limits),
    Queue: lambda queue, _, __: defaults.created_queue(queue),
    PodGroup: lambda group, world, _: defaults.created_pod_group(group, world),
    JobTemplate: lambda template, _, __: defaults.stored_template(template),
    Pod: lambda pod, _, limits: created_pod(pod, limits.resource_groups),
    **dict.fromkeys((JobFlow, CronJob, Command), lambda obj, _, __: defaults.placed(obj)),
    **dict.fromkeys((HyperNode, Numatopology), lambda obj, _, __: defaults.unplaced(obj)),
}


def _with_values(obj: Model | Pod, by_path: Mapping[str, Violation]) -> tuple[Violation, ...]:
    """The violations, each with what stands at its path."""
    if not by_path:
        return ()
    encoded = obj.raw if isinstance(obj, Pod) else encode(obj)
    return tuple(replace(each, value=value_at(encoded, each.path)) for each in by_path.values())
