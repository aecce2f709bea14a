"""A flow's road through the whole stack, as a user walks it; services are killed on the way."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any, Final

from tests.support.pipelines import PIPELINES, assert_ran_in_order, pipeline, run
from tests.support.stack import Stack, witnessed
from tests.support.waiting import wait_until

SEED: Final = int(os.environ.get("CHAOS_SEED", "1"))
TIMEOUT: Final = "60s"


def shown(stack: Stack, *args: str) -> Any:
    return json.loads(stack.ok(*args, "-o", "json"))


def jobs_of(stack: Stack, flow: str) -> list[str]:
    names = [one["metadata"]["name"] for one in shown(stack, "job", "list")["items"]]
    return [name for name in names if name.startswith(f"{flow}-")]


def test_both_pipelines_run_in_order_and_once_whoever_is_killed(
    stack: Stack, tmp_path: Path
) -> None:
    witness = tmp_path / "witness"
    kept, deleted = pipelines = [pipeline(name, witness) for name in PIPELINES]
    chance = random.Random(SEED)
    steps = sum(sum(one.replicas.values()) for one in pipelines)
    at = {service: chance.randrange(1, steps) for service in ("flow", "controller")}

    for one in pipelines:
        run(stack, one)
    for service, count in sorted(at.items(), key=lambda item: item[1]):
        wait_until(
            lambda count=count: len(witnessed(witness)) >= count,  # type: ignore[misc]
            timeout=60,
            what=f"{count} pods to have run",
        )
        stack.kill(service)
    for one in pipelines:
        stack.ok("jobflow", "wait", one.name, "--for", "Succeed", "--timeout", TIMEOUT)

    for one in pipelines:
        assert_ran_in_order(witness, one)
    found = shown(stack, "jobflow", "get", kept.name)
    assert found["status"]["completedJobs"] == [kept.job(step) for step in kept.targets]
    assert sorted(jobs_of(stack, kept.name)) == sorted(kept.job(step) for step in kept.targets)
    # The second is told to leave no job, and remembers what they came to.
    wait_until(lambda: not jobs_of(stack, deleted.name), timeout=20, what="its jobs to go")
    status = shown(stack, "jobflow", "get", deleted.name)["status"]
    assert status["completedJobs"] == [deleted.job(step) for step in deleted.targets]
    assert {one["state"] for one in status["jobStatusList"]} == {"Completed"}

    uid = found["metadata"]["uid"]
    stack.ok("jobflow", "delete", kept.name)
    assert jobs_of(stack, kept.name) == []
    with stack.client() as client:
        past = client.job_flows.get_by_uid(uid)
    assert past.status.completed_jobs == found["status"]["completedJobs"]


def test_a_flow_waits_for_its_template_and_says_so(stack: Stack, tmp_path: Path) -> None:
    wanted = pipeline("ml-pipeline", tmp_path / "witness", name="waits")
    stack.run("delete", "--ignore-not-found", "-f", "-", stdin=wanted.manifest)
    *templates, flow = wanted.manifest.split("---\n")
    stack.ok("jobflow", "run", "-f", "-", stdin=flow)

    def message() -> str:
        state = shown(stack, "jobflow", "get", "waits").get("status", {}).get("state", {})
        return str(state.get("message", ""))

    wanted_message = "step data-preprocess: JobTemplate default/data-preprocess does not exist"
    wait_until(lambda: message() == wanted_message, what="the flow to say what it waits for")
    assert "does not exist" in stack.run("jobflow", "get", "waits", "-o", "wide").stdout

    stack.ok("jobtemplate", "create", "-f", "-", stdin="---\n".join(templates))

    stack.ok("jobflow", "wait", "waits", "--for", "Succeed", "--timeout", TIMEOUT)
    assert_ran_in_order(tmp_path / "witness", wanted)
    made = shown(stack, "jobtemplate", "get", "model-training")["status"]
    assert "waits-model-training" in made["jobDependsOnList"]
    stack.ok("delete", "-f", "-", stdin=wanted.manifest)
    assert "does not exist" in stack.fails("jobtemplate", "get", "model-training")


def test_what_cannot_be_is_refused_in_one_line(stack: Stack, tmp_path: Path) -> None:
    circle = pipeline("ml-pipeline", tmp_path / "witness", name="circle").manifest
    circle = circle.replace(
        "- name: data-preprocess\n",
        "- name: data-preprocess\n    dependsOn: {targets: [model-evaluation]}\n",
    )
    flow = circle.split("---\n")[-1]

    refused = stack.run("apply", "-f", "-", stdin=flow)

    assert refused.returncode == 1
    assert "must not go in a circle" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert "does not exist" in stack.fails("jobflow", "get", "circle")
    assert (
        "has no JobFlow in it" in stack.run("jobflow", "run", "-f", "examples/job.yaml").stderr
    )
