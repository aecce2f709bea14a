"""A job of one task, from the few words that most such jobs need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hekla.api.decode import decode
from hekla.api.job import Job
from hekla.domain.names import DEFAULT_QUEUE, JOB_API_VERSION, SCHEDULER_NAME

IMAGE: Final = "busybox"
REQUESTS: Final[Mapping[str, str]] = {"cpu": "1000m", "memory": "100Mi"}
"""What each pod gets if nothing is said, as Volcano's command has it."""


def simple_job(
    name: str = "",
    *,
    namespace: str = "default",
    generate_name: str = "",
    image: str = IMAGE,
    command: Sequence[str] = (),
    replicas: int = 1,
    min_available: int | None = None,
    queue: str = DEFAULT_QUEUE,
    requests: Mapping[str, str] = REQUESTS,
    limits: Mapping[str, str] = REQUESTS,
    env: Mapping[str, str] | None = None,
    priority_class_name: str | None = None,
    scheduler_name: str = SCHEDULER_NAME,
    max_retry: int | None = None,
    ttl_seconds_after_finished: int | None = None,
) -> Job:
    """``replicas`` pods of one container that runs ``command``, all together or not at all.

    Args:
        name: the job's name; or leave it out and give ``generate_name``, which the service
            completes.
        namespace: where it is made.
        generate_name: the beginning of a name.
        image: the container's image.
        command: program and arguments; those of the image if it is empty.
        replicas: how many pods.
        min_available: how many of them start together; all, if it is left out.
        queue: the queue it waits in.
        requests: what each pod asks for.
        limits: what each pod may use.
        env: variables of the container.
        priority_class_name: its rank.
        scheduler_name: who places its pods.
        max_retry: how often it may be restarted.
        ttl_seconds_after_finished: when it is deleted after its end.

    Raises:
        InvalidError: it is no job; the violations say where and why.
    """
    called = name or generate_name.rstrip("-.") or "main"
    container: dict[str, Any] = {
        "name": called[:63].rstrip("-.").replace(".", "-"),
        "image": image,
        "imagePullPolicy": "IfNotPresent",
    }
    if command:
        container["command"] = list(command)
    if env:
        container["env"] = [{"name": key, "value": value} for key, value in env.items()]
    if resources := {
        key: dict(found) for key, found in (("requests", requests), ("limits", limits)) if found
    }:
        container["resources"] = resources
    spec = {
        "schedulerName": scheduler_name,
        "queue": queue,
        "minAvailable": replicas if min_available is None else min_available,
        "priorityClassName": priority_class_name,
        "maxRetry": max_retry,
        "ttlSecondsAfterFinished": ttl_seconds_after_finished,
        "tasks": [
            {
                "replicas": replicas,
                "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
            }
        ],
    }
    metadata = {"name": name, "generateName": generate_name, "namespace": namespace}
    found = decode(
        {
            "apiVersion": JOB_API_VERSION,
            "kind": "Job",
            "metadata": {key: value for key, value in metadata.items() if value},
            "spec": {key: value for key, value in spec.items() if value is not None},
        }
    )
    assert isinstance(found, Job)
    return found
