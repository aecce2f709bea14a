"""The pod of an attempt: the task's template, and what ties it to its job."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from hekla.api.job import Job, TaskSpec
from hekla.domain import names
from hekla.domain.attempt import Attempt
from services.controller.plugins.registry import PLUGINS

COPIED_ANNOTATIONS: Final = (names.PREEMPTABLE, names.COOLDOWN_TIME, names.REVOCABLE_ZONE)
COPIED_LABELS: Final = (names.PREEMPTABLE, names.COOLDOWN_TIME)


def build_pod(
    job: Job, task: TaskSpec, attempt: Attempt, *, owner_uid: str | None = None
) -> dict[str, Any]:
    """The pod to create for an attempt, in Kubernetes' shape.

    ``owner_uid`` is the uid of the job's custom resource, where one exists: Kubernetes
    deletes pods whose owner it cannot find.
    """
    template = copy.deepcopy(task.template or {})
    spec = template.get("spec") or {}
    _fill_spec(spec, job)
    _add_volumes(spec, job)
    given = template.get("metadata") or {}
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": attempt.pod_name,
            "namespace": job.metadata.namespace,
            "labels": {**(given.get("labels") or {}), **_labels(job, task, attempt)},
            "annotations": {
                **(given.get("annotations") or {}),
                **_annotations(job, task, attempt),
            },
            "finalizers": [*(given.get("finalizers") or []), names.OUTCOME_FINALIZER],
        },
        "spec": spec,
    }
    if owner_uid is not None:
        pod["metadata"]["ownerReferences"] = [_owner(job, owner_uid)]
    for name, arguments in (job.spec.plugins or {}).items():
        plugin = PLUGINS.get(name)
        if plugin is not None:
            plugin.on_pod(pod, job, task, attempt.index, arguments)
    return pod


def _fill_spec(spec: dict[str, Any], job: Job) -> None:
    if not spec.get("schedulerName"):
        spec["schedulerName"] = job.spec.scheduler_name or names.SCHEDULER_NAME
    if not spec.get("priorityClassName") and job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name


def _add_volumes(spec: dict[str, Any], job: Job) -> None:
    """Give every container the job's volumes. One without a claim is a folder of each pod."""
    for index, volume in enumerate(job.spec.volumes or []):
        name = f"hekla-volume-{index}"
        spec["volumes"] = [*(spec.get("volumes") or []), {"name": name, "emptyDir": {}}]
        for container in spec.get("containers") or []:
            mount = {"name": name, "mountPath": volume.mount_path}
            container["volumeMounts"] = [*(container.get("volumeMounts") or []), mount]


def _labels(job: Job, task: TaskSpec, attempt: Attempt) -> dict[str, str]:
    labels = {
        names.TASK_INDEX: str(attempt.index),
        names.TASK_SPEC: task.name,
        names.JOB_NAME: job.metadata.name,
        names.JOB_NAMESPACE: job.metadata.namespace,
        names.QUEUE_NAME: job.spec.queue,
        names.JOB_UID: job.metadata.uid,
    }
    of_job = job.metadata.labels or {}
    labels.update({key: of_job[key] for key in COPIED_LABELS if key in of_job})
    partition = task.partition_policy
    if partition is not None:
        size = partition.partition_size or 0
        labels[names.PARTITION_ID] = str(attempt.index // size if size > 0 else 0)
    return labels


def _annotations(job: Job, task: TaskSpec, attempt: Attempt) -> dict[str, str]:
    annotations = {
        names.TASK_INDEX: str(attempt.index),
        names.TASK_SPEC: task.name,
        names.JOB_NAME: job.metadata.name,
        names.QUEUE_NAME: job.spec.queue,
        names.GROUP_NAME: names.pod_group_name(job.metadata.name, job.metadata.uid),
        names.JOB_VERSION: str(attempt.job_version),
        names.JOB_RETRY_COUNT: str(job.status.retry_count),
        names.TEMPLATE_UID: f"{job.metadata.name}-{task.name}",
        names.ATTEMPT_UID: str(attempt.uid),
        names.RUN: str(attempt.run),
    }
    if attempt.group_uid is not None:
        annotations[names.GROUP_UID] = str(attempt.group_uid)
    if task.topology_policy:
        annotations[names.NUMA_POLICY] = task.topology_policy
    of_job = job.metadata.annotations or {}
    annotations.update({key: of_job[key] for key in COPIED_ANNOTATIONS if key in of_job})
    for budget in (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE):
        if budget in of_job:
            annotations[budget] = of_job[budget]
            break
    return annotations


def _owner(job: Job, uid: str) -> Mapping[str, Any]:
    return {
        "apiVersion": names.JOB_API_VERSION,
        "kind": "Job",
        "name": job.metadata.name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
