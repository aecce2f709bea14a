"""The pipelines of ``examples/``, whose pods say that they ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from tests.support.stack import WITNESS, Stack, witnessed
from tests.support.waiting import wait_until

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
PIPELINES: Final = ("ml-pipeline", "parallel-pipeline")


class Pipeline(NamedTuple):
    """A flow, ready to be run."""

    name: str
    manifest: str
    targets: Mapping[str, Sequence[str]]
    """The steps, and those that each comes after."""
    replicas: Mapping[str, int]
    """How many pods the job of each step has."""

    def job(self, step: str) -> str:
        """The name of a step's job."""
        return f"{self.name}-{step}"


def pipeline(example: str, witness: Path, *, name: str = "", seconds: float = 0.2) -> Pipeline:
    """The flow of an example, under its own name or another."""
    documents: list[dict[str, Any]] = list(
        yaml.safe_load_all((EXAMPLES / f"{example}.yaml").read_text())
    )
    *templates, flow = documents
    replicas = {}
    for template in templates:
        [task] = template["spec"]["tasks"]
        replicas[template["metadata"]["name"]] = task["replicas"]
        for container in task["template"]["spec"]["containers"]:
            container["command"] = ["sh", "-c", f"{WITNESS} sleep {seconds}"]
            container["env"] = [{"name": "WITNESS", "value": str(witness)}]
    flow["metadata"]["name"] = name or example
    targets = {
        step["name"]: step.get("dependsOn", {}).get("targets", [])
        for step in flow["spec"]["flows"]
    }
    return Pipeline(name or example, yaml.safe_dump_all(documents), targets, replicas)


def run(stack: Stack, wanted: Pipeline) -> None:
    """Have a pipeline run; applying it again does no harm."""
    wait_until(
        lambda: stack.run("apply", "-f", "-", stdin=wanted.manifest).returncode == 0,
        timeout=60,
        what=f"{wanted.name} to be taken",
    )


def assert_ran_in_order(witness: Path, wanted: Pipeline) -> None:
    """Each pod of each step ran once, and all those of its targets before."""
    lines = [line for line in witnessed(witness) if line[0].startswith(f"{wanted.name}-")]
    ran = sorted((job, index, run) for job, _, index, run, _ in lines)
    expected = sorted(
        (wanted.job(step), str(index), "0")
        for step, count in wanted.replicas.items()
        for index in range(count)
    )
    assert ran == expected
    places: dict[str, list[int]] = {}
    for place, (job, *_) in enumerate(lines):
        places.setdefault(job, []).append(place)
    for step, targets in wanted.targets.items():
        for target in targets:
            assert max(places[wanted.job(target)]) < min(places[wanted.job(step)])
