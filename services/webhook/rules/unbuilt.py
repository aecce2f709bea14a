"""Warnings for what is legal but has no effect, because it is not built yet.

When a feature is built its line goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hekla.api.job import Job, TaskSpec
from hekla.api.queue import Queue
from hekla.domain import paths

BUILT_PLUGINS: Final = frozenset({"env"})

_NOT_YET: Final = "is not supported yet"

CRON_JOB: Final = "CronJobs are kept and not run yet: nothing is started by the schedule"


def in_job(job: Job) -> Iterator[str]:
    """What a job asks for in vain."""
    spec = job.spec
    for plugin in spec.plugins or {}:
        if plugin not in BUILT_PLUGINS:
            yield f"{paths.at('spec.plugins', plugin)} {_NOT_YET}: the job will wait"
    if spec.network_topology is not None:
        yield f"spec.networkTopology {_NOT_YET} and is ignored"
    for index, volume in enumerate(spec.volumes or ()):
        if volume.volume_claim_name or volume.volume_claim is not None:
            yield f"{paths.at('spec.volumes', index)} {_NOT_YET}: the job will wait"
    for index, task in enumerate(spec.tasks or ()):
        yield from _task(task, paths.at("spec.tasks", index))


def _task(task: TaskSpec, place: str) -> Iterator[str]:
    if task.depends_on is not None and task.depends_on.name:
        yield f"{place}.dependsOn {_NOT_YET}: the job will wait"
    if task.partition_policy is not None:
        yield f"{place}.partitionPolicy {_NOT_YET} in scheduling: partitions may be torn"
    if task.topology_policy not in (None, "", "none"):
        yield f"{place}.topologyPolicy {_NOT_YET} and is ignored"


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
