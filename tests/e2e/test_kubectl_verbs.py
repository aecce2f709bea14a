"""What real kubectl can do with jobs: change, watch, wait, read, delete, try; and refusals."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.kubectl import Kubectl
from tests.support.stack import Stack, witness_job
from tests.support.waiting import wait_until

RUNNING: Final = "--for=jsonpath={.status.state.phase}=Running"
COMPLETED: Final = "--for=jsonpath={.status.state.phase}=Completed"
JOB: Final = "job.batch.volcano.sh"


def job(name: str, tmp_path: Path, *, seconds: float = 60, **spec: Any) -> dict[str, Any]:
    """A job of one pod, as a manifest that admission has nothing to add to in lists.

    For kubectl replaces lists as a whole: where something was added it would apply it again.
    """
    made: dict[str, Any] = json.loads(witness_job(name, tmp_path / "witness", seconds=seconds))
    made["spec"]["tasks"][0] |= {"minAvailable": 1, "maxRetry": 3}
    made["spec"] |= spec
    return made


def text(made: Mapping[str, Any]) -> str:
    return json.dumps(made)


def pods(kubectl: Kubectl, name: str) -> list[str]:
    return kubectl.names("pods", "-l", f"volcano.sh/job-name={name}")


def test_a_job_is_applied_changed_replaced_and_followed(
    kubectl: Kubectl, open_stack: Stack, tmp_path: Path
) -> None:
    wanted = job("changed", tmp_path)
    assert kubectl.ok("apply", "-f", "-", stdin=text(wanted)) == f"{JOB}/changed created\n"
    assert kubectl.ok("apply", "-f", "-", stdin=text(wanted)) == f"{JOB}/changed unchanged\n"
    kubectl.ok("wait", RUNNING, "vcjob/changed", "--timeout=30s")

    wanted["spec"]["tasks"][0]["replicas"] = 2
    assert kubectl.ok("apply", "-f", "-", stdin=text(wanted)) == f"{JOB}/changed configured\n"

    wait_until(lambda: len(pods(kubectl, "changed")) == 2, timeout=30, what="the second pod")
    own = json.loads(open_stack.ok("job", "get", "changed", "-o", "json"))
    assert own["spec"]["tasks"][0]["replicas"] == 2

    found = kubectl.json("get", "vcjob", "changed")
    found["metadata"]["labels"] = {"replaced": "yes"}
    stale = json.loads(text(found))
    stale["metadata"]["resourceVersion"] = "1"
    conflict = kubectl.fails("replace", "-f", "-", stdin=text(stale))
    assert "(Conflict)" in conflict
    assert "the object has been modified" in conflict
    found["metadata"].pop("resourceVersion")
    assert kubectl.ok("replace", "-f", "-", stdin=text(found)) == f"{JOB}/changed replaced\n"
    assert kubectl.names("vcjob", "-l", "replaced=yes") == [f"{JOB}/changed"]
    kubectl.ok("delete", "vcjob", "changed", "--timeout=30s")
    wait_until(lambda: not pods(kubectl, "changed"), timeout=30, what="its pods to end")


def test_a_job_is_watched_awaited_and_its_output_read(kubectl: Kubectl, tmp_path: Path) -> None:
    wanted = job("watched", tmp_path)
    container = wanted["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    go_on = tmp_path / "go-on"
    script = f"echo hello; until test -e {go_on}; do sleep 0.05; done; echo bye"
    container["command"] = ["sh", "-c", script]

    with kubectl.started("get", "vcjob", "-w") as watch:
        kubectl.ok("create", "-f", "-", stdin=text(wanted))
        kubectl.ok("wait", RUNNING, "vcjob/watched", "--timeout=30s")
        watch.wait_for("Running")
        with kubectl.started("logs", "-f", "watched-main-0") as logs:
            logs.wait_for("hello")
            go_on.touch()
            kubectl.ok("wait", COMPLETED, "vcjob/watched", "--timeout=30s")
            assert logs.code() == 0
            assert logs.lines == ["hello", "bye"]
        watch.wait_for("Completed")
        kept = kubectl.ok("logs", "-l", "volcano.sh/job-name=watched", "--tail=1")
        assert kept == "bye\n"
        with kubectl.started("wait", "--for=delete", "vcjob/watched", "--timeout=30s") as gone:
            kubectl.ok("delete", "vcjob", "watched", "--timeout=30s")
            assert gone.code() == 0

    assert watch.lines[0].split() == ["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE"]
    mine = [line.split() for line in watch.lines if line.startswith("watched ")]
    seen = [cells[1] for cells in mine if len(cells) > 3]
    order = [phase for phase in ("Pending", "Running", "Completed") if phase in seen]
    assert order[-2:] == ["Running", "Completed"], "it may begin to watch after Pending"
    assert [seen.index(phase) for phase in order] == sorted(seen.index(one) for one in order)


@pytest.mark.parametrize("how", ["background", "foreground"])
def test_a_job_that_is_deleted_takes_its_pods_along(
    kubectl: Kubectl, tmp_path: Path, how: str
) -> None:
    name = f"gone-{how}"
    kubectl.ok("create", "-f", "-", stdin=text(job(name, tmp_path)))
    kubectl.ok("wait", RUNNING, f"vcjob/{name}", "--timeout=30s")

    kubectl.ok("delete", "vcjob", name, f"--cascade={how}", "--timeout=30s")

    if how == "foreground":
        assert pods(kubectl, name) == []
    wait_until(lambda: not pods(kubectl, name), timeout=30, what="its pods to end")
    wait_until(
        lambda: not [group for group in kubectl.names("podgroup") if f"/{name}-" in group],
        timeout=30,
        what="its group to go",
    )


def test_orphaned_pods_run_on_and_are_nobodys(
    kubectl: Kubectl, open_stack: Stack, tmp_path: Path
) -> None:
    kubectl.ok("create", "-f", "-", stdin=text(job("orphans", tmp_path)))
    kubectl.ok("wait", RUNNING, "vcjob/orphans", "--timeout=30s")

    kubectl.ok("delete", "vcjob", "orphans", "--cascade=orphan", "--timeout=30s")

    wait_until(
        lambda: open_stack.run("job", "get", "orphans").returncode != 0,
        timeout=30,
        what="its row to go",
    )
    left = kubectl.json("get", "pod", "orphans-main-0")
    assert left["status"]["phase"] == "Running"
    assert "ownerReferences" not in left["metadata"]
    kubectl.ok("delete", "pod", "orphans-main-0", "--timeout=20s")


REFUSED: Final[Mapping[str, tuple[Mapping[str, Any], str]]] = {
    "a number out of bounds": (
        {"minAvailable": -1},
        'The Job "bad" is invalid: spec.minAvailable: Invalid value: -1:'
        " spec.minAvailable in body should be greater than or equal to 0",
    ),
    "a word for a number": (
        {"minAvailable": "two"},
        'The Job "bad" is invalid: spec.minAvailable: Invalid value: "string":'
        ' spec.minAvailable in body must be of type integer: "string"',
    ),
    "a field that there is not": (
        {"minimumAvailable": 1},
        'strict decoding error: unknown field "spec.minimumAvailable"',
    ),
    "an event that there is not": (
        {"policies": [{"event": "PodExploded", "action": "RestartJob"}]},
        'spec.policies[0].event: Unsupported value: "PodExploded": supported values: ',
    ),
    "a minimum that cannot be": (
        {"minAvailable": 7},
        'The Job "bad" is invalid: spec.minAvailable: must be <= the replicas of all tasks',
    ),
    "a queue that there is not": (
        {"queue": "nowhere"},
        'The Job "bad" is invalid: spec.queue: does not exist: "nowhere"',
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_bad_manifest_gets_the_message_that_users_know(
    kubectl: Kubectl, tmp_path: Path, what: str
) -> None:
    spec, message = REFUSED[what]

    said = kubectl.fails("create", "-f", "-", stdin=text(job("bad", tmp_path, **spec)))

    assert message in said
    assert "NotFound" in kubectl.fails("get", "vcjob", "bad")


def test_trying_changes_nothing(kubectl: Kubectl, open_stack: Stack, tmp_path: Path) -> None:
    wanted = job("tried", tmp_path)
    tried = kubectl.json("create", "--dry-run=server", "-f", "-", stdin=text(wanted))

    assert tried["spec"]["queue"] == "default"
    assert tried["spec"]["schedulerName"] == "volcano"
    assert "NotFound" in kubectl.fails("get", "vcjob", "tried")
    assert "does not exist" in open_stack.fails("job", "get", "tried")
    bad = text(job("tried", tmp_path, minAvailable=7))
    refused = kubectl.fails("create", "--dry-run=server", "-f", "-", stdin=bad)
    assert "spec.minAvailable: must be <=" in refused

    kubectl.ok("create", "-f", "-", stdin=text(wanted))
    label = '{"metadata":{"labels":{"a":"b"}}}'
    kubectl.ok("patch", "vcjob", "tried", "--type=merge", "-p", label, "--dry-run=server")
    kubectl.ok("delete", "vcjob", "tried", "--dry-run=server")
    found = kubectl.json("get", "vcjob", "tried")
    assert "labels" not in found["metadata"]
    assert "deletionTimestamp" not in found["metadata"]
    kubectl.ok("delete", "vcjob", "tried", "--timeout=30s")


def test_while_the_webhook_is_away_jobs_are_refused_and_pods_are_not(
    kubectl: Kubectl, open_stack: Stack, tmp_path: Path
) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "alone"},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "none", "command": ["sleep", "60"]}],
        },
    }
    open_stack.ok("stop", "webhook")
    try:
        said = kubectl.fails("create", "-f", "-", stdin=text(job("early", tmp_path)))
        assert "(InternalError)" in said
        assert 'failed calling webhook "mutatejob.volcano.sh"' in said
        assert kubectl.ok("create", "-f", "-", stdin=text(pod)) == "pod/alone created\n"
    finally:
        open_stack.ok("start", "webhook")

    kubectl.ok("create", "-f", "-", stdin=text(job("early", tmp_path)))
    kubectl.ok("delete", "vcjob/early", "pod/alone", "--timeout=30s")
