"""Our webhook behind the local cluster's API, as people at kubectl meet it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.kubectl import OURS, Kubectl
from tests.support.postgres import Server
from tests.support.second_door import SecondDoor, second_door

Object = dict[str, Any]
BATCH, SCHEDULING = "batch.volcano.sh/v1alpha1", "scheduling.volcano.sh/v1beta1"
POD: Object = {
    "spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "busybox", "command": ["true"]}],
    }
}


@pytest.fixture(scope="module")
def door(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecondDoor]:
    url = postgres.make_database("local_admission", template="template")
    with second_door(tmp_path_factory.mktemp("door"), url) as opened:
        yield opened


@pytest.fixture(scope="module")
def kubectl(door: SecondDoor, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    found = Kubectl(OURS, door.cluster.kubeconfig, tmp_path_factory.mktemp("kubectl"))
    found.ok("create", "-f", "-", stdin=manifest("Queue", "default", {"weight": 1}))
    return found


def manifest(kind: str, name: str, spec: Object) -> str:
    groups = {"Job": BATCH, "CronJob": BATCH, "JobFlow": "flow.volcano.sh/v1alpha1"}
    groups["HyperNode"] = "topology.volcano.sh/v1alpha1"
    value = {"kind": kind, "metadata": {"name": name}, "spec": spec}
    return json.dumps({"apiVersion": groups.get(kind, SCHEDULING), **value})


def job(name: str, *, template: Object | None = None, **spec: Any) -> str:
    task = {"replicas": 1, "template": template or POD}
    return manifest("Job", name, {"minAvailable": 1, "tasks": [task], **spec})


def test_defaults_are_seen_at_once(kubectl: Kubectl) -> None:
    made = kubectl.json("create", "-f", "-", stdin=job("plain"))
    spec = made["spec"]
    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"]) == ("default", "volcano", 3)
    assert (spec["tasks"][0]["name"], spec["tasks"][0]["minAvailable"]) == ("default0", 1)
    assert kubectl.json("get", "vcjob", "plain")["spec"] == spec


def test_warnings_are_shown_beside_the_result(kubectl: Kubectl) -> None:
    never = {"event": "PodPending", "action": "RestartJob"}
    done = kubectl.run("create", "-f", "-", stdin=job("warned", policies=[never]))
    assert done.stdout == "job.batch.volcano.sh/warned created\n"
    assert done.stderr.startswith("Warning: spec.policies[0]")


BAD = [
    pytest.param(job("bad", minAvailable=5), "spec.minAvailable", id="a job"),
    pytest.param(job("bad", queue="nowhere"), "nowhere", id="no such queue"),
    pytest.param(
        job("bad", template={"spec": {"containers": []}}),
        "spec.tasks[0].template.spec.containers",
        id="a pod without containers",
    ),
    pytest.param(
        manifest("Queue", "bad", {"weight": 1, "parent": "nowhere"}),
        "spec.parent",
        id="a queue",
    ),
    pytest.param(
        manifest(
            "JobFlow",
            "bad",
            {
                "flows": [
                    {"name": "a", "dependsOn": {"targets": ["b"]}},
                    {"name": "b", "dependsOn": {"targets": ["a"]}},
                ]
            },
        ),
        "spec.flows",
        id="a flow that goes round",
    ),
    pytest.param(
        manifest(
            "CronJob",
            "bad",
            {
                "schedule": "61 * * * *",
                "jobTemplate": {"spec": json.loads(job("x"))["spec"]},
            },
        ),
        "spec.schedule",
        id="a schedule",
    ),
    pytest.param(
        manifest(
            "HyperNode",
            "bad",
            {"tier": 1, "members": [{"type": "Node", "selector": {}}]},
        ),
        "spec.members[0].selector",
        id="a hypernode",
    ),
]


@pytest.mark.parametrize("how", [[], ["--dry-run=server"]])
@pytest.mark.parametrize(("text", "says"), BAD)
def test_a_bad_manifest_is_refused_with_the_field_and_the_reason(
    kubectl: Kubectl, text: str, says: str, how: list[str]
) -> None:
    said = kubectl.fails("create", *how, "-f", "-", stdin=text).splitlines(keepends=True)
    told = "".join(line for line in said if not line.startswith("Warning: "))
    assert told.startswith(f'The {json.loads(text)["kind"]} "bad" is invalid: ')
    assert says in told


def test_a_dry_run_says_the_same_and_keeps_nothing(kubectl: Kubectl) -> None:
    dry = kubectl.json("create", "--dry-run=server", "-f", "-", stdin=job("dry"))
    assert dry["spec"]["tasks"][0]["name"] == "default0"
    assert "NotFound" in kubectl.fails("get", "vcjob", "dry")
    kubectl.ok("create", "-f", "-", stdin=job("wet"))
    before = kubectl.json("get", "vcjob", "wet")
    kubectl.ok("label", "--dry-run=server", "vcjob", "wet", "a=b")
    kubectl.ok("apply", "--dry-run=server", "-f", "-", stdin=job("wet", minAvailable=0))
    kubectl.ok("delete", "--dry-run=server", "vcjob", "wet")
    assert kubectl.json("get", "vcjob", "wet") == before


def test_changes_are_judged_too(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=job("changed"))
    patch = json.dumps({"spec": {"queue": "other"}})
    told = kubectl.fails("patch", "vcjob", "changed", "--type=merge", "-p", patch)
    assert told == 'The Job "changed" is invalid: spec.queue: must not change\n'
    told = kubectl.fails("delete", "queue", "default")
    assert 'admission webhook "validatequeue.volcano.sh" denied the request: ' in told
    kubectl.ok("delete", "vcjob", "changed")


def test_pods_with_annotations_that_make_no_sense_are_refused(kubectl: Kubectl) -> None:
    wrong = {"name": "odd", "annotations": {"volcano.sh/jdb-min-available": "many"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": wrong, **POD}
    pod["spec"] = {**pod["spec"], "schedulerName": "volcano"}
    told = kubectl.fails("create", "-f", "-", stdin=json.dumps(pod))
    assert told.startswith('The Pod "odd" is invalid: metadata.annotations')


def test_while_the_webhook_is_down_jobs_wait_and_the_rest_goes_on(
    kubectl: Kubectl, door: SecondDoor
) -> None:
    door.close()
    try:
        told = kubectl.fails("create", "-f", "-", stdin=job("early"))
        assert "InternalError" in told
        assert 'failed calling webhook "mutatejob.volcano.sh": failed to call webhook: ' in told
        assert "connect: connection refused" in told
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other"}, **POD}
        kubectl.ok("create", "-f", "-", stdin=json.dumps(pod))
    finally:
        door.open()
    kubectl.ok("create", "-f", "-", stdin=job("early"))
