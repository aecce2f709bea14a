"""Kinds that somebody defines are served like those that are built in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hekla.api.crd import DEFINITIONS
from hekla.kube import definitions
from hekla.kube.client import KubeClient
from tests.support.local_cluster import LocalCluster, Object
from tests.support.waiting import wait_until

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    home: Path = tmp_path_factory.mktemp("definitions")
    running = LocalCluster(home, "--runtime=simulate", "--nodes=0").start()
    with KubeClient.start(str(running.kubeconfig), isolated=False) as client:
        assert definitions.install(client) == [one.name for one in DEFINITIONS]
        assert definitions.install(client) == [], "they are there"
    yield running
    assert running.end() == 0


def named(name: str, **more: Any) -> Object:
    return {"metadata": {"name": name}, **more}


def task(**more: Any) -> Object:
    return {"replicas": 1, "template": {"spec": {"containers": []}}, **more}


def widget(plural: str = "widgets", **names: Any) -> Object:
    """A kind of two versions, of which the second is kept."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"size": {"type": "integer", "default": 3}},
            }
        },
    }
    return {
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": plural.title()[:-1]} | names,
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": kept,
                    "schema": {"openAPIV3Schema": schema},
                }
                for name, kept in (("v1beta1", False), ("v1", True))
            ],
        },
    }


def conditions(cluster: LocalCluster, name: str) -> dict[str, str]:
    """The conditions of a definition, once somebody looked at it."""

    def found() -> dict[str, str]:
        status = cluster.get(f"{CRDS}/{name}").get("status", {})
        return {each["type"]: each["status"] for each in status.get("conditions", [])}

    return wait_until(found, what=f"the conditions of {name}")


def test_our_definitions_are_established_and_their_kinds_served_at_once(
    cluster: LocalCluster,
) -> None:
    for one in DEFINITIONS:
        found = conditions(cluster, one.name)
        assert found == {"NamesAccepted": "True", "Established": "True"}, one.name
        path = f"/apis/{one.group}/{one.version}/{one.plural}"
        assert cluster.get(path)["kind"] == f"{one.kind}List"
    listed = cluster.get("/apis/batch.volcano.sh/v1alpha1")["resources"]
    assert [each["name"] for each in listed] == [
        "jobs",
        "jobs/status",
        "cronjobs",
        "cronjobs/status",
    ]
    assert listed[0]["shortNames"] == ["vcjob", "vj"]
    groups = [each["name"] for each in cluster.get("/apis")["groups"]]
    assert "scheduling.volcano.sh" in groups


def test_an_object_gets_its_defaults_and_loses_what_nobody_knows(cluster: LocalCluster) -> None:
    body = named("made", spec={"tasks": [task(bogus=1)], "other": 2}, status={"running": 5})

    made = cluster.make(JOBS, body)

    assert made["spec"] == {"queue": "default", "maxRetry": 3, "tasks": [task()]}
    assert "status" not in made
    assert made["metadata"]["generation"] == 1
    assert cluster.get(f"{JOBS}/made") == made


def test_status_is_written_apart_and_does_not_count_as_a_generation(
    cluster: LocalCluster,
) -> None:
    cluster.make(JOBS, named("apart", spec={"tasks": [task()]}))
    path = f"{JOBS}/apart"

    both = {"spec": {"queue": "q"}, "status": {"running": 1, "nonsense": True}}
    written = cluster.merge(f"{path}/status", both).body
    assert written["status"] == {"running": 1}
    assert (written["spec"]["queue"], written["metadata"]["generation"]) == ("default", 1)
    changed = cluster.merge(path, both).body
    assert changed["status"] == {"running": 1}
    assert (changed["spec"]["queue"], changed["metadata"]["generation"]) == ("q", 2)
    labelled = cluster.merge(path, {"metadata": {"labels": {"a": "b"}}}).body
    assert labelled["metadata"]["generation"] == 2
    wrong = cluster.merge(f"{path}/status", {"status": {"running": -1}})
    assert (wrong.code, wrong.body["details"]["causes"][0]["field"]) == (422, "status.running")


def test_a_kind_without_a_status_part_keeps_the_status_it_is_sent(
    cluster: LocalCluster,
) -> None:
    path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"

    made = cluster.make(path, named("whole", spec={}, status={"phase": "Pending"}))

    assert made["status"] == {"phase": "Pending"}
    assert cluster.call("GET", f"{path}/whole/status").code == 404
    moved = cluster.merge(f"{path}/whole", {"status": {"phase": "Inqueue"}}).body
    assert (moved["status"]["phase"], moved["metadata"]["generation"]) == ("Inqueue", 2)


def test_all_that_is_wrong_with_an_object_is_told_as_kubernetes_tells_it(
    cluster: LocalCluster,
) -> None:
    body = named(
        "wrong",
        spec={
            "queue": "Not_A_Name",
            "tasks": [task(replicas=-1), task(replicas="two", topologyPolicy="x")],
            "volumes": [{}],
        },
    )

    answer = cluster.call("POST", JOBS, body)

    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["message"].startswith('Job.batch.volcano.sh "wrong" is invalid: [')
    causes = {each["field"]: each for each in answer.body["details"]["causes"]}
    assert {field: each["reason"] for field, each in causes.items()} == {
        "spec.queue": "FieldValueInvalid",
        "spec.tasks[0].replicas": "FieldValueInvalid",
        "spec.tasks[1].replicas": "FieldValueTypeInvalid",
        "spec.tasks[1].topologyPolicy": "FieldValueNotSupported",
        "spec.volumes[0].mountPath": "FieldValueRequired",
    }
    assert causes["spec.tasks[0].replicas"]["message"] == (
        "Invalid value: -1: spec.tasks[0].replicas in body should be greater than or equal to 0"
    )
    assert causes["spec.tasks[1].replicas"]["message"] == (
        'Invalid value: "string": spec.tasks[1].replicas in body must be of type integer: '
        '"string"'
    )


def test_a_watch_tells_of_custom_objects(cluster: LocalCluster) -> None:
    with cluster.watching(f"{QUEUES}?watch=true") as watch:
        cluster.make(QUEUES, named("watched", spec={"weight": 2}))
        cluster.merge(f"{QUEUES}/watched", {"spec": {"weight": 3}})
        cluster.call("DELETE", f"{QUEUES}/watched")
        assert watch.wait_for(3) == [
            ("ADDED", "watched"),
            ("MODIFIED", "watched"),
            ("DELETED", "watched"),
        ]


def test_a_kind_is_found_in_every_version_that_is_served(cluster: LocalCluster) -> None:
    cluster.make(CRDS, widget())
    old, new = (
        f"/apis/example.com/{version}/namespaces/default/widgets"
        for version in ("v1beta1", "v1")
    )

    made = cluster.make(old, named("both", spec={}))

    assert (made["apiVersion"], made["spec"]["size"]) == ("example.com/v1beta1", 3)
    assert cluster.get(f"{new}/both")["apiVersion"] == "example.com/v1"
    assert cluster.get(old)["items"][0]["apiVersion"] == "example.com/v1beta1"
    assert (
        cluster.merge(f"{old}/both", {"spec": {"size": 4}}).body["metadata"]["generation"] == 2
    )
    with cluster.watching(f"{old}?watch=true") as watch:
        watch.wait_for(1)
        assert watch.events[0]["object"]["apiVersion"] == "example.com/v1beta1"
    group = cluster.get("/apis/example.com")
    assert group["preferredVersion"]["version"] == "v1"


def test_a_definition_that_changes_is_read_anew(cluster: LocalCluster) -> None:
    cluster.make(CRDS, widget("gadgets"))
    path = "/apis/example.com/v1/namespaces/default/gadgets"
    cluster.make(path, named("old", spec={"size": 5}))
    definition = cluster.get(f"{CRDS}/gadgets.example.com")
    for version in definition["spec"]["versions"]:
        properties = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        properties["colour"] = {"type": "string", "default": "red"}
        properties["size"]["maximum"] = 4
        version["subresources"] = {"status": {}}

    assert cluster.call("PUT", f"{CRDS}/gadgets.example.com", definition).code == 200

    assert cluster.get(f"{path}/old")["spec"] == {"size": 5, "colour": "red"}
    assert cluster.call("POST", path, named("new", spec={"size": 5})).code == 422
    kept = cluster.merge(f"{path}/old", {"spec": {"colour": "blue"}})
    assert kept.code == 200, "what was there before may stay"
    assert cluster.merge(f"{path}/old/status", {"status": {}}).code == 200


def test_who_defines_rules_is_told_that_they_are_not_checked(cluster: LocalCluster) -> None:
    body = widget("ruled")
    rules = {"x-kubernetes-validations": [{"rule": "has(self.spec)"}]}
    body["spec"]["versions"][1]["schema"]["openAPIV3Schema"] |= rules

    made = cluster.call("POST", CRDS, body)

    assert made.code == 201
    assert "x-kubernetes-validations" in made.warnings[0]


@pytest.mark.parametrize(
    ("change", "field", "says"),
    [
        pytest.param({"group": "nodots"}, "spec.group", "at least one dot", id="group"),
        pytest.param({"scope": "World"}, "spec.scope", "Unsupported value", id="scope"),
        pytest.param({"scope": None}, "spec.scope", "Required value", id="no scope"),
        pytest.param({"versions": []}, "spec.versions", "at least 1 items", id="no versions"),
        pytest.param(
            {"versions": [{"name": "v1", "served": True, "storage": False}]},
            "spec.versions",
            "exactly one version marked as storage",
            id="nothing kept",
        ),
        pytest.param(
            {"versions": [{"name": "v1", "served": True, "storage": True}]},
            "spec.versions[0].schema.openAPIV3Schema",
            "schemas are required",
            id="no schema",
        ),
    ],
)
def test_a_definition_that_defines_nothing_is_refused(
    cluster: LocalCluster, change: Object, field: str, says: str
) -> None:
    body = widget("things")
    body["spec"] |= change

    answer = cluster.call("POST", CRDS, body)

    assert answer.code == 422
    causes = {each["field"]: each["message"] for each in answer.body["details"]["causes"]}
    assert says in causes[field]


def test_names_are_given_once(cluster: LocalCluster) -> None:
    cluster.make(CRDS, widget("firsts", shortNames=["tool"]))
    cluster.make(CRDS, widget("seconds", shortNames=["tool"]))

    found = conditions(cluster, "seconds.example.com")
    assert found == {"NamesAccepted": "False", "Established": "False"}
    assert cluster.call("GET", "/apis/example.com/v1/seconds").code == 404
    cluster.call("DELETE", f"{CRDS}/firsts.example.com")

    wait_until(
        lambda: cluster.call("GET", "/apis/example.com/v1/seconds").code == 200,
        what="the names that became free",
    )


def test_a_definition_goes_when_its_objects_have(cluster: LocalCluster) -> None:
    cluster.make(CRDS, widget("temps"))
    path = "/apis/example.com/v1/namespaces/default/temps"
    cluster.make(path, named("quick"))
    cluster.make(path, {"metadata": {"name": "slow", "finalizers": ["example.com/wait"]}})
    with cluster.watching(f"{path}?watch=true") as watch:
        watch.wait_for(2)
        cluster.call("DELETE", f"{CRDS}/temps.example.com")
        wait_until(
            lambda: conditions(cluster, "temps.example.com").get("Terminating") == "True",
            what="the definition to be terminating",
        )
        refused = cluster.call("POST", path, named("late"))
        assert (refused.code, refused.body["reason"]) == (405, "MethodNotAllowed")

        def left() -> list[str]:
            return [each["metadata"]["name"] for each in cluster.get(path)["items"]]

        wait_until(lambda: left() == ["slow"], what="the other to be deleted")
        cluster.merge(f"{path}/slow", {"metadata": {"finalizers": None}})
        wait_until(
            lambda: cluster.call("GET", f"{CRDS}/temps.example.com").code == 404,
            what="the definition to be gone",
        )
        assert watch.ended.wait(20)
    assert cluster.call("GET", path).code == 404
    cluster.make(CRDS, widget("temps"))
    assert cluster.get(path)["items"] == []


def test_defined_kinds_and_their_objects_survive_a_restart(cluster: LocalCluster) -> None:
    cluster.make(QUEUES, named("lasting", spec={"weight": 7}))
    before = cluster.get(f"{QUEUES}/lasting")
    cluster.make(CRDS, widget("leavings"))
    path = "/apis/example.com/v1/namespaces/default/leavings"
    cluster.make(path, {"metadata": {"name": "held", "finalizers": ["example.com/wait"]}})
    cluster.call("DELETE", f"{CRDS}/leavings.example.com")

    cluster.kill()
    cluster.start()

    assert cluster.get(f"{QUEUES}/lasting") == before
    wait_until(
        lambda: conditions(cluster, "leavings.example.com").get("Terminating") == "True",
        what="the definition to be terminating",
    )
    assert cluster.merge(f"{path}/held", {"metadata": {"finalizers": None}}).code == 200
    wait_until(
        lambda: cluster.call("GET", f"{CRDS}/leavings.example.com").code == 404,
        what="the end of a definition whose deletion was cut short",
    )
    assert cluster.call("POST", QUEUES, named("x", spec={"weight": 0})).code == 422
    assert conditions(cluster, "queues.scheduling.volcano.sh")["Established"] == "True"


def test_fields_that_nobody_knows_are_told_or_refused_as_asked(cluster: LocalCluster) -> None:
    body = named("strict", spec={"tasks": [task(bogus=1)]})

    refused = cluster.call("POST", f"{JOBS}?fieldValidation=Strict", body)
    assert (refused.code, refused.body["message"]) == (
        400,
        'Job in version "v1alpha1" cannot be handled as a Job: strict decoding error: '
        'unknown field "spec.tasks[0].bogus"',
    )
    told = cluster.call("POST", f"{JOBS}?fieldValidation=Warn", body)
    assert told.code == 201
    assert told.warnings == ['299 - "unknown field \\"spec.tasks[0].bogus\\""']
    patched = cluster.call(
        "PATCH",
        f"{JOBS}/strict?fieldValidation=Strict",
        {"spec": {"other": 1}},
        content_type="application/merge-patch+json",
    )
    assert (patched.code, "spec.other" in patched.body["message"]) == (400, True)
    blind = cluster.call("PUT", f"{JOBS}/strict", body)
    assert blind.code == 422, "what is put in the place of an object must say of which version"
    body["spec"]["queue"] = "other"
    body["metadata"]["resourceVersion"] = told.body["metadata"]["resourceVersion"]
    silent = cluster.call("PUT", f"{JOBS}/strict?fieldValidation=Ignore", body)
    assert (silent.code, silent.warnings) == (200, [])
    stale = cluster.call("PUT", f"{JOBS}/strict", body | {"spec": {"queue": "q"}})
    assert (stale.code, stale.body["reason"]) == (409, "Conflict")
    assert stale.body["message"] == (
        'Operation cannot be fulfilled on jobs.batch.volcano.sh "strict": the object has been '
        "modified; please apply your changes to the latest version and try again"
    )


def test_an_object_that_is_too_large_is_refused(cluster: LocalCluster) -> None:
    template = {"metadata": {"annotations": {"long": "x" * 1_600_000}}}

    made = cluster.call("POST", JOBS, named("large", spec={"tasks": [task(template=template)]}))

    assert (made.code, made.body["reason"]) == (413, "RequestEntityTooLarge")
    assert cluster.call("GET", f"{JOBS}/large").code == 404
