"""Values out of bounds are refused, with their path and all at once."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from hekla.api import bounds, decode
from hekla.api.fields import Bound, Model, Timestamp
from tests.support.manifests import PROBE, complaints, manifest, probing, task
from tests.support.objects import job_manifest


@pytest.mark.parametrize(
    ("raw", "path", "message"),
    [
        (
            job_manifest(tasks=[task(replicas=-1)]),
            "spec.tasks[0].replicas",
            "must be >= 0, is -1",
        ),
        (
            job_manifest(tasks=[task(minAvailable=-1)]),
            "spec.tasks[0].minAvailable",
            "must be >= 0",
        ),
        (job_manifest(tasks=[task(maxRetry=-1)]), "spec.tasks[0].maxRetry", "must be >= 0"),
        (job_manifest(tasks=[task(name="A")]), "spec.tasks[0].name", 'is "A"'),
        (job_manifest(tasks=[task(name="a.b")]), "spec.tasks[0].name", 'is "a.b"'),
        (job_manifest(tasks=[task(name="x" * 64)]), "spec.tasks[0].name", "no more than 63"),
        (
            job_manifest(tasks=[task(topologyPolicy="x")]),
            "spec.tasks[0].topologyPolicy",
            "must be one of",
        ),
        (
            job_manifest(tasks=[task(partitionPolicy={})]),
            "spec.tasks[0].partitionPolicy.partitionSize",
            "is required",
        ),
        (
            job_manifest(
                tasks=[task(partitionPolicy={"totalPartitions": 0, "partitionSize": 1})]
            ),
            "spec.tasks[0].partitionPolicy.totalPartitions",
            "must be >= 1",
        ),
        (job_manifest(tasks=[]), "spec.tasks", "must have 1 or more items"),
        (job_manifest(minAvailable=-1), "spec.minAvailable", "must be >= 0"),
        (job_manifest(maxRetry=-1), "spec.maxRetry", "must be >= 0"),
        (
            job_manifest(ttlSecondsAfterFinished=-1),
            "spec.ttlSecondsAfterFinished",
            "must be >= 0",
        ),
        (job_manifest(minSuccess=0), "spec.minSuccess", "must be >= 1"),
        (job_manifest(queue=""), "spec.queue", 'is ""'),
        (job_manifest(queue="A"), "spec.queue", 'is "A"'),
        (job_manifest(queue="x" * 254), "spec.queue", "no more than 253"),
        (job_manifest(schedulerName="x" * 64), "spec.schedulerName", "no more than 63"),
        (job_manifest(priorityClassName=""), "spec.priorityClassName", 'is ""'),
        (job_manifest(runningEstimate="soon"), "spec.runningEstimate", "must be a duration"),
        (
            job_manifest(policies=[{"event": "Podfailed"}]),
            "spec.policies[0].event",
            "must be one of",
        ),
        (
            job_manifest(policies=[{"events": ["*", ""]}]),
            "spec.policies[0].events[1]",
            "must be one of",
        ),
        (
            job_manifest(policies=[{"timeout": "10"}]),
            "spec.policies[0].timeout",
            'must be a duration such as 10s or 1h30m, is "10"',
        ),
        (job_manifest(volumes=[{}]), "spec.volumes[0].mountPath", "is required"),
        (
            job_manifest(volumes=[{"mountPath": ""}]),
            "spec.volumes[0].mountPath",
            "must not be empty",
        ),
        (
            job_manifest(volumes=[{"mountPath": "a:b"}]),
            "spec.volumes[0].mountPath",
            "must not contain ':'",
        ),
        (
            job_manifest(networkTopology={"mode": "x"}),
            "spec.networkTopology.mode",
            "must be one of hard, soft",
        ),
        (
            job_manifest(networkTopology={"highestTierAllowed": -1}),
            "spec.networkTopology.highestTierAllowed",
            "must be >= 0",
        ),
        (
            job_manifest() | {"status": {"state": {"phase": "Done"}}},
            "status.state.phase",
            "must be one of",
        ),
        (job_manifest() | {"status": {"running": -1}}, "status.running", "must be >= 0"),
        (manifest("Queue", weight=0), "spec.weight", "must be >= 1"),
        (manifest("Queue", weight=65536), "spec.weight", "must be <= 65535"),
        (manifest("Queue", priority=-1), "spec.priority", "must be >= 0"),
        (
            manifest("Queue", dequeueStrategy="lifo"),
            "spec.dequeueStrategy",
            "must be one of fifo, traverse",
        ),
        (manifest("Queue", parent=""), "spec.parent", 'is ""'),
        (
            manifest("Queue", capability={"cpu": "lots"}),
            "spec.capability.cpu",
            'must be a quantity such as 500m or 4Gi, is "lots"',
        ),
        (
            manifest("Queue", guarantee={"resource": {"cpu": ""}}),
            "spec.guarantee.resource.cpu",
            "must be a quantity",
        ),
        (
            manifest("Queue", extendClusters=[{"capacity": {"cpu": "x"}}]),
            "spec.extendClusters[0].capacity.cpu",
            "must be a quantity",
        ),
        (manifest("PodGroup", minMember=-1), "spec.minMember", "must be >= 0"),
        (
            manifest("PodGroup", subGroupPolicy=[{"subGroupSize": 0}]),
            "spec.subGroupPolicy[0].subGroupSize",
            "must be >= 1",
        ),
        (
            manifest(
                "PodGroup",
                subGroupPolicy=[
                    {
                        "labelSelector": {
                            "matchExpressions": [{"operator": "In", "values": ["a"]}]
                        }
                    }
                ],
            ),
            "spec.subGroupPolicy[0].labelSelector.matchExpressions[0].key",
            "is required",
        ),
        (manifest("JobFlow", flows=[{"name": ""}]), "spec.flows[0].name", "must not be empty"),
        (manifest("JobFlow", flows=[{}]), "spec.flows[0].name", "must not be empty"),
        (
            manifest("JobFlow", jobRetainPolicy="keep"),
            "spec.jobRetainPolicy",
            "must be one of retain, delete",
        ),
        (probing(httpGetList=[{"port": 65536}]), f"{PROBE}.httpGetList[0].port", "<= 65535"),
        (
            probing(httpGetList=[{"httpHeader": {"name": "a"}}]),
            f"{PROBE}.httpGetList[0].httpHeader.value",
            "is required",
        ),
        (probing(tcpSocketList=[{}]), f"{PROBE}.tcpSocketList[0].port", "is required"),
        (
            probing(taskStatusList=[{"phase": "x" * 64}]),
            f"{PROBE}.taskStatusList[0].phase",
            "no more than 63",
        ),
        (
            manifest(
                "JobFlow", flows=[{"name": "a", "patch": {"jobSpec": {"minAvailable": -1}}}]
            ),
            "spec.flows[0].patch.jobSpec.minAvailable",
            "must be >= 0",
        ),
        (manifest("JobTemplate", maxRetry=-1), "spec.maxRetry", "must be >= 0"),
        (manifest("CronJob"), "spec.schedule", "is required"),
        (manifest("CronJob"), "spec.jobTemplate", "is required"),
        (
            manifest("CronJob", concurrencyPolicy="Maybe"),
            "spec.concurrencyPolicy",
            "must be one of Allow, Forbid, Replace",
        ),
        (manifest("CronJob", startingDeadlineSeconds=-1), "spec.startingDeadlineSeconds", "0"),
        (
            manifest("CronJob", jobTemplate={"metadata": {"labels": {"a": "-"}}}),
            "spec.jobTemplate.metadata.labels.a",
            "must consist of",
        ),
        (
            manifest("CronJob", jobTemplate={"spec": {"maxRetry": -1}}),
            "spec.jobTemplate.spec.maxRetry",
            "must be >= 0",
        ),
        (manifest("HyperNode", members=[]), "spec.members", "must have 1 or more items"),
        (manifest("HyperNode", tier=-1), "spec.tier", "must be >= 0"),
        (manifest("HyperNode"), "spec.tier", "is required"),
        (
            manifest("HyperNode", tier=1, members=[{"type": "Rack"}]),
            "spec.members[0].type",
            "must be one of Node, HyperNode",
        ),
        (
            manifest("HyperNode", tier=1, members=[{"type": "Node", "selector": {}}]),
            "spec.members[0].selector",
            "must have one of exactMatch, regexMatch and labelMatch, has 0",
        ),
        (
            manifest(
                "HyperNode",
                tier=1,
                members=[{"type": "Node", "selector": {"exactMatch": {"name": "A"}}}],
            ),
            "spec.members[0].selector.exactMatch.name",
            "must consist of",
        ),
        (
            manifest("HyperNode", tier=1) | {"status": {"conditions": [{"status": "Maybe"}]}},
            "status.conditions[0].status",
            "must be one of True, False, Unknown",
        ),
        (
            manifest("Numatopology", cpuDetail={"0": {"numa": -1}}),
            "spec.cpuDetail[0].numa",
            "must be >= 0",
        ),
        (
            {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command"}
            | {"metadata": {"name": "x"}, "action": "AbortJob", "target": {"kind": "Job"}},
            "target.uid",
            "is required",
        ),
        (
            manifest(
                "PodGroup", subGroupPolicy=[{"labelSelector": {"matchLabels": {"a": "-"}}}]
            ),
            "spec.subGroupPolicy[0].labelSelector.matchLabels.a",
            "must consist of",
        ),
    ],
)
def test_a_value_out_of_bounds_is_refused_with_its_path(
    raw: dict[str, Any], path: str, message: str
) -> None:
    assert message in complaints(raw)[path]


@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        ({}, "metadata.name"),
        ({"name": ""}, "metadata.name"),
        ({"name": "A"}, "metadata.name"),
        ({"name": "a_b"}, "metadata.name"),
        ({"name": "ü"}, "metadata.name"),
        ({"name": "a" * 254}, "metadata.name"),
        ({"generateName": "A-"}, "metadata.generateName"),
        ({"name": "a", "namespace": "a.b"}, "metadata.namespace"),
        ({"name": "a", "labels": {"a b": "c"}}, "metadata.labels[a b]"),
        ({"name": "a", "labels": {"a": "x" * 64}}, "metadata.labels.a"),
        ({"name": "a", "labels": {"a": 1}}, "metadata.labels.a"),
        ({"name": "a", "annotations": {"-": "c"}}, "metadata.annotations[-]"),
        ({"name": "a", "annotations": {"a": "x" * 2**18}}, "metadata.annotations"),
        ({"name": "a", "finalizers": ["a b"]}, "metadata.finalizers[0]"),
        ({"name": "a", "ownerReferences": [{"name": "x"}]}, "metadata.ownerReferences[0].uid"),
        ({"name": "a", "creationTimestamp": "now"}, "metadata.creationTimestamp"),
        ({"name": "a", "owner": "me"}, "metadata.owner"),
    ],
)
def test_metadata_keeps_to_the_rules_of_kubernetes(metadata: dict[str, Any], path: str) -> None:
    assert path in complaints(job_manifest() | {"metadata": metadata})


@pytest.mark.parametrize(
    "metadata",
    [
        {"generateName": "run-"},
        {"name": "a.b-c.1"},
        {"name": "1", "annotations": {"Example.com/x": "any ☃ text\n"}},
        {"name": "a", "labels": {"example.com/X_y.z": "", "b": "C"}},
    ],
)
def test_metadata_that_kubernetes_takes_is_taken(metadata: dict[str, Any]) -> None:
    decode.decode(job_manifest() | {"metadata": metadata})


def test_everything_wrong_is_told_at_once() -> None:
    raw = job_manifest(minSuccess=0, maxRetry=-1, tasks=[task(replicas=-1), task(name="-")])

    assert set(complaints(raw)) == {
        "spec.minSuccess",
        "spec.maxRetry",
        "spec.tasks[0].replicas",
        "spec.tasks[1].name",
    }


def test_an_empty_queue_passes_until_its_bounds_are_checked() -> None:
    found = decode.read(job_manifest(queue="", tasks=[task(name="")]))

    assert [violation.path for violation in bounds.violations(found)] == ["spec.queue"]


class Inner(Model):
    at: Annotated[Timestamp | None, Bound(required=True)] = None


@pytest.mark.parametrize(("at", "message"), [(None, "is required"), ("now", "must be a time")])
def test_every_bound_of_a_field_counts(at: str | None, message: str) -> None:
    [found] = bounds.violations(Inner(at=at), "x")

    assert found.path == "x.at"
    assert message in found.message
