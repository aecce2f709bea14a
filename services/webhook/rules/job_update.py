"""Rules for changing a job: how many pods it has and its priority may change, no more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from hekla.api.fields import Model, alias
from hekla.api.job import Job, TaskSpec
from hekla.domain import paths, quantity
from hekla.domain.errors import InvalidError, Violation
from services.webhook.rules import job as rules
from services.webhook.rules.world import Limits

MUTABLE: Final = frozenset({"min_available", "priority_class_name"})
MUTABLE_OF_TASK: Final = frozenset({"replicas", "min_available"})

_AMOUNTS: Final = frozenset({"requests", "limits", "overhead"})


def violations(job: Job, old: Job, limits: Limits) -> Iterator[Violation]:
    """All that is wrong with ``job`` in place of ``old``, its defaults filled in."""
    tasks, old_tasks = job.spec.tasks or [], old.spec.tasks or []
    yield from rules.sizes(job.spec, limits)
    if len(tasks) != len(old_tasks):
        message = f"must stay {len(old_tasks)} tasks, are {len(tasks)}: none may come or go"
        yield Violation("spec.tasks", message)
    else:
        for index, (task, old_task) in enumerate(zip(tasks, old_tasks, strict=True)):
            yield from _task(job, task, old_task, paths.at("spec.tasks", index))
    changed = _changed(_comparable(job), _comparable(old), MUTABLE | {"tasks"})
    for name in changed:
        yield Violation(paths.at("spec", alias(name)), "must not change")


def _task(job: Job, task: TaskSpec, old: TaskSpec, place: str) -> Iterator[Violation]:
    for name in _changed(task, old, MUTABLE_OF_TASK):
        yield Violation(paths.at(place, alias(name)), "must not change")
    if task.replicas > old.replicas:
        yield from rules.pod_names(job, task, place)


def _comparable(job: Job) -> Model:
    """The spec without the names of claims that were made for it."""
    volumes = [
        volume.model_copy(update={"volume_claim_name": None}) if volume.volume_claim else volume
        for volume in job.spec.volumes or ()
    ]
    return job.spec.model_copy(update={"volumes": volumes})


def _changed(new: Model, old: Model, mutable: frozenset[str]) -> list[str]:
    fields = type(new).model_fields
    return [
        name
        for name in fields
        if name not in mutable and not _same(getattr(new, name), getattr(old, name))
    ]


def _same(one: Any, other: Any, *, amounts: bool = False) -> bool:
    """Whether two values mean the same: empty is absent, and 1 core is 1000m."""
    if one == other or (_empty(one) and _empty(other)):
        return True
    if isinstance(one, Model) and isinstance(other, Model):
        return not _changed(one, other, frozenset())
    if isinstance(one, dict) and isinstance(other, dict):
        return all(
            _same(one.get(key), other.get(key), amounts=amounts or key in _AMOUNTS)
            for key in one.keys() | other.keys()
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return amounts and _same_amount(one, other)


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not value)


def _same_amount(one: Any, other: Any) -> bool:
    try:
        return quantity.parse(one) == quantity.parse(other)
    except InvalidError:
        return False
