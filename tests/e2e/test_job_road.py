"""A job's road through the whole stack, as a user walks it: commands in, text and files out."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.support.stack import Stack, witness_job, witnessed
from tests.support.waiting import wait_until

EXAMPLES: Final = Path(__file__).parents[2] / "examples"


def manifest(name: str, command: str, *, replicas: int = 1, **spec: Any) -> str:
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sh", "-c", command],
        "resources": {"requests": {"cpu": "500m"}},
    }
    spec_of_pods = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,  # a shell heeds no SIGTERM, as in any container
        "containers": [container],
    }
    template = {"spec": spec_of_pods}
    task = {"name": "main", "replicas": replicas, "template": template, **spec.pop("task", {})}
    return json.dumps(
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": name},
            "spec": {"tasks": [task], **spec},
        }
    )


def shown(stack: Stack, *args: str) -> Any:
    return yaml.safe_load(stack.ok(*args, "-o", "yaml"))


def nothing_is_left(stack: Stack, name: str) -> bool:
    pods = stack.ok("pod", "list", "-A", "-o", "name")
    groups = stack.ok("podgroup", "list", "-A", "-o", "name")
    return f"/{name}-" not in pods and f"/{name}-" not in groups


def test_the_first_example_runs_and_its_deletion_leaves_nothing(stack: Stack) -> None:
    stack.ok("apply", "-f", str(EXAMPLES / "job.yaml"))
    stack.ok("job", "wait", "job-1", "--for", "Running", "--timeout", "60s")

    stack.ok("job", "delete", "job-1")

    assert nothing_is_left(stack, "job-1")
    assert stack.run("job", "get", "job-1").returncode == 1
    [attempt] = json.loads(stack.ok("job", "attempts", "job-1", "-o", "json"))["items"]
    assert attempt["outcome"] == "Removed"


def test_the_pods_of_a_job_have_the_volumes_of_its_template(stack: Stack) -> None:
    port = stack.ports()["kubernetes"]
    claim = {
        "metadata": {"name": "kept"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    for plural, body in (
        ("configmaps", {"metadata": {"name": "words"}, "data": {"word": "said"}}),
        ("persistentvolumeclaims", claim),
    ):
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/api/v1/namespaces/default/{plural}",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 201
    # Where there are no sandboxes, the paths are told.
    scratch, at = "$HEKLA_VOLUME_HEKLA_VOLUME_0/n", "$HEKLA_VOLUME"
    command = f"cat {at}_WORDS/word {at}_SHARED/f; wc -l <{at}_KEPT/f >{scratch}; cat {scratch}"
    job = json.loads(manifest("volumes", command, volumes=[{"mountPath": "/scratch"}]))
    spec = job["spec"]["tasks"][0]["template"]["spec"]
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("words", "shared", "kept")]
    spec["containers"][0]["volumeMounts"] = mounts
    prepare = f"echo prepared >{at}_SHARED/f; echo $HEKLA_TASK >>{at}_KEPT/f"
    spec["initContainers"] = [
        {"name": "i", "image": "x", "command": ["sh", "-c", prepare], "volumeMounts": mounts}
    ]
    spec["volumes"] = [
        {"name": "words", "configMap": {"name": "words"}},
        {"name": "shared", "emptyDir": {}},
        {"name": "kept", "persistentVolumeClaim": {"claimName": "kept"}},
    ]

    stack.ok("apply", "-f", "-", stdin=json.dumps(job))
    stack.ok("job", "wait", "volumes", "--for", "Completed", "--timeout", "60s")

    said = stack.ok("job", "logs", "volumes").split()
    assert [word for word in said if word[0] != "["] == ["saidprepared", "1"]


def test_logs_are_shown_also_after_a_restart_of_the_cluster(stack: Stack) -> None:
    text = manifest("talks", "echo I am $VC_TASK_INDEX", replicas=2, plugins={"env": []})
    stack.ok("apply", "-f", "-", stdin=text)
    stack.ok("job", "wait", "talks", "--for", "Completed", "--timeout", "60s")
    before = sorted(stack.ok("job", "logs", "talks").splitlines())

    stack.kill("cluster")
    wait_until(stack.ready, timeout=60, what="the cluster to be back")

    assert [line.split("] ")[-1] for line in before] == ["I am 0", "I am 1"]
    assert sorted(stack.ok("job", "logs", "talks").splitlines()) == before


def test_a_gang_that_does_not_fit_waits_whole_and_says_why(stack: Stack) -> None:
    """Four pods fit beside each other, and twenty do not: none of the twenty starts."""
    stack.ok("apply", "-f", "-", stdin=manifest("big", "sleep 1", replicas=20))

    wait_until(
        lambda: (
            "tasks in gang unschedulable: pod group is not ready, 20 Pending, 20 minAvailable"
            in shown(stack, "job", "get", "big")["status"]["state"].get("message", "")
        ),
        timeout=30,
        what="the scheduler's reason",
    )

    status = shown(stack, "job", "get", "big")["status"]
    assert (status["state"]["phase"], status.get("running", 0)) == ("Pending", 0)
    assert (
        stack.run("job", "wait", "big", "--for", "Running", "--timeout", "1s").returncode == 2
    )
    stack.ok("job", "delete", "big")


def test_a_failure_restarts_the_job_until_its_retries_are_used_up(
    stack: Stack, tmp_path: Path
) -> None:
    job = json.loads(witness_job("fails", tmp_path / "witness", seconds=0))
    container = job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container["command"][2] += "; exit 3"
    job["spec"] |= {"maxRetry": 3, "policies": [{"event": "PodFailed", "action": "RestartJob"}]}
    stack.ok("apply", "-f", "-", stdin=json.dumps(job))

    done = stack.run("job", "wait", "fails", "--for", "Completed", "--timeout", "90s")

    assert done.returncode == 1, "it can no longer complete"
    status = shown(stack, "job", "get", "fails")["status"]
    assert (status["state"]["phase"], status["retryCount"]) == ("Failed", 3)
    assert [line[3] for line in witnessed(tmp_path / "witness")] == ["0", "1", "2"]
    stack.ok("job", "delete", "fails")


def test_suspend_stops_the_pods_and_resume_goes_on_without_what_succeeded(
    stack: Stack, tmp_path: Path
) -> None:
    witness = tmp_path / "witness"
    job = json.loads(witness_job("pauses", witness, seconds=0, replicas=2))
    container = job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    # Index 0 is done at once; index 1 runs until it is started a second time.
    container["command"][2] += (
        '; if [ "$HEKLA_INDEX" = 1 ] && [ $(grep -c " 1 0 " "$WITNESS") -lt 2 ];'
        " then sleep 1000; fi"
    )
    stack.ok("apply", "-f", "-", stdin=json.dumps(job))
    wait_until(
        lambda: shown(stack, "job", "get", "pauses")["status"].get("succeeded") == 1,
        timeout=60,
        what="the first pod to be done",
    )

    stack.ok("job", "suspend", "pauses")
    stack.ok("job", "wait", "pauses", "--for", "Aborted", "--timeout", "60s")
    stack.ok("job", "resume", "pauses")
    stack.ok("job", "wait", "pauses", "--for", "Completed", "--timeout", "60s")

    ran = sorted((index, run) for _, _, index, run, _ in witnessed(witness))
    assert ran == [("0", "0"), ("1", "0"), ("1", "0")]
    assert shown(stack, "job", "get", "pauses")["status"]["retryCount"] == 0
    stack.ok("job", "delete", "pauses")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("kind: [", "line"),
        ("kind: Nonsense\napiVersion: v9", "kind"),
        (manifest("x", "true", minAvailabel=1), "spec.minAvailabel"),
        (manifest("x", "true", task={"replicas": "3"}), "spec.tasks[0].replicas"),
        (manifest("x", "true", queue="no-such"), "spec.queue"),
        (manifest("x", "true", minAvailable=7), "spec.minAvailable"),
        ("a: " + "x" * (3 * 2**20), "3"),
    ],
)
def test_bad_manifests_are_one_line_and_leave_nothing(
    stack: Stack, text: str, told: str
) -> None:
    done = stack.run("apply", "-f", "-", stdin=text)

    assert done.returncode != 0
    [line] = done.stderr.strip().splitlines()
    assert line.startswith("error: ")
    assert told in line
    assert stack.run("job", "get", "x").returncode == 1
