"""Rules for the order of a job's tasks: the graph that ``dependsOn`` makes has no cycle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hekla.api.fields import shown
from hekla.api.job import Job, TaskSpec
from hekla.domain import paths
from hekla.domain.errors import Violation
from services.webhook.rules.job import JOB, placed_tasks
from services.webhook.rules.registry import CREATION, Case, Rule


def _named(case: Case[Job]) -> Iterator[Violation]:
    """Names of no other task, and those that are there twice."""
    known = {task.name for task in case.object.spec.tasks or ()}
    for place, task in placed_tasks(case.object):
        seen: set[str] = set()
        for position, name in enumerate(_names(task)):
            where = paths.at(place, "dependsOn", "name", position)
            if name == task.name:
                yield Violation(where, "must not be the task itself")
            elif name not in known:
                message = f"must be the name of another task, is {shown(name)}"
                yield Violation(where, message)
            elif name in seen:
                yield Violation(where, f"is there twice: {shown(name)}")
            seen.add(name)


def _in_order(case: Case[Job]) -> Iterator[Violation]:
    """Tasks that wait for each other."""
    tasks = case.object.spec.tasks or []
    known = {task.name: index for index, task in enumerate(tasks)}
    before: dict[int, set[int]] = {}
    for index, task in enumerate(tasks):
        names = {name for name in _names(task) if name in known and name != task.name}
        if names:
            before[index] = {known[name] for name in names}
    waiting = stuck(len(tasks), before)
    if waiting:
        circle = ", ".join(shown(tasks[index].name) for index in waiting[:10])
        message = f"must not go in a circle, as it does among {circle}"
        yield Violation(paths.at("spec.tasks", waiting[0], "dependsOn"), message)


def _names(task: TaskSpec) -> Sequence[str]:
    return (task.depends_on.name or ()) if task.depends_on is not None else ()


def stuck(count: int, before: Mapping[int, set[int]]) -> list[int]:
    """Of ``count`` that each come after those ``before`` it: those in a cycle or behind one."""
    after: dict[int, list[int]] = {}
    for index, earlier in before.items():
        for one in earlier:
            after.setdefault(one, []).append(index)
    waiting = {index: len(before.get(index, ())) for index in range(count)}
    ready = [index for index, left in waiting.items() if not left]
    while ready:
        for index in after.get(ready.pop(), ()):
            waiting[index] -= 1
            if not waiting[index]:
                ready.append(index)
    return [index for index, left in waiting.items() if left]


RULES: Final = (
    Rule(
        name="job.depends-on",
        kinds=JOB,
        operations=CREATION,
        check=_named,
        path="spec.tasks[].dependsOn.name[]",
        says="A task comes after other tasks of the job, each named once.",
        example="{name: a, dependsOn: {name: [a]}}",
    ),
    Rule(
        name="job.depends-on-order",
        kinds=JOB,
        operations=CREATION,
        check=_in_order,
        path="spec.tasks[].dependsOn",
        says="There is an order in which the tasks can start.",
        example="a after b, b after a",
    ),
)
