"""What the scheduler keeps of Kubernetes' objects."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from typing import Any

import pytest

from hekla.domain import names
from hekla.domain.phases import PodPhase
from hekla.domain.selector import Operator, Requirement
from services.scheduler import projection
from services.scheduler.core.objects import NodeTerm, PriorityClass, Taint, Toleration
from tests.support.local_cluster import Object

DEMANDED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def make(spec: Object | None = None, status: Object | None = None, **metadata: Any) -> Object:
    return {
        "metadata": {
            "uid": "u",
            "namespace": "ns",
            "name": "job-main-3",
            "resourceVersion": "7",
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"a": "b"},
            "annotations": {
                names.GROUP_NAME: "group",
                names.GROUP_UID: "g",
                names.TASK_SPEC: "main",
                names.TASK_INDEX: "3",
            },
            **metadata,
        },
        "spec": {"containers": [], "schedulerName": "volcano", **(spec or {})},
        "status": status or {},
    }


def requesting(cpu: str, **spec: Any) -> Object:
    return make({"containers": [{"resources": {"requests": {"cpu": cpu}}}], **spec})


def test_a_pod_keeps_what_placement_and_its_group_need() -> None:
    tolerations = [{"key": "k", "operator": "Exists"}]
    seen = projection.pod(
        requesting("500m", nodeSelector={"disk": "ssd"}, tolerations=tolerations, priority=9)
    )

    pod = seen.pod
    assert (pod.uid, pod.namespace, pod.name) == ("u", "ns", "job-main-3")
    assert (pod.group, pod.group_uid, pod.task, pod.index) == ("group", "g", "main", 3)
    assert pod.created == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert pod.spec.request == (("cpu", 500),)
    assert pod.spec.node_selector == (("disk", "ssd"),)
    assert pod.spec.tolerations == (Toleration("k", "Exists"),)
    assert pod.spec.priority == 9
    assert pod.spec.features == ()
    assert pod.phase is PodPhase.PENDING
    assert (seen.scheduler, seen.version) == ("volcano", "7")


def test_replicas_share_one_spec_whatever_else_differs() -> None:
    first = requesting("1")
    second = requesting("1")
    second["metadata"]["uid"] = "other"
    second["spec"]["containers"][0]["env"] = [{"name": "INDEX", "value": "2"}]

    assert projection.pod(first).pod.spec is projection.pod(second).pod.spec


def test_a_pod_says_in_its_status_what_it_was_told() -> None:
    ready = {"type": "Ready", "status": "False"}
    why = {"type": "PodScheduled", "status": "False", "reason": "R", "message": "M"}

    waiting = projection.pod(make(status={"conditions": [ready, why]}))
    placed = projection.pod(make({"nodeName": "n"}, {"conditions": [ready, why]}))

    assert waiting.told == ("R", "M")
    assert waiting.conditions == ('{"type":"Ready","status":"False"}',)
    assert (placed.told, placed.conditions, placed.version) == (("", ""), (), "")


@pytest.mark.parametrize(
    ("spec", "features"),
    [
        ({"affinity": {"podAffinity": {PREFERRED: [1]}}}, ()),
        ({"affinity": {"nodeAffinity": {DEMANDED: {"nodeSelectorTerms": [{}]}}}}, ()),
        ({"affinity": {"podAntiAffinity": {DEMANDED: [1]}}}, ("podAntiAffinity",)),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, ()),
        ({"topologySpreadConstraints": [{"maxSkew": 1}]}, ("topologySpread",)),
        ({"containers": [{"ports": [{"containerPort": 1}]}]}, ()),
        ({"containers": [{"ports": [{"hostPort": 1}]}]}, ("hostPorts",)),
        ({"volumes": [{"emptyDir": {}}]}, ()),
        ({"volumes": [{"persistentVolumeClaim": {"claimName": "c"}}]}, ("volumeClaims",)),
        ({"resourceClaims": [{"name": "gpu"}]}, ("resourceClaims",)),
    ],
)
def test_what_a_pod_demands_is_named_and_what_it_prefers_is_not(
    spec: Object, features: tuple[str, ...]
) -> None:
    assert projection.pod(make(spec)).pod.spec.features == features


def test_node_affinity_is_read_as_terms() -> None:
    zone = {"key": "zone", "operator": "In", "values": ["a", "b"]}
    name = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    size = {"key": "size", "operator": "Gt", "values": ["4"]}
    terms = [{"matchExpressions": [zone], "matchFields": [name]}, {}]
    wishes = [
        {"weight": 7, "preference": {"matchExpressions": [size]}},
        {"weight": 7, "preference": {}},
    ]
    affinity = {DEMANDED: {"nodeSelectorTerms": terms}, PREFERRED: wishes}

    spec = projection.pod(make({"affinity": {"nodeAffinity": affinity}})).pod.spec

    in_zone = Requirement("zone", Operator.IN, frozenset({"a", "b"}))
    named = Requirement("metadata.name", Operator.IN, frozenset({"n1"}))
    large = Requirement("size", Operator.GREATER, frozenset({"4"}))
    assert spec.node_terms == (NodeTerm((in_zone,), (named,)), NodeTerm())
    assert spec.node_preferences == ((7, NodeTerm((large,))),)


@pytest.mark.parametrize(
    "demanded",
    [
        [1],
        {"nodeSelectorTerms": {"a": 1}},
        {"nodeSelectorTerms": ["a"]},
        {"nodeSelectorTerms": [{"matchExpressions": [{"operator": "Exists"}]}]},
        {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Like"}]}]},
        {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "In"}]}]},
        {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "k", "operator": "Gt", "values": ["x"]}]}
            ]
        },
        {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "k", "operator": "In", "values": ["x"]}]}
            ]
        },
    ],
)
def test_node_affinity_that_makes_no_sense_keeps_its_pod_from_being_placed(
    demanded: object,
) -> None:
    spec = projection.pod(make({"affinity": {"nodeAffinity": {DEMANDED: demanded}}})).pod.spec

    assert spec.features == (projection.UNREADABLE_AFFINITY,)


def test_required_terms_of_which_there_are_none_match_no_node() -> None:
    affinity: Object = {"nodeAffinity": {DEMANDED: {"nodeSelectorTerms": []}}}

    assert projection.pod(make({"affinity": affinity})).pod.spec.node_terms == (NodeTerm(),)


def test_a_pod_whose_request_makes_no_sense_is_kept_but_not_placed() -> None:
    assert projection.pod(requesting("much")).pod.spec.features == (projection.UNREADABLE,)


def test_a_pod_without_annotations_labels_or_status_is_read_too() -> None:
    bare = make()
    for part in ("annotations", "labels"):
        del bare["metadata"][part]
    del bare["status"]
    del bare["spec"]["schedulerName"]

    pod = projection.pod(bare).pod

    assert (pod.group, pod.task, pod.index, pod.labels) == ("", "", None, {})


def test_the_task_priority_annotation_wins() -> None:
    item = requesting("1", priority=5)
    item["metadata"]["annotations"][projection.TASK_PRIORITY] = "12"

    assert projection.pod(item).pod.spec.priority == 12


def test_a_node_keeps_what_it_has_and_whether_it_takes_pods() -> None:
    node = projection.node(
        {
            "metadata": {"name": "n", "labels": {"zone": "z"}},
            "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoExecute"}]},
            "status": {
                "allocatable": {"cpu": "4", "memory": "1Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
    )

    assert node.allocatable == {"cpu": 4000, "memory": 1 << 30, "pods": 110}
    assert node.taints == (Taint("k", "", "NoExecute"),)
    assert node.labels == {"zone": "z"}
    assert node.unschedulable
    assert node.ready


def test_a_node_that_does_not_say_it_is_ready_is_not() -> None:
    assert not projection.node({"metadata": {"name": "n"}}).ready


def test_a_priority_class_keeps_its_value() -> None:
    item = {"metadata": {"name": "high"}, "value": 10, "globalDefault": True}

    assert projection.priority_class(item) == PriorityClass("high", 10, global_default=True)


def test_what_is_projected_crosses_to_another_process() -> None:
    seen = projection.pod(requesting("1"))

    assert pickle.loads(pickle.dumps(seen)) == seen
