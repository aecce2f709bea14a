"""Pod templates whose pods could never be made are refused with the field that is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from services.webhook.rules import pods
from services.webhook.rules.admission import Operation, admit
from tests.support.objects import JSON, make_job, make_task
from tests.support.worlds import FixedWorld


def complaints(template: Any) -> dict[str, str]:
    return {each.path: each.message for each in pods.violations(template, "t")}


def of(**spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [container()]} | spec}


def container(**more: Any) -> dict[str, Any]:
    return {"name": "c", "image": "busybox"} | more


def asking(**resources: Any) -> dict[str, Any]:
    return of(containers=[container(resources=resources)])


def asking_all(pod: Any, of_container: Any) -> dict[str, Any]:
    return of(resources=pod, containers=[container(resources=of_container)])


def with_port(**port: Any) -> dict[str, Any]:
    return of(hostNetwork=True, containers=[container(ports=[{"containerPort": 80} | port])])


def probed(probe: Any) -> dict[str, Any]:
    return of(containers=[container(livenessProbe=probe)])


C = "t.spec.containers[0]"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    "template",
    [
        pytest.param(of(), id="no command"),
        pytest.param(
            {"metadata": {"creationTimestamp": None}, **of()}, id="generated metadata"
        ),
        pytest.param(of(volumes=None, initContainers=None, nodeSelector=None), id="nulls"),
        pytest.param(of(containers=[container(env=[{"name": "A", "value": ""}])]), id="env"),
        pytest.param(
            of(
                volumes=[{"name": "v", "emptyDir": {}}],
                containers=[container(volumeMounts=[{"name": "v", "mountPath": "/v"}])],
            ),
            id="a mounted volume",
        ),
        pytest.param(
            asking(requests={"cpu": 1}, limits={"cpu": "1000m"}), id="request is limit"
        ),
        pytest.param(asking(requests={"cpu": 0.5}), id="a fraction of a core"),
        pytest.param(asking(limits={"nvidia.com/gpu": 1}), id="a device"),
        pytest.param(
            of(hostNetwork=True, dnsPolicy="None", dnsConfig={"nameservers": ["10.0.0.1"]}),
            id="host network",
        ),
        pytest.param(
            of(initContainers=[container(name="i", restartPolicy="Always")]), id="a sidecar"
        ),
        pytest.param(
            of(containers=[container(ports=[{"containerPort": 2222, "name": "ssh"}])]),
            id="ports",
        ),
        pytest.param(of(tolerations=[{"operator": "Exists"}]), id="tolerates everything"),
        pytest.param(of(tolerations=[{"key": "a", "value": "b"}]), id="tolerates one"),
        pytest.param(
            of(affinity={"nodeAffinity": {}}, nodeSelector={"a": "b"}), id="placement"
        ),
    ],
)
def test_a_template_that_works_is_accepted(template: dict[str, Any]) -> None:
    assert complaints(template) == {}


@pytest.mark.parametrize(
    ("template", "path", "message"),
    [
        (None, "t.spec.containers", "is required"),
        ({}, "t.spec.containers", "is required"),
        ({"spec": {}}, "t.spec.containers", "is required"),
        (of(containers=[]), "t.spec.containers", "is required"),
        ({"spec": []}, "t.spec", "must be an object, is []"),
        ({"metadata": 5, **of()}, "t.metadata", "must be an object, is 5"),
        (
            {"metadata": {"labels": {"a b": "c"}}, **of()},
            "t.metadata.labels[a b]",
            "must consist",
        ),
        (
            {"metadata": {"labels": {"a": 1}}, **of()},
            "t.metadata.labels.a",
            "must be a text, is 1",
        ),
        ({"metadata": {"labels": {"a": "-"}}, **of()}, "t.metadata.labels.a", "must consist"),
        ({"metadata": {"annotations": {"-": ""}}, **of()}, "t.metadata.annotations[-]", "must"),
        (
            {"metadata": {"annotations": {"a": "x" * 2**18}}, **of()},
            "t.metadata.annotations",
            "no more than",
        ),
        (of(containers="c"), "t.spec.containers", "must be a list"),
        (of(containers=[None]), C, "must be an object, is null"),
        (of(containers=[{"image": "i"}]), f"{C}.name", "is required"),
        (of(containers=[container(name="C")]), f"{C}.name", "must consist of lower case"),
        (of(containers=[container(name=5)]), f"{C}.name", "must be a text, is 5"),
        (
            of(containers=[container(), container()]),
            "t.spec.containers[1].name",
            f"is the name of {C}",
        ),
        (
            of(initContainers=[container()]),
            "t.spec.initContainers[0].name",
            f"is the name of {C}",
        ),
        (of(containers=[{"name": "c"}]), f"{C}.image", "is required"),
        (of(containers=[container(image="")]), f"{C}.image", "is required"),
        (of(containers=[container(image=" i")]), f"{C}.image", "blanks"),
        (
            of(containers=[container(imagePullPolicy="no")]),
            f"{C}.imagePullPolicy",
            "must be one of",
        ),
        (of(containers=[container(command="sh -c x")]), f"{C}.command", "must be a list"),
        (of(containers=[container(args=["a", 1])]), f"{C}.args[1]", "must be a text, is 1"),
        (of(containers=[container(env={})]), f"{C}.env", "must be a list"),
        (of(containers=[container(env=[{"value": "a"}])]), f"{C}.env[0].name", "is required"),
        (of(containers=[container(env=[{"name": "A=B"}])]), f"{C}.env[0].name", "without '='"),
        (
            of(containers=[container(env=[{"name": "A", "value": 1}])]),
            f"{C}.env[0].value",
            "must be a text, is 1",
        ),
        (of(containers=[container(ports=[{}])]), f"{C}.ports[0].containerPort", "is required"),
        (
            of(containers=[container(ports=[{"containerPort": 0}])]),
            f"{C}.ports[0].containerPort",
            "must be between 1 and 65535, is 0",
        ),
        (
            of(containers=[container(ports=[{"containerPort": "80"}])]),
            f"{C}.ports[0].containerPort",
            'must be an integer, is "80"',
        ),
        (
            of(containers=[container(ports=[{"containerPort": 1, "name": "1"}])]),
            f"{C}.ports[0].name",
            "with a letter among them",
        ),
        (
            of(containers=[container(ports=[{"containerPort": 1, "name": "a"}] * 2)]),
            f"{C}.ports[1].name",
            "another port",
        ),
        (
            of(containers=[container(volumeMounts=[{"name": "v", "mountPath": "/v"}])]),
            f"{C}.volumeMounts[0].name",
            'must be the name of a volume of the pod, is "v"',
        ),
        (
            of(volumes=[{"name": "v"}], containers=[container(volumeMounts=[{"name": "v"}])]),
            f"{C}.volumeMounts[0].mountPath",
            "is required",
        ),
        (
            of(volumes=[{"name": "v"}, {"name": "v"}]),
            "t.spec.volumes[1].name",
            "another volume",
        ),
        (of(volumes=[{}]), "t.spec.volumes[0].name", "is required"),
        (asking(requests={"cpu": "lots"}), f"{C}.resources.requests.cpu", "must be a quantity"),
        (asking(requests={"cpu": "-1"}), f"{C}.resources.requests.cpu", "must be >= 0"),
        (
            asking(requests={"cpu": "2"}, limits={"cpu": "1500m"}),
            f"{C}.resources.requests.cpu",
            'must be <= limits.cpu, which is 1500m; is "2"',
        ),
        (asking(limits={"x.io/gpu": "0.5"}), f"{C}.resources.limits[x.io/gpu]", "whole number"),
        (asking(limits={"a b": 1}), f"{C}.resources.limits[a b]", "must consist"),
        (asking(limits=[]), f"{C}.resources.limits", "must be an object"),
        (
            of(restartPolicy="always"),
            "t.spec.restartPolicy",
            "must be one of Always, OnFailure",
        ),
        (of(dnsPolicy="x"), "t.spec.dnsPolicy", "must be one of"),
        (
            of(containers=[container(restartPolicy="Always")]),
            f"{C}.restartPolicy",
            "init containers",
        ),
        (
            of(initContainers=[container(name="i", restartPolicy="Never")]),
            "t.spec.initContainers[0].restartPolicy",
            "must be one of Always",
        ),
        (of(ephemeralContainers=[container()]), "t.spec.ephemeralContainers", "must be empty"),
        (
            of(terminationGracePeriodSeconds=-1),
            "t.spec.terminationGracePeriodSeconds",
            "between",
        ),
        (of(activeDeadlineSeconds=0), "t.spec.activeDeadlineSeconds", "must be between 1"),
        (of(hostNetwork="yes"), "t.spec.hostNetwork", "must be true or false"),
        (of(nodeSelector={"a": 1}), "t.spec.nodeSelector.a", "must be a text"),
        (of(nodeSelector=["a"]), "t.spec.nodeSelector", "must be an object"),
        (of(affinity=[]), "t.spec.affinity", "must be an object"),
        (of(hostname="a.b"), "t.spec.hostname", "must consist"),
        (of(priorityClassName="A"), "t.spec.priorityClassName", "must consist"),
        (of(overhead={"cpu": "x"}), "t.spec.overhead.cpu", "must be a quantity"),
        (of(tolerations=[{}]), "t.spec.tolerations[0].operator", "must be Exists"),
        (
            of(tolerations=[{"key": "a", "operator": "Is"}]),
            "t.spec.tolerations[0].operator",
            "one of",
        ),
        (
            of(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
            "t.spec.tolerations[0].value",
            "must be empty with Exists",
        ),
        (
            of(tolerations=[{"key": "a", "effect": "x"}]),
            "t.spec.tolerations[0].effect",
            "one of",
        ),
        (asking(requests={"gpu": 1}), f"{C}.resources.requests.gpu", "no resource of a"),
        (asking(requests={"x.io/a": 1}), f"{C}.resources.requests[x.io/a]", "needs a limit"),
        (
            asking(requests={"x.io/a": 1}, limits={"x.io/a": 2}),
            f"{C}.resources.requests[x.io/a]",
            "must be the limit, 2",
        ),
        (asking(limits={"hugepages-2Mi": "4Mi"}), f"{C}.resources", "cpu or memory beside"),
        (
            asking(limits={"hugepages-2Mi": "3Mi", "cpu": 1}),
            f"{C}.resources.limits.hugepages-2Mi",
            "multiple of the page's size",
        ),
        (
            asking_all({"requests": {"cpu": 1}}, {"requests": {"cpu": 2}}),
            "t.spec.resources.requests.cpu",
            "must be >= what the containers ask for, 2; is 1",
        ),
        (
            asking_all({"requests": {"cpu": 6}, "limits": {"cpu": 4}}, {}),
            "t.spec.resources.requests.cpu",
            "must be <= limits.cpu",
        ),
        (
            asking_all({"limits": {"cpu": 1}}, {"limits": {"cpu": 2}}),
            "t.spec.resources.limits.cpu",
            "must be >= the limit of a container, 2",
        ),
        (asking_all({"limits": {"x.io/a": 1}}, {}), "t.spec.resources.limits[x.io/a]", "no"),
        (with_port(hostPort=81), f"{C}.ports[0].hostPort", "must be the containerPort"),
        (
            of(containers=[container(ports=[{"containerPort": 1, "hostPort": 2}] * 2)]),
            f"{C}.ports[1].hostPort",
            f"is taken by {C}.ports[0]: 2",
        ),
        (of(dnsPolicy="None"), "t.spec.dnsConfig.nameservers", "at least one"),
        (of(dnsConfig={"nameservers": ["x"]}), "t.spec.dnsConfig.nameservers[0]", "an IP"),
        (probed({}), f"{C}.livenessProbe", "must have one of exec, httpGet, tcpSocket, grpc"),
        (
            probed({"exec": {"command": ["a"]}, "successThreshold": 2}),
            f"{C}.livenessProbe.successThreshold",
            "must be 1",
        ),
        (probed({"httpGet": {}}), f"{C}.livenessProbe.httpGet.port", "is required"),
        (probed({"exec": {}}), f"{C}.livenessProbe.exec.command", "is required"),
        (
            of(initContainers=[container(name="i", readinessProbe={"exec": {}})]),
            "t.spec.initContainers[0].readinessProbe",
            "may not be set for an init container",
        ),
        (
            of(volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]),
            "t.spec.volumes[0]",
            "must have one source, has emptyDir, hostPath",
        ),
        (
            of(volumes=[{"name": "v", "configMap": {}}]),
            "t.spec.volumes[0].configMap.name",
            "is required",
        ),
        (
            of(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "A"}}]),
            "t.spec.volumes[0].persistentVolumeClaim.claimName",
            "must consist",
        ),
        (
            of(
                volumes=[{"name": "v"}],
                containers=[container(volumeMounts=[{"name": "v", "mountPath": "/v"}] * 2)],
            ),
            f"{C}.volumeMounts[1].mountPath",
            "another mount",
        ),
        (
            of(containers=[container(env=[{"name": "A", "valueFrom": {}}])]),
            f"{C}.env[0].valueFrom",
            "must have one of fieldRef",
        ),
        (
            of(containers=[container(envFrom=[{}])]),
            f"{C}.envFrom[0]",
            "must have one of configMapRef, secretRef",
        ),
        (
            of(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}),
            f"t.spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms",
            "at least one term",
        ),
        (
            of(affinity={"podAffinity": {REQUIRED: [{}]}}),
            f"t.spec.affinity.podAffinity.{REQUIRED}[0].topologyKey",
            "is required",
        ),
        (
            of(tolerations=[{"key": "a", "tolerationSeconds": 1}]),
            "t.spec.tolerations[0].effect",
            "must be NoExecute",
        ),
        (
            of(topologySpreadConstraints=[{"topologyKey": "z"}]),
            "t.spec.topologySpreadConstraints[0].maxSkew",
            "is required",
        ),
    ],
)
def test_a_template_that_cannot_work_is_refused_with_its_path(
    template: Any, path: str, message: str
) -> None:
    assert message in complaints(template)[path]


def test_a_job_is_refused_for_its_templates() -> None:
    job = make_job("j", make_task(), make_task("u", template={"spec": {}}))

    answer = admit(Operation.CREATE, job, None, FixedWorld())

    assert [each.path for each in answer.violations] == [
        "spec.tasks[1].template.spec.containers"
    ]


@pytest.mark.parametrize(
    ("resources", "path"),
    [
        ({}, "requests.cpu"),
        ({"requests": {"cpu": "1500m"}}, "requests.cpu"),
        ({"requests": {"cpu": 0}}, "requests.cpu"),
        ({"limits": {"cpu": "1500m"}}, "limits.cpu"),
        ({"requests": {"memory": "1"}, "limits": {"cpu": 1}}, "requests.cpu"),
    ],
)
def test_placement_by_numa_node_needs_whole_cores(resources: Any, path: str) -> None:
    task = make_task(template=asking(**resources), topology_policy="restricted")

    answer = admit(Operation.CREATE, make_job("j", task), None, FixedWorld())

    [found] = answer.violations
    expected = path if resources else "limits.cpu"
    assert found.path == f"spec.tasks[0].template.spec.containers[0].resources.{expected}"


@pytest.mark.parametrize("resources", [{"requests": {"cpu": 2}}, {"limits": {"cpu": "1000m"}}])
def test_whole_cores_are_accepted_for_placement_by_numa_node(resources: Any) -> None:
    task = make_task(template=asking(**resources), topology_policy="best-effort")

    assert admit(Operation.CREATE, make_job("j", task), None, FixedWorld()).allowed


KEYS = st.sampled_from(
    [
        "spec",
        "metadata",
        "labels",
        "annotations",
        "containers",
        "initContainers",
        "name",
        "image",
        "command",
        "env",
        "ports",
        "resources",
        "requests",
        "limits",
        "volumes",
        "volumeMounts",
        "tolerations",
        "key",
        "operator",
        "nodeSelector",
        "overhead",
        "restartPolicy",
        "cpu",
    ]
)
TEMPLATES = st.recursive(
    JSON, lambda inner: st.dictionaries(KEYS, inner, max_size=5) | st.lists(inner, max_size=2)
)


@given(st.dictionaries(KEYS, TEMPLATES))
def test_no_template_breaks_the_rules(template: dict[str, Any]) -> None:
    for found in pods.violations(template, "t"):
        assert found.path.startswith("t.")
        assert str(found).isprintable()
    list(pods.whole_cores(template, "t"))


@pytest.mark.parametrize(
    ("template", "path", "hint"),
    [
        ({"metdata": {}}, "t.metdata", "metadata"),
        (of(containrs=[]), "t.spec.containrs", "containers"),
        (of(containers=[container(comand=[])]), "t.spec.containers[0].comand", "command"),
        (of(containers=[container(env=[{"key": "A"}])]), "t.spec.containers[0].env[0].key", ""),
        (asking(request={}), "t.spec.containers[0].resources.request", "requests"),
        (
            of(volumes=[{"name": "a", "configMap": {"nam": "b"}}]),
            "t.spec.volumes[0].configMap.nam",
            "name",
        ),
        (
            of(affinity={"nodeAffinity": {"required": {}}}),
            "t.spec.affinity.nodeAffinity.required",
            "",
        ),
    ],
)
def test_a_field_that_kubernetes_does_not_know_is_found(
    template: Any, path: str, hint: str
) -> None:
    [found] = pods.unknown(template, "t")
    assert found.path == path
    assert ("did you mean" in found.message) == bool(hint)
    assert hint in found.message


def test_keys_that_people_choose_are_no_fields() -> None:
    free = of(
        nodeSelector={"any.thing/goes": "x"},
        overhead={"vendor.com/card": "1"},
        containers=[container(resources={"limits": {"vendor.com/card": "1"}})],
    )
    free["metadata"] = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    free["metadata"]["creationTimestamp"] = None
    assert list(pods.unknown(free, "t")) == []
    claim = {"accessModes": [], "resources": {"requests": {"storage": "1Gi"}}}
    assert list(pods.unknown(claim, "v", pods.CLAIM)) == []
    assert [each.path for each in pods.unknown({"size": 1}, "v", pods.CLAIM)] == ["v.size"]


def test_no_more_than_some_unknown_fields_are_told_of() -> None:
    many = {f"x{index}": 1 for index in range(1000)}
    assert len(list(pods.unknown(many, "t"))) == 50


@given(JSON)
def test_whatever_a_template_is_unknown_fields_are_looked_for(value: Any) -> None:
    assert all(each.path.startswith("t") for each in pods.unknown(value, "t"))
