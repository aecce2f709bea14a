"""Rules for the order of a job's tasks: the graph that ``dependsOn`` makes has no cycle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hekla.api.fields import shown
from hekla.api.job import TaskSpec
from hekla.domain import paths
from hekla.domain.errors import Violation


def violations(tasks: Sequence[TaskSpec]) -> Iterator[Violation]:
    """Dependencies that no order can meet."""
    known = {task.name: index for index, task in enumerate(tasks)}
    before: dict[int, set[int]] = {}
    for index, task in enumerate(tasks):
        place = paths.at("spec.tasks", index, "dependsOn", "name")
        names = (task.depends_on.name or []) if task.depends_on is not None else []
        seen: set[str] = set()
        for position, name in enumerate(names):
            if name == task.name:
                yield Violation(paths.at(place, position), "must not be the task itself")
            elif name not in known:
                message = f"must be the name of another task, is {shown(name)}"
                yield Violation(paths.at(place, position), message)
            elif name in seen:
                yield Violation(paths.at(place, position), f"is there twice: {shown(name)}")
            else:
                before.setdefault(index, set()).add(known[name])
            seen.add(name)
    waiting = stuck(len(tasks), before)
    if waiting:
        circle = ", ".join(shown(tasks[index].name) for index in waiting[:10])
        message = f"must not go in a circle, as it does among {circle}"
        yield Violation(paths.at("spec.tasks", waiting[0], "dependsOn"), message)


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
