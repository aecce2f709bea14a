"""Rules for the counts and names of a job: its tasks', and those that are made of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hekla.api.fields import shown
from hekla.api.job import Job, TaskSpec
from hekla.domain import syntax
from hekla.domain.errors import Violation
from hekla.domain.names import pod_name
from services.webhook.rules.registry import CREATION, UPDATES, WRITES, Case, Rule

JOB: Final = ("Job",)
GENERATED: Final = 5
"""Characters that complete a generateName."""


def placed_tasks(job: Job) -> Iterator[tuple[str, TaskSpec]]:
    """The tasks of a job, each with its path."""
    for index, task in enumerate(job.spec.tasks or ()):
        yield f"spec.tasks[{index}]", task


def longest_name(job: Job) -> str:
    """The job's name, or one as long as what will be generated."""
    return job.metadata.name or f"{job.metadata.generate_name or ''}{'x' * GENERATED}"


def _tasks_there(case: Case[Job]) -> Iterator[Violation]:
    if case.object.spec.tasks is None:
        yield Violation("spec.tasks", "is required: a job has at least one task")


def _name(case: Case[Job]) -> Iterator[Violation]:
    name = longest_name(case.object)
    if len(name) > syntax.LABEL_LENGTH:
        message = f"must be no more than {syntax.LABEL_LENGTH} characters, has {len(name)}"
        yield Violation("metadata.name", message)


def _service_name(case: Case[Job]) -> Iterator[Violation]:
    name = case.object.metadata.name
    if name and "svc" in (case.object.spec.plugins or {}):
        wrong = syntax.label_error(name)
        if wrong is not None:
            message = f"{wrong}, since the plugin svc makes a Service of that name; is"
            yield Violation("metadata.name", f"{message} {shown(name)}")


def _task_minimums(case: Case[Job]) -> Iterator[Violation]:
    for place, task in placed_tasks(case.object):
        if task.min_available is not None and task.min_available > task.replicas:
            message = f"must be <= replicas, which is {task.replicas}; is {task.min_available}"
            yield Violation(f"{place}.minAvailable", message)


def _minimum(case: Case[Job]) -> Iterator[Violation]:
    spec = case.object.spec
    total = sum(task.replicas for task in spec.tasks or ())
    if spec.min_available is not None and spec.min_available > total:
        message = f"must be <= the replicas of all tasks, {total}; is {spec.min_available}"
        yield Violation("spec.minAvailable", message)


def _most_pods(case: Case[Job]) -> Iterator[Violation]:
    total = sum(task.replicas for task in case.object.spec.tasks or ())
    if total > case.limits.max_pods_per_job:
        most = case.limits.max_pods_per_job
        message = f"must not ask for more than {most} pods, asks for {total}"
        yield Violation("spec.tasks", message)


def _task_names(case: Case[Job]) -> Iterator[Violation]:
    seen: dict[str, str] = {}
    for place, task in placed_tasks(case.object):
        first = seen.setdefault(task.name, place)
        if first != place:
            message = f"is the name of {first} too: {shown(task.name)}"
            yield Violation(f"{place}.name", message)


def _pod_names(case: Case[Job]) -> Iterator[Violation]:
    """The longest name of a pod of each task, which is its host name too."""
    name = longest_name(case.object)
    for place, task in placed_tasks(case.object):
        longest = pod_name(name, task.name, max(task.replicas - 1, 0))
        if len(longest) > syntax.LABEL_LENGTH:
            message = (
                f"makes the pod name {shown(longest)}, which has {len(longest)} characters;"
                f" there may be {syntax.LABEL_LENGTH}"
            )
            yield Violation(f"{place}.name", message)


def _queue_label(case: Case[Job]) -> Iterator[Violation]:
    queue = case.object.spec.queue
    if len(queue) > syntax.LABEL_LENGTH and syntax.subdomain_error(queue) is None:
        message = (
            f"must be no more than {syntax.LABEL_LENGTH} characters, since every pod has it as"
            f" a label; has {len(queue)}"
        )
        yield Violation("spec.queue", message)


def _task_count(case: Case[Job]) -> Iterator[Violation]:
    old = case.old
    assert old is not None
    before, now = (len(each.spec.tasks or ()) for each in (old, case.object))
    if before != now:
        message = f"must stay {before} tasks, are {now}: none may come or go"
        yield Violation("spec.tasks", message)


RULES: Final = (
    Rule(
        name="job.tasks",
        kinds=JOB,
        operations=CREATION,
        check=_tasks_there,
        path="spec.tasks",
        says="A job has at least one task.",
        example="spec: {queue: default}",
    ),
    Rule(
        name="job.name-length",
        kinds=JOB,
        operations=CREATION,
        check=_name,
        path="metadata.name",
        says="A job's name fits a label: it has at most 63 characters.",
        example="metadata: {name: <64 characters>}",
    ),
    Rule(
        name="job.service-name",
        kinds=JOB,
        operations=CREATION,
        check=_service_name,
        path="metadata.name",
        says="With the plugin svc, also if a framework's plugin brings it, a job's name is one"
        " that a Service may have.",
        example="metadata: {name: a.b}, plugins: {svc: []}",
        beyond=True,
    ),
    Rule(
        name="job.task-minimum",
        kinds=JOB,
        operations=WRITES,
        check=_task_minimums,
        path="spec.tasks[].minAvailable",
        says="A task needs no more pods than it has.",
        example="{replicas: 2, minAvailable: 3}",
    ),
    Rule(
        name="job.minimum",
        kinds=JOB,
        operations=WRITES,
        check=_minimum,
        path="spec.minAvailable",
        says="A job needs no more pods than its tasks have together.",
        example="minAvailable: 4, tasks of 3 replicas in all",
    ),
    Rule(
        name="job.most-pods",
        kinds=JOB,
        operations=WRITES,
        check=_most_pods,
        path="spec.tasks",
        says="A job has no more pods than the installation allows (`max_pods_per_job`).",
        example="{replicas: 2147483647}",
        beyond=True,
    ),
    Rule(
        name="job.task-names",
        kinds=JOB,
        operations=CREATION,
        check=_task_names,
        path="spec.tasks[].name",
        says="No two tasks have one name.",
        example="tasks: [{name: a}, {name: a}]",
    ),
    Rule(
        name="job.pod-names",
        kinds=JOB,
        operations=WRITES,
        check=_pod_names,
        path="spec.tasks[].name",
        says="`<job>-<task>-<index>` has at most 63 characters, up to the largest index; also"
        " when a task grows.",
        example="{replicas: 11} where <job>-<task>-9 has 63 characters",
        beyond=True,
    ),
    Rule(
        name="job.queue-label",
        kinds=JOB,
        operations=CREATION,
        check=_queue_label,
        path="spec.queue",
        says="The queue's name fits a label, for every pod has it as one.",
        example="queue: <64 characters>",
        beyond=True,
    ),
    Rule(
        name="job.task-count",
        kinds=JOB,
        operations=UPDATES,
        check=_task_count,
        path="spec.tasks",
        says="An update adds no task and removes none.",
        example="tasks: [a] becomes [a, b]",
    ),
)
