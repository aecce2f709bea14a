"""A job's pod group: what the scheduler is told of the gang."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hekla.api.job import Job, TaskSpec
from hekla.api.meta import LabelSelector
from hekla.api.pod_group import PodGroupSpec, SubGroupPolicySpec
from hekla.domain import names, resources
from services.controller.core.tally import task_minimum


def group_spec(job: Job, done: Mapping[str, int]) -> PodGroupSpec:
    """The group's spec, by the job's.

    ``done`` counts pods of each task that succeeded and that nobody can see in this group:
    they are gone, or were of the job's group before it was suspended. What succeeded stays
    so, and the gang is that much smaller.
    """
    spec = job.spec
    tasks = [_without(task, done.get(task.name, 0)) for task in spec.tasks or []]
    minimum = max(0, (spec.min_available or 0) - sum(done.values()))
    return PodGroupSpec(
        min_member=minimum,
        min_task_member={task.name: task_minimum(task) for task in tasks},
        queue=spec.queue,
        priority_class_name=spec.priority_class_name,
        min_resources=min_resources(minimum, tasks),
        network_topology=spec.network_topology,
        sub_group_policy=[_sub_group(task) for task in tasks if task.partition_policy] or None,
    )


def _without(task: TaskSpec, done: int) -> TaskSpec:
    if not done:
        return task
    return task.model_copy(
        update={
            "replicas": max(0, task.replicas - done),
            "min_available": max(0, task_minimum(task) - done),
        }
    )


def _sub_group(task: TaskSpec) -> SubGroupPolicySpec:
    partition = task.partition_policy
    assert partition is not None
    return SubGroupPolicySpec(
        name=task.name,
        network_topology=partition.network_topology,
        sub_group_size=partition.partition_size or 1,
        min_sub_groups=partition.min_partitions,
        label_selector=LabelSelector(match_labels={names.TASK_SPEC: task.name}),
        match_label_keys=[names.PARTITION_ID],
    )


def min_resources(minimum: int, tasks: Sequence[TaskSpec]) -> dict[str, str]:
    """What ``minimum`` pods take, in the spellings that quotas count.

    A job that wants less than its tasks' minimums together is filled task by task; else each
    task's minimum comes first, then what is left is filled in the same order.
    """
    total: dict[str, int] = {}
    for task, count in _members(minimum, tasks):
        for name, amount in quota_usage(task.template or {}).items():
            total[name] = total.get(name, 0) + amount * count
    return {name: _written(name, amount) for name, amount in total.items()}


def _members(minimum: int, tasks: Sequence[TaskSpec]) -> Iterator[tuple[TaskSpec, int]]:
    left = minimum
    if minimum < sum(task_minimum(task) for task in tasks):
        for task in tasks:
            taken = min(task.replicas, left)
            left -= taken
            yield task, taken
        return
    for task in tasks:
        taken = min(task_minimum(task), left)
        left -= taken
        yield task, taken
    for task in tasks:
        taken = min(task.replicas - task_minimum(task), left)
        left -= taken
        yield task, taken


def quota_usage(template: Mapping[str, Any]) -> dict[str, int]:
    """What one pod counts for in a quota: amounts in canonical units, by quota names."""
    usage: dict[str, int] = {"pods": 1, "count/pods": 1}
    for name, amount in resources.pod_request(template).items():
        usage[f"requests.{name}"] = amount
        usage[name] = amount
    limits: dict[str, int] = {}
    for container in (template.get("spec") or {}).get("containers") or []:
        given = (container.get("resources") or {}).get("limits") or {}
        limits = resources.add(limits, resources.parse_list(given))
    for name in ("cpu", "memory", "ephemeral-storage"):
        if name in limits:
            usage[f"limits.{name}"] = limits[name]
    return usage


def _written(name: str, amount: int) -> str:
    return resources.format_amount(
        name.removeprefix("requests.").removeprefix("limits."), amount
    )
