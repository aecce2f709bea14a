"""``env``: tells each container its pod's index in the task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hekla.api.job import Job, TaskSpec

VARIABLES: Final = ("VC_TASK_INDEX", "VK_TASK_INDEX")
"""The second is the name of old; manifests still read it."""


class Env:
    """Adds the variables to containers and init containers."""

    name = "env"

    def on_pod(
        self,
        pod: dict[str, Any],
        job: Job,
        task: TaskSpec,
        index: int,
        arguments: Sequence[str],
    ) -> None:
        """Add the variables; what the template sets under the same name is replaced."""
        del job, task, arguments
        spec = pod["spec"]
        for container in [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]:
            kept = [
                one for one in container.get("env") or [] if one.get("name") not in VARIABLES
            ]
            added = [{"name": name, "value": str(index)} for name in VARIABLES]
            container["env"] = [*kept, *added]
