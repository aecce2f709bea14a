"""What the webhook fills in, on top of the defaults of the definition.

On an update only what is absent is filled in, so that the manifest that made a job can be
applied again; zeros stay what they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, Self, TypeVar

from hekla.api.job import DEFAULT_MAX_RETRY, Job, JobSpec, TaskSpec, VolumeSpec
from hekla.api.job_template import JobTemplate
from hekla.api.meta import ObjectMeta
from hekla.api.pod_group import PodGroup
from hekla.api.queue import Queue
from hekla.domain.names import DEFAULT_QUEUE, ROOT_QUEUE
from services.webhook.rules.world import Limits, World


class HasMetadata(Protocol):
    """A model of a kind."""

    @property
    def metadata(self) -> ObjectMeta:
        """Its metadata."""

    def model_copy(self, *, update: Mapping[str, Any]) -> Self:
        """The same but for ``update``."""


DEFAULT_NAMESPACE: Final = "default"
HIERARCHY: Final = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS: Final = "volcano.sh/hierarchy-weights"

QUEUE_OF_NAMESPACE: Final = "scheduling.volcano.sh/queue-name"
"""Annotation of a namespace: the queue of pod groups that name none."""

Placed = TypeVar("Placed", bound=HasMetadata)

_NEED_SVC: Final = frozenset({"tensorflow", "mpi", "pytorch", "ray"})
_NEED_SSH: Final = frozenset({"mpi"})


def created_job(job: Job, limits: Limits) -> Job:
    """``job`` as it is stored when it is new."""
    # Zero is how Go clients say nothing.
    spec = job.spec.model_copy(
        update={
            "queue": job.spec.queue or DEFAULT_QUEUE,
            "max_retry": job.spec.max_retry or DEFAULT_MAX_RETRY,
            "min_available": job.spec.min_available or None,
            "tasks": [
                task.model_copy(update={"max_retry": task.max_retry or None})
                for task in job.spec.tasks or ()
            ]
            if job.spec.tasks is not None
            else None,
        }
    )
    return _filled(job, spec, limits)


def updated_job(job: Job, old: Job, limits: Limits) -> Job:
    """``job`` as it is stored in place of ``old``."""
    kept = {
        "volumes": _with_made_claims(job.spec.volumes, old.spec.volumes),
        # What was the default then need not be it now.
        "scheduler_name": job.spec.scheduler_name or old.spec.scheduler_name,
    }
    return _filled(job, job.spec.model_copy(update=kept), limits)


def stored_template(template: JobTemplate) -> JobTemplate:
    """``template`` as it is stored: as it was written, but for an empty queue."""
    spec = {"queue": template.spec.queue or DEFAULT_QUEUE}
    return placed(template.model_copy(update={"spec": template.spec.model_copy(update=spec)}))


def created_queue(queue: Queue) -> Queue:
    """``queue`` as it is stored when it is new: below root if it says nothing else."""
    spec: dict[str, object] = {"weight": queue.spec.weight or 1}
    if queue.spec.parent is None and queue.metadata.name != ROOT_QUEUE:
        spec["parent"] = ROOT_QUEUE
    if queue.spec.reclaimable is None:
        spec["reclaimable"] = True
    metadata = {"annotations": _rooted(queue.metadata.annotations)}
    queue = unplaced(queue)
    return queue.model_copy(
        update={
            "metadata": queue.metadata.model_copy(update=metadata),
            "spec": queue.spec.model_copy(update=spec),
        }
    )


def created_pod_group(group: PodGroup, world: World) -> PodGroup:
    """``group`` as it is stored when it is new: in its namespace's queue if it names none."""
    group = placed(group)
    if group.spec.queue != DEFAULT_QUEUE:
        return group
    queue = world.namespace_annotations(group.metadata.namespace).get(QUEUE_OF_NAMESPACE)
    if not queue:
        return group
    return group.model_copy(update={"spec": group.spec.model_copy(update={"queue": queue})})


def unplaced(obj: Placed) -> Placed:
    """``obj`` of a kind that belongs to no namespace, whatever its manifest says."""
    if not obj.metadata.namespace:
        return obj
    metadata = obj.metadata.model_copy(update={"namespace": ""})
    return obj.model_copy(update={"metadata": metadata})


def placed(obj: Placed) -> Placed:
    """``obj`` in the namespace that is meant when none is named."""
    if obj.metadata.namespace:
        return obj
    metadata = obj.metadata.model_copy(update={"namespace": DEFAULT_NAMESPACE})
    return obj.model_copy(update={"metadata": metadata})


def _filled(job: Job, spec: JobSpec, limits: Limits) -> Job:
    tasks = None
    if spec.tasks is not None:
        tasks = [_task(index, task) for index, task in enumerate(spec.tasks)]
    values: dict[str, Any] = {
        "scheduler_name": spec.scheduler_name or limits.scheduler_name,
        "tasks": tasks,
        "plugins": _plugins(spec.plugins),
    }
    if spec.min_available is None and tasks:
        values["min_available"] = sum(task.min_available or 0 for task in tasks)
    return placed(job.model_copy(update={"spec": spec.model_copy(update=values)}))


def _task(index: int, task: TaskSpec) -> TaskSpec:
    values: dict[str, Any] = {
        "name": task.name or f"default{index}",
        "template": _template(task.template),
    }
    if task.max_retry is None:
        values["max_retry"] = DEFAULT_MAX_RETRY
    if task.min_available is None:
        values["min_available"] = _min_available(task)
    return task.model_copy(update=values)


def _min_available(task: TaskSpec) -> int:
    partitions = task.partition_policy
    if partitions is not None and partitions.min_partitions > 0:
        return partitions.min_partitions * (partitions.partition_size or 0)
    return task.replicas


def _template(template: dict[str, Any] | None) -> dict[str, Any] | None:
    """A pod on its node's network asks the cluster for names, unless it says otherwise."""
    spec = template.get("spec") if template is not None else None
    if (
        not isinstance(spec, dict)
        or spec.get("hostNetwork") is not True
        or spec.get("dnsPolicy")
    ):
        return template
    return {**(template or {}), "spec": {**spec, "dnsPolicy": "ClusterFirstWithHostNet"}}


def _plugins(plugins: dict[str, list[str]] | None) -> dict[str, list[str]] | None:
    if plugins is None:
        return None
    filled = dict(plugins)
    if not _NEED_SVC.isdisjoint(plugins):
        filled.setdefault("svc", [])
    if not _NEED_SSH.isdisjoint(plugins):
        filled.setdefault("ssh", [])
    return filled


def _with_made_claims(
    volumes: Sequence[VolumeSpec] | None, old: Sequence[VolumeSpec] | None
) -> list[VolumeSpec] | None:
    """Volumes with the names of the claims that were made for them."""
    if volumes is None:
        return None
    made = [volume.volume_claim_name for volume in old or ()]
    made += [None] * (len(volumes) - len(made))
    return [
        volume.model_copy(update={"volume_claim_name": name})
        if volume.volume_claim is not None and volume.volume_claim_name is None
        else volume
        for volume, name in zip(volumes, made, strict=False)
    ]


def _rooted(annotations: dict[str, str] | None) -> dict[str, str] | None:
    path, weights = ((annotations or {}).get(key) for key in (HIERARCHY, HIERARCHY_WEIGHTS))
    if not path or not weights or path.startswith(ROOT_QUEUE):
        return annotations
    rooted = {HIERARCHY: f"{ROOT_QUEUE}/{path}", HIERARCHY_WEIGHTS: f"1/{weights}"}
    return (annotations or {}) | rooted
