"""Warnings for what is legal but has no effect: because it cannot, or because it is not built.

When a feature is built its line goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hekla.api.job import Job, LifecyclePolicy, TaskSpec
from hekla.api.queue import Queue
from hekla.domain import paths
from hekla.domain.phases import JobEvent

BUILT_PLUGINS: Final = frozenset({"env"})

_NOT_YET: Final = "is not supported yet"


def in_job(job: Job) -> Iterator[str]:
    """What a job asks for in vain."""
    spec = job.spec
    for plugin in spec.plugins or {}:
        if plugin not in BUILT_PLUGINS:
            yield f"{paths.at('spec.plugins', plugin)} {_NOT_YET}: the job will wait"
    if spec.network_topology is not None:
        yield f"spec.networkTopology {_NOT_YET} and is ignored"
    for index, volume in enumerate(spec.volumes or ()):
        place = paths.at("spec.volumes", index)
        if volume.volume_claim_name or volume.volume_claim is not None:
            yield f"{place} {_NOT_YET}: the job will wait"
        else:
            yield f"{place} has neither volumeClaimName nor volumeClaim: it is an emptyDir"
    total = sum(task.replicas for task in spec.tasks or ())
    if spec.min_success is not None and spec.min_success > total:
        yield f"spec.minSuccess is {spec.min_success}, but there are {total} pods in all"
    yield from _policies(spec.policies or [], "spec.policies")
    for index, task in enumerate(spec.tasks or ()):
        yield from _task(task, paths.at("spec.tasks", index))


def _task(task: TaskSpec, place: str) -> Iterator[str]:
    if task.depends_on is not None and task.depends_on.name:
        yield f"{place}.dependsOn {_NOT_YET}: the job will wait"
    if task.partition_policy is not None:
        yield f"{place}.partitionPolicy {_NOT_YET} in scheduling: partitions may be torn"
    if task.topology_policy not in (None, "", "none"):
        yield f"{place}.topologyPolicy {_NOT_YET} and is ignored"
    yield from _policies(task.policies or [], f"{place}.policies")


def _policies(policies: Sequence[LifecyclePolicy], path: str) -> Iterator[str]:
    for index, policy in enumerate(policies):
        place = paths.at(path, index)
        if JobEvent.POD_PENDING in _events(policy) and not policy.timeout:
            yield f"{place}: {JobEvent.POD_PENDING} without a timeout does nothing"


def _events(policy: LifecyclePolicy) -> set[str | None]:
    return {policy.event, *(policy.events or ())}


def in_queue(queue: Queue) -> Iterator[str]:
    """What a queue asks for in vain."""
    spec = queue.spec
    asked = {
        "deserved": spec.deserved,
        "guarantee": spec.guarantee,
        "affinity": spec.affinity,
        "extendClusters": spec.extend_clusters,
        "priority": spec.priority,
    }
    for name, value in asked.items():
        if value:
            yield f"spec.{name} {_NOT_YET} and is ignored"
    if spec.weight != 1:
        yield f"spec.weight {_NOT_YET}: queues share nothing by weight"
    if spec.dequeue_strategy == "fifo":
        yield f"spec.dequeueStrategy: fifo {_NOT_YET}, traverse is used"
