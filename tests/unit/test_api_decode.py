"""Objects are read strictly, and told of in full when they are wrong."""

from __future__ import annotations

import copy
import json
from typing import Annotated, Any

import pytest
from hypothesis import example, given, settings, strategies as st

from hekla.api import bounds, decode
from hekla.api.cron_job import CronJob
from hekla.api.fields import Bound, Model, Timestamp
from hekla.api.job import Job, JobSpec
from hekla.api.job_template import JobTemplate
from hekla.api.plain import MOST_VALUES
from hekla.api.pod_group import PodGroup
from hekla.api.queue import Queue
from hekla.domain.errors import InvalidError
from tests.support.objects import job_manifest, models, pod_template


def manifest(kind: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "x"}
    [version] = [version for version, known in decode.KINDS if known == kind]
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


PROBE = "spec.flows[1].dependsOn.probe"


def probing(**probe: Any) -> dict[str, Any]:
    depends = {"targets": ["a"], "probe": probe}
    return manifest("JobFlow", flows=[{"name": "a"}, {"name": "b", "dependsOn": depends}])


def job(**spec: Any) -> Job:
    found = decode.decode(job_manifest(**spec))
    assert isinstance(found, Job)
    return found


def task(**more: Any) -> dict[str, Any]:
    return {"name": "t", "replicas": 1, "template": pod_template()} | more


def complaints(raw: Any) -> dict[str, str]:
    with pytest.raises(InvalidError) as refused:
        decode.decode(raw)
    return {violation.path: violation.message for violation in refused.value.violations}


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


def cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["again"] = value
    return value


def bomb() -> Any:
    value: Any = "x"
    for _ in range(30):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        cyclic(),
        bomb(),
        [0] * (MOST_VALUES + 1),
        {1: 2},
        {None: 1},
        "\0",
        "\ud800",
        {"\0": 1},
        float("nan"),
        float("inf"),
        2**64,
        -(2**63) - 1,
        pytest.param(10**5000, id="a number of 5,001 digits"),
        pytest.param({10**5000: 1}, id="a key of 5,001 digits"),
        b"bytes",
        {1},
        (1,),
        object(),
    ],
)
def test_what_can_be_neither_stored_nor_sent_is_refused(value: Any) -> None:
    raw = job_manifest(tasks=[task(template={"spec": value})])

    assert all(path.startswith("spec.tasks[0].template") for path in complaints(raw))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text() | st.integers() | st.none(), inner, max_size=4)
    ),
    max_leaves=20,
)
WORDS = st.sampled_from(
    [
        "spec",
        "tasks",
        "metadata",
        "name",
        "replicas",
        "queue",
        "policies",
        "plugins",
        "status",
        "template",
        "labels",
        "volumes",
        "mountPath",
        "minAvailable",
        "capability",
        "subGroupPolicy",
        "labelSelector",
        "matchExpressions",
        "key",
        "partitionPolicy",
        "state",
        "conditions",
    ]
)
LIKELY = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**33) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=30,
)


@given(ANYTHING)
@example({"apiVersion": {}, "kind": []})
def test_nothing_breaks_the_decoder(raw: Any) -> None:
    with pytest.raises(InvalidError) as refused:
        decode.decode(raw)
    assert str(refused.value).isprintable()


@given(LIKELY, st.sampled_from(sorted(decode.KINDS)))
def test_nothing_that_looks_like_an_object_breaks_the_decoder(
    raw: Any, kind: tuple[str, str]
) -> None:
    if isinstance(raw, dict):
        raw |= {"apiVersion": kind[0], "kind": kind[1]}
    try:
        decode.decode(raw)
    except InvalidError as error:
        assert str(error).isprintable()  # noqa: PT017


@given(models(Job))
@settings(max_examples=30)
def test_bounds_can_be_asked_of_every_job(value: Job) -> None:
    for violation in bounds.violations(value):
        assert violation.path
        assert violation.message
