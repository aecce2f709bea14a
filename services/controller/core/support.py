"""What a job may ask for that is not built yet: it waits rather than run without it.

When a feature is built its line goes, here and in the webhook's warnings.
"""

from __future__ import annotations

from collections.abc import Iterator

from hekla.api.job import Job
from services.controller.plugins.registry import PLUGINS


def unsupported(job: Job) -> str:
    """The fields that the job needs and that do nothing yet; empty if there are none."""
    return ", ".join(_fields(job))


def _fields(job: Job) -> Iterator[str]:
    for plugin in job.spec.plugins or {}:
        if plugin not in PLUGINS:
            yield f"spec.plugins.{plugin}"
    for index, volume in enumerate(job.spec.volumes or []):
        if volume.volume_claim_name or volume.volume_claim is not None:
            yield f"spec.volumes[{index}]"
    for index, task in enumerate(job.spec.tasks or []):
        if task.depends_on is not None and task.depends_on.name:
            yield f"spec.tasks[{index}].dependsOn"
