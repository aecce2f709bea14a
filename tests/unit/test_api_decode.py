"""Objects are read strictly, with the defaults of their definitions."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings

from hekla.api import decode
from hekla.api.cron_job import CronJob
from hekla.api.fields import Model
from hekla.api.job import Job, JobSpec
from hekla.api.job_template import JobTemplate
from hekla.api.pod_group import PodGroup
from hekla.api.queue import Queue
from tests.support.manifests import complaints, job, manifest, task
from tests.support.objects import job_manifest, models


def test_a_job_has_the_defaults_of_its_definition() -> None:
    partitions = {"totalPartitions": 1, "partitionSize": 1}
    spec = job(networkTopology={}, tasks=[{"partitionPolicy": partitions}]).spec  # fmt: skip

    assert (spec.queue, spec.max_retry) == ("default", 3)
    assert (spec.min_success, spec.ttl_seconds_after_finished) == (None, None)
    assert spec.network_topology is not None
    assert spec.network_topology.mode == "hard"
    assert spec.tasks is not None
    assert (spec.tasks[0].replicas, spec.tasks[0].min_available) == (0, None)
    assert spec.tasks[0].partition_policy is not None
    assert spec.tasks[0].partition_policy.min_partitions == 0


def test_a_queue_has_the_defaults_of_its_definition() -> None:
    found = decode.decode(manifest("Queue"))

    assert isinstance(found, Queue)
    assert (found.spec.weight, found.spec.dequeue_strategy) == (1, "traverse")
    assert (found.spec.reclaimable, found.spec.parent, found.spec.priority) == (
        None,
        None,
        None,
    )


def test_a_pod_group_has_the_defaults_of_its_definition() -> None:
    found = decode.decode(manifest("PodGroup", subGroupPolicy=[{"name": "a"}]))

    assert isinstance(found, PodGroup)
    assert found.spec.queue == "default"
    assert found.spec.sub_group_policy is not None
    [policy] = found.spec.sub_group_policy
    assert (policy.sub_group_size, policy.min_sub_groups) == (1, 0)


def test_the_jobs_of_templates_and_cron_jobs_have_the_defaults_of_jobs() -> None:
    template = decode.decode(manifest("JobTemplate", tasks=[task()]))
    cron = decode.decode(manifest("CronJob", schedule="@daily", jobTemplate={"spec": {}}))

    assert isinstance(template, JobTemplate)
    assert (template.spec.queue, template.spec.max_retry) == ("default", 3)
    assert isinstance(cron, CronJob)
    assert cron.spec.job_template is not None
    assert cron.spec.job_template.spec == JobSpec()
    assert (cron.spec.concurrency_policy, cron.spec.suspend) == ("Allow", False)
    limits = (cron.spec.successful_jobs_history_limit, cron.spec.failed_jobs_history_limit)
    assert limits == (3, 1)


def test_a_patch_says_only_what_it_changes() -> None:
    patch = {"jobSpec": {"minAvailable": 0, "tasks": [{"name": "t", "maxRetry": 1}]}}
    raw = manifest("JobFlow", flows=[{"name": "a", "patch": patch}])

    assert decode.encode(decode.decode(raw)) == raw


def test_metadata_that_go_writes_into_a_cron_job_is_read() -> None:
    made = {"metadata": {"creationTimestamp": None, "labels": {"a": "b"}}, "spec": {}}

    found = decode.decode(manifest("CronJob", schedule="@daily", jobTemplate=made))

    assert isinstance(found, CronJob)
    assert found.spec.job_template is not None
    assert found.spec.job_template.metadata is not None
    assert found.spec.job_template.metadata.labels == {"a": "b"}


def test_null_is_absent() -> None:
    raw = job_manifest(
        queue=None, maxRetry=None, plugins=None, tasks=[task(name=None, replicas=None)]
    )
    raw |= {"status": None}
    raw["metadata"]["creationTimestamp"] = None

    found = decode.read(raw)

    assert isinstance(found, Job)
    assert (found.spec.queue, found.spec.max_retry, found.spec.plugins) == ("default", 3, None)
    assert found.spec.tasks is not None
    assert (found.spec.tasks[0].name, found.spec.tasks[0].replicas) == ("", 0)


def test_what_is_given_is_kept_though_it_is_zero_or_empty() -> None:
    given_ = {
        "minAvailable": 0,
        "volumes": [],
        "plugins": {},
        "schedulerName": "",
        "maxRetry": 0,
    }

    encoded = decode.encode(job(**given_))["spec"]

    assert {key: encoded[key] for key in given_} == given_


def test_what_is_absent_stays_absent() -> None:
    raw = job_manifest(queue="q", maxRetry=1)

    assert decode.encode(decode.decode(raw)) == raw


def test_pod_templates_are_kept_to_the_letter() -> None:
    template: dict[str, Any] = {
        "spec": {"a": None, "b": {}, "c": [None, {"d": None}], "e": 2**63, "f": "ü"}
    }

    encoded = decode.encode(job(tasks=[task(template=template)]))

    assert json.dumps(encoded["spec"]["tasks"][0]["template"]) == json.dumps(template)


def test_whole_numbers_are_quantities() -> None:
    found = decode.decode(manifest("Queue", capability={"cpu": 4, "memory": "4Gi"}))

    assert isinstance(found, Queue)
    assert found.spec.capability == {"cpu": "4", "memory": "4Gi"}


def test_what_a_server_shows_can_be_sent_back() -> None:
    raw = job_manifest()
    raw["metadata"] |= {
        "uid": "u",
        "resourceVersion": "5",
        "generation": 2,
        "managedFields": [{"manager": "x"}],
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "selfLink": "/x",
    }
    raw["status"] = {"state": {"phase": "Running"}, "running": 1}
    before = copy.deepcopy(raw)

    found = decode.decode(raw)

    assert found.metadata.resource_version == "5"
    assert raw == before, "the caller's data is the caller's"


@pytest.mark.parametrize("model", decode.KINDS.values())
def test_every_object_survives_json(model: type[Model]) -> None:
    @settings(max_examples=25)
    @given(models(model))
    def check(value: Model) -> None:
        text = json.dumps(decode.encode(value))

        assert decode.read(json.loads(text)) == value

    check()


@pytest.mark.parametrize(
    ("raw", "path", "message"),
    [
        ({}, "kind", "is required"),
        ({"kind": "Job", "apiVersion": 5}, "apiVersion", "must be a text, is 5"),
        ({"kind": "Job", "apiVersion": "batch/v1"}, "apiVersion", "of Volcano"),
        ({"kind": "Pod", "apiVersion": "v1"}, "kind", "must be one of Job, PodGroup, Queue"),
        (job_manifest(minAvailble=2), "spec.minAvailble", "did you mean minAvailable?"),
        (job_manifest(min_available=2), "spec.min_available", "is no field"),
        (
            job_manifest(tasks=[task(replica=1)]),
            "spec.tasks[0].replica",
            "did you mean replicas?",
        ),
        (job_manifest(tasks=[task(replicas="two")]), "spec.tasks[0].replicas", 'is "two"'),
        (
            job_manifest(tasks=[task(replicas="2")]),
            "spec.tasks[0].replicas",
            "must be an integer",
        ),
        (
            job_manifest(tasks=[task(replicas=1.5)]),
            "spec.tasks[0].replicas",
            "must be an integer, is 1.5",
        ),
        (
            job_manifest(tasks=[task(replicas=True)]),
            "spec.tasks[0].replicas",
            "must be an integer, is true",
        ),
        (
            job_manifest(minAvailable=2**31),
            "spec.minAvailable",
            "must be an integer of 32 bits",
        ),
        (
            job_manifest(policies=[{"timeout": 10}]),
            "spec.policies[0].timeout",
            "must be a text, is 10",
        ),
        (job_manifest(tasks={}), "spec.tasks", "must be a list"),
        (job_manifest(tasks=[None]), "spec.tasks[0]", "must be an object, is null"),
        (
            job_manifest(tasks=[task(template=[])]),
            "spec.tasks[0].template",
            "must be an object",
        ),
        (job_manifest(plugins={"env": None}), "spec.plugins.env", "must be a list, is null"),
        (
            job_manifest(plugins={"svc": ["a", 1]}),
            "spec.plugins.svc[1]",
            "must be a text, is 1",
        ),
        (manifest("Queue", reclaimable="yes"), "spec.reclaimable", "must be true or false"),
        (
            manifest("Queue", capability={"cpu": 0.5}),
            "spec.capability.cpu",
            "must be a text, is 0.5",
        ),
        (
            manifest("Queue", capability={"x.io/y": []}),
            "spec.capability[x.io/y]",
            "must be a text",
        ),
    ],
)
def test_a_wrong_shape_is_refused_with_its_path(
    raw: dict[str, Any], path: str, message: str
) -> None:
    assert message in complaints(raw)[path]
