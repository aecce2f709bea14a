"""What the rules may know beside the object, and what the installation decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hekla.api.queue import Queue
from hekla.domain.names import SCHEDULER_NAME


class World(Protocol):
    """The objects that exist."""

    def queue(self, name: str) -> Queue | None:
        """The queue of that name, if there is one."""

    def child_queues(self, name: str) -> Sequence[str]:
        """Names of the queues directly below ``name``."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an installation may choose."""

    scheduler_name: str = SCHEDULER_NAME
    """The scheduler of jobs that name none."""
    max_queue_depth: int = 5
    """How many queues may stand below each other, under root."""
    max_pods_per_job: int = 100_000
    """How many pods all tasks of a job may ask for together."""
    protect_root_queue: bool = True
    """Whether the resources of the root queue are frozen."""
