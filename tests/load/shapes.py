"""What is submitted: so many jobs of so many pods that only pretend to run."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

from hekla.api.convert import to_message
from hekla.api.job import Job, JobSpec, TaskSpec
from hekla.api.meta import ObjectMeta
from hekla.v1 import job_pb2

NAMESPACE: Final = "default"
CPU_MILLIS: Final = 100
MEMORY_MI: Final = 64
PODS_PER_NODE: Final = 110
REMOVED_EVERY: Final = 10
"""Each so many jobs is one that is removed as soon as it is over, to see its delete."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A number of jobs, and of pods in each."""

    jobs: int
    pods: int

    @property
    def name(self) -> str:
        """As people write it."""
        return f"{self.jobs}x{self.pods}"

    @property
    def all_pods(self) -> int:
        """Of all jobs."""
        return self.jobs * self.pods

    def scaled(self, scale: float) -> Shape:
        """Smaller: where there are several jobs there are fewer, else smaller ones."""
        if self.jobs >= self.pods:
            return Shape(max(1, round(self.jobs * scale)), self.pods)
        pods = max(1, round(self.pods * scale)) if self.jobs == 1 else self.pods
        return Shape(max(1, round(self.jobs * scale)), pods)


SHAPES: Final = (Shape(10_000, 1), Shape(500, 20), Shape(20, 500), Shape(1, 10_000))


def parse(text: str) -> Shape:
    """The shape that ``JOBSxPODS`` writes.

    Raises:
        ValueError: it writes none.
    """
    jobs, by, pods = text.partition("x")
    if not (by and jobs.isdigit() and pods.isdigit() and int(jobs) and int(pods)):
        raise ValueError(f"a shape is JOBSxPODS, as 500x20, not {text!r}")
    return Shape(int(jobs), int(pods))


def nodes_for(pods: int) -> int:
    """How many nodes take so many pods at once."""
    return max(3, ceil(pods / PODS_PER_NODE) + 1)


def job_message(prefix: str, number: int, shape: Shape, seconds: float) -> job_pb2.Job:
    """One job, as it is sent; its pods last so many seconds."""
    template = {
        "metadata": {"annotations": {"hekla.io/simulate-duration": f"{seconds}s"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "main",
                    "image": "load",
                    "resources": {
                        "requests": {"cpu": f"{CPU_MILLIS}m", "memory": f"{MEMORY_MI}Mi"}
                    },
                }
            ],
        },
    }
    job = Job(
        metadata=ObjectMeta(name=name_of(prefix, number), namespace=NAMESPACE),
        spec=JobSpec(
            min_available=shape.pods,
            tasks=[TaskSpec(name="main", replicas=shape.pods, template=template)],
            ttl_seconds_after_finished=0 if is_removed(number) else None,
        ),
    )
    return to_message(job, job_pb2.Job)


def name_of(prefix: str, number: int) -> str:
    """What a job is called."""
    return f"{prefix}-{number:05d}"


def is_removed(number: int) -> bool:
    """Whether a job is one of those that are removed when they are over."""
    return number % REMOVED_EVERY == REMOVED_EVERY - 1
