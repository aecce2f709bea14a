"""Several controllers, slow and stopped ones among them, and jobs that end unseen."""

from __future__ import annotations

import itertools
import json
import signal
import sys
import urllib.request
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest

from hekla.kube.client import KubeClient
from hekla.kube.requests import Deletion
from hekla.kube.resources import PODS
from tests.support.stack import Stack, running_stack
from tests.support.waiting import wait_until

PODS_ENDED_UNSEEN: Final = 500


def simulated_job(name: str, *, replicas: int, duration: str) -> str:
    """A job whose pods only pretend."""
    template = {
        "metadata": {"annotations": {"hekla.io/simulate-duration": duration}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "main",
                    "image": "busybox",
                    "command": ["true"],
                    "resources": {"requests": {"cpu": "10m"}},
                }
            ],
        },
    }
    task = {"name": "main", "replicas": replicas, "template": template}
    return json.dumps(
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"tasks": [task]},
        }
    )


def set_fault(stack: Stack, **faults: Any) -> None:
    request = urllib.request.Request(
        f"{stack.endpoint('kubernetes')}/hekla/faults",
        data=json.dumps(faults).encode(),
        headers={"Content-Type": "application/json"},
        method="POST",
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 200


def pod_phases(kube: KubeClient) -> Counter[str]:
    pods, _ = kube.list(PODS)
    return Counter(pod["status"]["phase"] for pod in pods)


def test_pods_that_end_and_go_while_every_controller_is_down_are_not_run_again(
    tmp_path: Path,
) -> None:
    options = ["--runtime", "simulate", "--nodes", "5", "--replicas", "controller=2"]
    with (
        running_stack(tmp_path / "home", *options) as stack,
        KubeClient.start(str(stack.home / "kubeconfig"), isolated=False) as kube,
    ):
        stack.ok(
            "apply",
            "-f",
            "-",
            stdin=simulated_job("unseen", replicas=PODS_ENDED_UNSEEN, duration="8s"),
        )
        wait_until(
            lambda: (
                pod_phases(kube)["Running"] + pod_phases(kube)["Succeeded"] >= PODS_ENDED_UNSEEN
            ),
            timeout=60,
            what="all pods to run",
        )

        stack.ok("stop", "controller")
        wait_until(
            lambda: pod_phases(kube)["Succeeded"] == PODS_ENDED_UNSEEN,
            timeout=60,
            what="all pods to succeed",
        )
        pods, _ = kube.list(PODS)
        kube.delete_many(
            Deletion(PODS, "default", pod["metadata"]["name"], pod["metadata"]["uid"])
            for pod in pods
        )
        stack.ok("start", "controller")

        stack.wait_for_phase("Completed", 1, timeout=60)
        with stack.client() as client:
            job = client.jobs.get("default", "unseen")
            attempts = client.jobs.attempts("default", "unseen")
        assert (job.status.succeeded, job.status.retry_count) == (PODS_ENDED_UNSEEN, 0)
        assert len(attempts) == PODS_ENDED_UNSEEN
        assert {(attempt.run, attempt.outcome) for attempt in attempts} == {(0, "Succeeded")}
        wait_until(lambda: not pod_phases(kube), timeout=30, what="the pods to go")


@pytest.mark.long
def test_three_controllers_one_stopped_past_its_claim_share_the_work(tmp_path: Path) -> None:
    """200 jobs, watches delayed by 5 s; overlap and shares are read from the log of passes."""
    environ = {"HEKLA_CONTROLLER_CLAIM_LEASE": "5s"}
    options = ["--runtime", "simulate", "--nodes", "5", "--replicas", "controller=3"]
    with running_stack(tmp_path / "home", *options, environ=environ) as stack:
        set_fault(stack, watchDelaySeconds=5)
        jobs = [simulated_job(f"s{one}", replicas=2, duration="20s") for one in range(200)]
        stack.ok("apply", "-f", "-", stdin="\n---\n".join(jobs))
        stack.wait_for_phase("Running", 20, timeout=120)

        stack.kill("controller-2", number=signal.SIGSTOP)
        stack.wait_for_phase("Completed", 60, timeout=180)
        stack.kill("controller-2", number=signal.SIGCONT)

        stack.wait_for_phase("Completed", 200, timeout=240)
        with stack.client() as client:
            listed = client.jobs.list().items
            attempts = [
                attempt
                for job in listed
                for attempt in client.jobs.attempts("default", job.metadata.name)
            ]
        assert {job.status.retry_count for job in listed} == {0}
        assert len(attempts) == 400
        assert {(attempt.run, attempt.outcome) for attempt in attempts} == {(0, "Succeeded")}
        shares, overlaps = passes_of(stack)
        told(f"shares of passes {dict(shares)}, overlapping passes {overlaps}")
        assert len(shares) == 3
        # One was stopped for half of the time, and jobs are claimed by the dozen.
        assert min(shares.values()) >= sum(shares.values()) / 20


def told(line: str) -> None:
    """Show a figure; pytest's -s lets it through."""
    sys.stdout.write(f"\n{line}\n")


def passes_of(stack: Stack) -> tuple[Counter[str], int]:
    """How many passes each replica made, and how many pairs of one job overlapped."""
    shares: Counter[str] = Counter()
    spans: dict[str, list[tuple[datetime, datetime]]] = defaultdict(list)
    for line in stack.log_lines("controller"):
        if line.get("message") == "pass":
            shares[line["replica"]] += 1
            spans[line["job"]].append(
                (
                    datetime.fromisoformat(line["started"]),
                    datetime.fromisoformat(line["ended"]),
                )
            )
    overlaps = 0
    for of_job in spans.values():
        ordered = sorted(of_job)
        overlaps += sum(later[0] < earlier[1] for earlier, later in itertools.pairwise(ordered))
    return shares, overlaps
