"""Rules for changing a job: how many pods it has and its priority may change, no more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from hekla.api.fields import Model, alias
from hekla.api.job import Job
from hekla.domain import paths, quantity
from hekla.domain.errors import InvalidError, Violation
from services.webhook.rules.job import JOB, placed_tasks
from services.webhook.rules.registry import UPDATES, Case, Rule

MUTABLE: Final = frozenset({"min_available", "priority_class_name"})
MUTABLE_OF_TASK: Final = frozenset({"replicas", "min_available"})

_AMOUNTS: Final = frozenset({"requests", "limits", "overhead"})


def _fixed(case: Case[Job]) -> Iterator[Violation]:
    """Fields that are not what they were."""
    job, old = case.object, case.old
    assert old is not None
    for name in _changed(_comparable(job), _comparable(old), MUTABLE | {"tasks"}):
        yield Violation(paths.at("spec", alias(name)), "must not change")
    old_tasks = old.spec.tasks or []
    if len(job.spec.tasks or ()) == len(old_tasks):
        for (place, task), before in zip(placed_tasks(job), old_tasks, strict=True):
            for name in _changed(task, before, MUTABLE_OF_TASK):
                yield Violation(paths.at(place, alias(name)), "must not change")


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


RULES: Final = (
    Rule(
        name="job.fixed",
        kinds=JOB,
        operations=UPDATES,
        check=_fixed,
        path="spec.*",
        says="An update changes only `spec.minAvailable`, `spec.priorityClassName`, and the"
        " `replicas` and `minAvailable` of tasks; names of claims that were made stay.",
        example="queue: a becomes queue: b",
    ),
)
