"""Commands run in this process against a controller at an address, and what to send it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import yaml
from click.testing import CliRunner, Result

from hekla.api.decode import decode
from hekla.api.job import Job
from hekla.cli.main import main
from hekla.client import Client
from tests.support.controller import Controller

JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "job-1", "namespace": "default"},
    "spec": {
        "queue": "test",
        "minAvailable": 1,
        "tasks": [
            {
                "name": "nginx",
                "replicas": 1,
                "template": {"spec": {"containers": [{"name": "c", "ports": [2222]}]}},
            }
        ],
    },
}
QUEUE = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "test"},
}


def run(address: str, *args: str, stdin: str | None = None) -> Result:
    environ = {"HEKLA_CONTROLLER": address}
    return CliRunner().invoke(main, list(args), obj=environ, input=stdin)


@contextmanager
def running(address: str, *args: str) -> Iterator[list[Result]]:
    """Run a command beside the block; its result is there after the block."""
    results: list[Result] = []
    thread = threading.Thread(target=lambda: results.append(run(address, *args)))
    thread.start()
    try:
        yield results
    finally:
        thread.join(30)
        assert results, "the command did not end"


def manifest(*objects: object) -> str:
    return "---\n".join(yaml.safe_dump(one) for one in objects)


def job(name: str = "job-1", **spec: object) -> dict[str, object]:
    return {
        **JOB,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**JOB["spec"], **spec},  # type: ignore[dict-item]
    }


def submit(served: Controller, client: Client, name: str = "job-1") -> Job:
    made = decode(job(name))
    assert isinstance(made, Job)
    return client.jobs.create(made).object
