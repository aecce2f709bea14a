"""What the world has to know of the plugins that are enabled."""

from __future__ import annotations

from collections.abc import Sequence, Set as AbstractSet
from typing import Protocol

from services.scheduler.core.groups import GroupState
from services.scheduler.core.occupancy import Tracker


class Adopted(Protocol):
    """The plugins that pods are sorted for."""

    @property
    def reads(self) -> AbstractSet[str]:
        """The parts of pods that they read."""
        ...

    @property
    def reads_labels(self) -> AbstractSet[str]:
        """The labels of pods that they read."""
        ...

    @property
    def trackers(self) -> Sequence[Tracker]:
        """Who is told of every pod that comes to or leaves a node."""
        ...

    def job_ready(self, group: GroupState) -> bool:
        """Whether what the job needs to run is in place."""
        ...
