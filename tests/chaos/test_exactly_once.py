"""Whatever is killed, each pod runs once and each job completes.

What ran is counted in a file that the pods write, outside of Postgres and the cluster. The
gate runs one round, chosen by the seed; ``make chaos`` runs all.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Final

import pytest

from tests.support.stack import Stack, running_stack, witness_job, witnessed
from tests.support.waiting import wait_until

JOBS: Final = 50
AT_LEAST_RUNNING: Final = 20
SERVICES: Final = ("webhook", "controller", "scheduler", "flow")
VICTIMS: Final = {
    **{service: (service,) for service in SERVICES},
    "all four": SERVICES,
    "postgres": ("postgres",),
    "cluster": ("cluster",),
}
SEED: Final = int(os.environ.get("CHAOS_SEED", "1"))


def submit(stack: Stack, witness: Path, *, seconds: float, count: int = JOBS) -> None:
    manifests = [witness_job(f"w{number}", witness, seconds=seconds) for number in range(count)]
    text = "\n---\n".join(manifests)
    # A controller that dies meanwhile is no reason to give up: applying again is no harm.
    wait_until(
        lambda: stack.run("apply", "-f", "-", stdin=text).returncode == 0,
        timeout=120,
        what="all jobs to be taken",
    )


def assert_each_ran_once(stack: Stack, witness: Path, count: int = JOBS) -> None:
    with stack.client() as client:
        jobs = client.jobs.list().items
    assert {job.metadata.name: job.status.retry_count for job in jobs} == {
        f"w{number}": 0 for number in range(count)
    }
    ran = sorted((job, task, index, run) for job, task, index, run, _ in witnessed(witness))
    assert ran == sorted((f"w{number}", "main", "0", "0") for number in range(count))


def kill_in_the_middle(stack: Stack, victim: str, witness: Path, *, timeout: float) -> None:
    submit(stack, witness, seconds=5)
    stack.wait_for_phase("Running", AT_LEAST_RUNNING, timeout=60)

    stack.kill(*VICTIMS[victim])

    stack.wait_for_phase("Completed", JOBS, timeout=timeout)
    assert_each_ran_once(stack, witness)


def test_a_kill_in_the_middle_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """The seed's victim; another seed, another victim."""
    victim = random.Random(SEED).choice(sorted(VICTIMS))
    with running_stack(tmp_path / "home") as stack:
        kill_in_the_middle(stack, victim, tmp_path / "witness", timeout=90)


@pytest.mark.long
@pytest.mark.parametrize("victim", sorted(VICTIMS))
def test_no_victim_makes_a_difference(tmp_path: Path, victim: str) -> None:
    with running_stack(tmp_path / "home") as stack:
        kill_in_the_middle(stack, victim, tmp_path / "witness", timeout=120)


@pytest.mark.long
def test_random_kills_again_and_again(tmp_path: Path) -> None:
    """A victim every few completions, until all jobs are done."""
    chance = random.Random(SEED)
    witness = tmp_path / "witness"
    with running_stack(tmp_path / "home") as stack:
        submit(stack, witness, seconds=5)
        stack.wait_for_phase("Running", AT_LEAST_RUNNING, timeout=60)
        for done in (1, 10, 20, 30, 40):
            stack.kill(*VICTIMS[chance.choice(sorted(VICTIMS))])
            stack.wait_for_phase("Completed", done, timeout=120)
        stack.wait_for_phase("Completed", JOBS, timeout=120)
        assert_each_ran_once(stack, witness)


@pytest.mark.long
@pytest.mark.parametrize(
    "point",
    [
        "controller.recorded=kill@12",
        "controller.acted=kill@12",
        "controller.commit-unknown=kill@12",
        "controller.recorded=raise:0.3",
        "controller.commit-unknown=raise:0.3",
        "controller.slow-act=sleep 8:0.2",
        "scheduler.recorded=kill@3",
        "scheduler.bound=kill@3",
        "kube.post-late=sleep 2:0.2",
    ],
)
def test_no_place_to_die_makes_a_difference(tmp_path: Path, point: str) -> None:
    """Also a claim that expires during a slow act: the lease is shorter than the sleep."""
    witness = tmp_path / "witness"
    environ = {"HEKLA_FAILPOINTS": point, "HEKLA_CONTROLLER_CLAIM_LEASE": "5s"}
    with running_stack(tmp_path / "home", environ=environ) as stack:
        submit(stack, witness, seconds=5)
        stack.wait_for_phase("Completed", JOBS, timeout=240)
        assert_each_ran_once(stack, witness)
        hits = [line for line in stack.log_lines("") if line.get("message") == "failpoint"]
        assert hits, "the failpoint was never passed"
