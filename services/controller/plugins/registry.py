"""Job plugins by the name a job calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from hekla.api.job import Job, TaskSpec
from services.controller.plugins.env import Env


class JobPlugin(Protocol):
    """Changes a job's pods before they are made."""

    name: str

    def on_pod(
        self,
        pod: dict[str, Any],
        job: Job,
        task: TaskSpec,
        index: int,
        arguments: Sequence[str],
    ) -> None:
        """Change ``pod``, which is the pod at ``index`` of ``task``."""


PLUGINS: Final[Mapping[str, JobPlugin]] = {
    Env.name: Env(),
}
