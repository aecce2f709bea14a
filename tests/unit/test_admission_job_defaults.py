"""What the webhook completes in a job. C-numbers name published cases."""

from __future__ import annotations

from typing import Any

import pytest

from hekla.api import decode
from hekla.api.job import (
    Job,
    PartitionPolicySpec,
)
from tests.support.admission import accepted, tasks_of
from tests.support.objects import (
    job_manifest,
    make_job,
    make_task,
    pod_template,
)


def test_a_job_that_says_little_is_completed() -> None:
    raw = job_manifest(minAvailable=0, tasks=[{"replicas": 2, "template": pod_template()}])
    del raw["metadata"]["namespace"]
    job = decode.read(raw | {"spec": raw["spec"] | {"queue": "", "maxRetry": 0}})
    assert isinstance(job, Job)

    spec = accepted(job).spec

    assert (spec.queue, spec.scheduler_name, spec.max_retry) == ("default", "volcano", 3)
    assert spec.min_available == 2
    assert accepted(job).metadata.namespace == "default"
    [task] = spec.tasks or []
    assert (task.name, task.min_available, task.max_retry) == ("default0", 2, 3)


def test_what_a_job_says_stays() -> None:
    task = make_task(min_available=0, max_retry=5)
    job = make_job("j", task, min_available=1, max_retry=1, scheduler_name="other")

    spec = accepted(job).spec

    assert (spec.min_available, spec.max_retry, spec.scheduler_name) == (1, 1, "other")
    assert (tasks_of(job)[0].min_available, tasks_of(job)[0].max_retry) == (0, 5)


def test_the_least_is_the_sum_of_what_tasks_need() -> None:
    """C04: tasks (3, min 2) and (2, unset)."""
    job = make_job("j", make_task("a", 3, min_available=2), make_task("b", 2), min_available=0)

    assert accepted(job).spec.min_available == 4


def test_whole_partitions_are_the_least_a_task_needs() -> None:
    policy = PartitionPolicySpec(total_partitions=3, partition_size=2, min_partitions=2)

    [task] = tasks_of(accepted(make_job("j", make_task("t", 6, partition_policy=policy))))

    assert task.min_available == 4


@pytest.mark.parametrize(
    ("plugins", "filled"),
    [
        (None, None),
        ({}, {}),
        ({"env": []}, {"env": []}),
        ({"tensorflow": []}, {"tensorflow": [], "svc": []}),
        ({"mpi": ["--master=t"]}, {"mpi": ["--master=t"], "svc": [], "ssh": []}),
        ({"pytorch": [], "svc": ["a"]}, {"pytorch": [], "svc": ["a"]}),
        ({"ray": []}, {"ray": [], "svc": []}),
        ({"hcclrank": []}, {"hcclrank": []}),
    ],
)
def test_frameworks_bring_the_plugins_they_need(plugins: Any, filled: Any) -> None:
    assert accepted(make_job(plugins=plugins)).spec.plugins == filled


@pytest.mark.parametrize(
    ("spec", "policy"),
    [
        ({"hostNetwork": True}, "ClusterFirstWithHostNet"),
        ({"hostNetwork": True, "dnsPolicy": "Default"}, "Default"),
        ({"hostNetwork": False}, None),
        ({}, None),
    ],
)
def test_pods_on_the_network_of_their_node_still_find_the_cluster(
    spec: dict[str, Any], policy: str | None
) -> None:
    template = pod_template(**spec)

    [task] = tasks_of(accepted(make_job("j", make_task(template=template))))

    assert task.template is not None
    assert task.template["spec"].get("dnsPolicy") == policy
    assert "ClusterFirstWithHostNet" not in str(template), "the caller's data is the caller's"
