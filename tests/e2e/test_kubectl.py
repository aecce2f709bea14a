"""Real kubectl as users type it, on the manifests of the seeds, and what it prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.support.documents import ROOT
from tests.support.kubectl import OURS, Kubectl, header, programs
from tests.support.stack import Stack, witness_job
from tests.support.waiting import wait_until

JOB: Final = ROOT / "examples" / "job.yaml"
KINDS: Final = {
    "jobs": ("vcjob,vj", "batch.volcano.sh/v1alpha1", "true", "Job"),
    "cronjobs": ("cronvcjob,cronvj", "batch.volcano.sh/v1alpha1", "true", "CronJob"),
    "commands": ("", "bus.volcano.sh/v1alpha1", "true", "Command"),
    "jobflows": ("jf", "flow.volcano.sh/v1alpha1", "true", "JobFlow"),
    "jobtemplates": ("jt", "flow.volcano.sh/v1alpha1", "true", "JobTemplate"),
    "numatopologies": ("numatopo", "nodeinfo.volcano.sh/v1alpha1", "false", "Numatopology"),
    "podgroups": ("pg,podgroup-v1beta1", "scheduling.volcano.sh/v1beta1", "true", "PodGroup"),
    "queues": ("q,queue-v1beta1", "scheduling.volcano.sh/v1beta1", "false", "Queue"),
    "hypernodes": ("hn", "topology.volcano.sh/v1alpha1", "false", "HyperNode"),
}
"""Short names, version, whether namespaced, kind: as Volcano's users know them."""
COLUMNS: Final = {
    "vcjob": ("NAME STATUS MINAVAILABLE RUNNINGS AGE", "QUEUE"),
    "podgroup": ("NAME STATUS MINMEMBER RUNNINGS AGE", "QUEUE"),
    "queue": ("NAME PARENT", ""),
    "jobflow": ("NAME STATUS AGE", ""),
    "jobtemplate": ("NAME AGE", ""),
    "hypernode": ("NAME TIER TIERNAME NODECOUNT AGE", ""),
    "cronvcjob": ("NAME AGE", ""),
    "command": ("NAME AGE", ""),
}
"""What ``get`` shows of each kind, and what ``-o wide`` adds."""
RUNNING: Final = "--for=jsonpath={.status.state.phase}=Running"


def everything(kubectl: Kubectl) -> set[tuple[str, str]]:
    """The name and uid of each object of each kind in all namespaces, but for events."""
    kinds = kubectl.ok("api-resources", "--verbs=list", "-o", "name").split()
    kinds = [kind for kind in kinds if not kind.startswith("events")]
    path = (
        "{range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}"
        " {.metadata.uid}{'\\n'}{end}"
    )
    listed = kubectl.ok("get", ",".join(kinds), "-A", "-o", f"jsonpath={path}")
    found = {tuple(line.split()) for line in listed.splitlines() if line.strip()}
    return {(name, uid) for name, uid in found}


@pytest.fixture(scope="module")
def before(kubectl: Kubectl) -> set[tuple[str, str]]:
    """All that was there before ``job-1``."""
    return everything(kubectl)


@pytest.fixture(scope="module")
def job_1(kubectl: Kubectl, before: set[tuple[str, str]]) -> Iterator[Any]:
    """The job of the seeds, made by ``create -f`` and running."""
    assert before
    made = kubectl.ok("create", "-f", str(JOB))
    assert made.splitlines() == [
        "queue.scheduling.volcano.sh/test created",
        "job.batch.volcano.sh/job-1 created",
    ]
    kubectl.ok("wait", RUNNING, "vcjob/job-1", "--timeout=30s")
    yield kubectl.json("get", "vcjob", "job-1")
    kubectl.ok("delete", "-f", str(JOB), "--ignore-not-found", "--timeout=30s")


def test_the_kinds_have_the_names_that_users_know(kubectl: Kubectl) -> None:
    listed = {
        row["NAME"]: (row["SHORTNAMES"], row["APIVERSION"], row["NAMESPACED"], row["KIND"])
        for row in kubectl.rows("api-resources")
        if "volcano.sh" in row["APIVERSION"]
    }

    assert listed == KINDS
    told = json.loads(kubectl.ok("version", "-o", "json"))
    assert told["serverVersion"]["gitVersion"].endswith("+hekla")


@pytest.mark.usefixtures("job_1")
@pytest.mark.parametrize("kind", COLUMNS)
def test_tables_have_volcanos_columns(kubectl: Kubectl, kind: str) -> None:
    plain, more = COLUMNS[kind]

    printed, wide = kubectl.run("get", kind), kubectl.run("get", kind, "-o", "wide")

    if not printed.stdout:
        assert printed.stderr.startswith("No resources found")
        return
    assert header(printed.stdout) == plain.split()
    assert header(wide.stdout) == f"{plain} {more}".split()


def test_what_belongs_to_a_job_is_shown_with_it(kubectl: Kubectl, job_1: Any) -> None:
    [job] = kubectl.rows("get", "vj", "-o", "wide")
    assert job == {
        "NAME": "job-1",
        "STATUS": "Running",
        "MINAVAILABLE": "1",
        "RUNNINGS": "1",
        "AGE": job["AGE"],
        "QUEUE": "test",
    }

    def running() -> list[dict[str, str]]:
        groups = kubectl.rows("get", "pg", "-o", "wide")
        return groups if {group["STATUS"] for group in groups} == {"Running"} else []

    [group] = wait_until(running, timeout=30, what="the group to run")
    assert group["NAME"] == f"job-1-{job_1['metadata']['uid']}"
    assert (group["MINMEMBER"], group["QUEUE"]) == ("1", "test")
    queues = {row["NAME"]: row["PARENT"] for row in kubectl.rows("get", "q")}
    assert queues == {"default": "root", "root": "", "test": "root"}
    [pod] = kubectl.rows("get", "pods", "-o", "wide")
    assert (pod["NAME"], pod["READY"], pod["STATUS"]) == ("job-1-nginx-0", "1/1", "Running")
    assert pod["NODE"].startswith("node-")
    assert kubectl.ok("get", "vcjob,podgroup,pods,queue").count("job-1") == 3


def test_both_doors_show_the_same_job(kubectl: Kubectl, open_stack: Stack, job_1: Any) -> None:
    own = json.loads(open_stack.ok("job", "get", "job-1", "-o", "json"))

    assert own["spec"] == job_1["spec"]
    assert own["status"]["state"]["phase"] == job_1["status"]["state"]["phase"] == "Running"
    [pod] = kubectl.json("get", "pods", "-l", "volcano.sh/job-name=job-1")["items"]
    assert owner(pod) == ("Job", "job-1", job_1["metadata"]["uid"])
    [group] = kubectl.json("get", "podgroup")["items"]
    assert owner(group) == ("Job", "job-1", job_1["metadata"]["uid"])


def owner(made: Any) -> tuple[str, str, str]:
    """The controlling owner of an object."""
    [one] = [each for each in made["metadata"]["ownerReferences"] if each.get("controller")]
    return one["kind"], one["name"], one["uid"]


def test_it_is_described_labelled_patched_and_shown_as_yaml(
    kubectl: Kubectl, job_1: Any
) -> None:
    described = kubectl.ok("describe", "vcjob", "job-1")
    assert "Min Available:" in described
    assert job_1["metadata"]["uid"] in described
    assert "Node:" in kubectl.ok("describe", "pod", "job-1-nginx-0")

    name = "job.batch.volcano.sh/job-1"
    assert kubectl.ok("label", "vj", "job-1", "team=red") == f"{name} labeled\n"
    assert kubectl.names("vcjob", "-l", "team=red") == [name]
    assert kubectl.ok("annotate", "vcjob/job-1", "note=mine") == f"{name} annotated\n"
    blue = '{"metadata":{"labels":{"team":"blue"}}}'
    assert kubectl.ok("patch", "vj", "job-1", "--type=merge", "-p", blue) == f"{name} patched\n"

    team = kubectl.ok("get", "vcjob", "job-1", "-o", "jsonpath={.metadata.labels.team}")
    assert team == "blue"
    found = yaml.safe_load(kubectl.ok("get", "vcjob", "job-1", "-o", "yaml"))
    assert found["metadata"]["annotations"]["note"] == "mine"
    assert found["spec"]["queue"] == "test"
    strategic = kubectl.fails("patch", "vcjob", "job-1", "-p", blue)
    assert "is not supported by batch.volcano.sh/v1alpha1, Kind=Job" in strategic


@pytest.mark.usefixtures("job_1")
def test_deleted_it_leaves_nothing_but_what_hekla_remembers(
    kubectl: Kubectl, open_stack: Stack, before: set[tuple[str, str]]
) -> None:
    deleted = kubectl.ok("delete", "vcjob", "job-1", "--timeout=30s")

    assert deleted.startswith('job.batch.volcano.sh "job-1" deleted')
    kubectl.ok("delete", "queue", "test", "--timeout=30s")
    wait_until(
        lambda: everything(kubectl) == before,
        timeout=60,
        what="nothing of it to be left",
    )
    assert "does not exist" in open_stack.fails("job", "get", "job-1")
    [attempt] = json.loads(open_stack.ok("job", "attempts", "job-1", "-o", "json"))["items"]
    assert attempt["podName"] == "job-1-nginx-0"


def test_a_job_of_the_first_door_shows_at_the_second_and_may_be_deleted_there(
    kubectl: Kubectl, open_stack: Stack, tmp_path: Path
) -> None:
    open_stack.ok("apply", "-f", "-", stdin=witness_job("rpc", tmp_path / "w", seconds=60))
    open_stack.ok("job", "wait", "rpc", "--for", "Running", "--timeout", "30s")

    kubectl.ok("wait", RUNNING, "vcjob/rpc", "--timeout=30s")
    shown = kubectl.json("get", "vcjob", "rpc")
    [pod] = kubectl.json("get", "pods", "-l", "volcano.sh/job-name=rpc")["items"]
    assert owner(pod) == ("Job", "rpc", shown["metadata"]["uid"])
    more = '{"spec":{"minAvailable":0}}'
    refused = kubectl.fails("patch", "vcjob", "rpc", "--type=merge", "-p", more)
    assert "job default/rpc was made by gRPC, and changes there" in refused

    kubectl.ok("delete", "vcjob", "rpc", "--timeout=30s")

    wait_until(
        lambda: open_stack.run("job", "get", "rpc").returncode != 0,
        timeout=30,
        what="its row to go",
    )
    assert "does not exist" in open_stack.fails("job", "get", "rpc")
    wait_until(
        lambda: kubectl.names("pods", "-l", "volcano.sh/job-name=rpc") == [],
        timeout=30,
        what="its pods to end",
    )


@pytest.mark.parametrize("program", [one for one in programs() if one != OURS], ids=str)
def test_the_kubectl_on_path_walks_the_same_road(
    open_stack: Stack, program: Path, tmp_path: Path
) -> None:
    other = Kubectl(program, open_stack.home / "kubeconfig", tmp_path / "home")
    text = witness_job("other", tmp_path / "witness", seconds=60)

    assert other.ok("create", "-f", "-", stdin=text) == "job.batch.volcano.sh/other created\n"
    other.ok("wait", RUNNING, "vcjob/other", "--timeout=30s")
    [row] = other.rows("get", "vcjob", "--field-selector=metadata.name=other")
    assert (row["NAME"], row["STATUS"], row["RUNNINGS"]) == ("other", "Running", "1")
    assert "Status:" in other.ok("describe", "vcjob", "other")
    applied = other.ok("apply", "-f", "-", stdin=text)
    assert "other configured" in applied
    assert "other labeled" in other.ok("label", "vcjob", "other", "a=b")
    assert other.rows("get", "pods,podgroup,queue")
    other.ok("delete", "vcjob", "other", "--timeout=30s")
    assert "NotFound" in other.fails("get", "vcjob", "other")
