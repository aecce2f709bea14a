"""What the rules may know beside the object, and what the installation decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from hekla.api.queue import Queue
from hekla.domain.names import SCHEDULER_NAME
from hekla.domain.resources import Resources
from services.webhook.rules.resource_groups import ResourceGroup

VOLUME_WITHOUT_CLAIM: Final = "volume-without-claim"
COMPATIBLE: Final = (VOLUME_WITHOUT_CLAIM,)
"""Where an installation may choose to be as Volcano is; rows of docs/differences.md."""


class World(Protocol):
    """The objects that exist."""

    def queue(self, name: str) -> Queue | None:
        """The queue of that name, if there is one."""

    def child_queues(self, name: str) -> Sequence[str]:
        """Names of the queues directly below ``name``."""

    def staying_queues(self, name: str) -> Sequence[str]:
        """Those of the queues directly below ``name`` that are not on their way out."""

    def running_pods(self, queue: str) -> int:
        """How many pods run in a queue."""

    def hierarchies(self) -> Mapping[str, str]:
        """Queues that have the annotation ``volcano.sh/hierarchy``, with its value."""

    def namespace_annotations(self, name: str) -> Mapping[str, str]:
        """The annotations of a namespace; none if it is not known."""

    def nodes(self) -> Iterable[Resources]:
        """What nodes have for pods, each shape once; none if no node is known."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an installation may choose."""

    scheduler_name: str = SCHEDULER_NAME
    """The scheduler of jobs that name none, and whose pods are ours."""
    max_queue_depth: int = 5
    """How many queues may stand below each other, under root."""
    max_pods_per_job: int = 100_000
    """How many pods all tasks of a job may ask for together."""
    protect_root_queue: bool = True
    """Whether the resources of the root queue are frozen."""
    protect_used_queues: bool = False
    """Whether a queue in which pods run may not be deleted."""
    extra_warns: bool = False
    """Whether rules that Volcano does not have only warn."""
    resource_groups: tuple[ResourceGroup, ...] = ()
    """What gives pods a place to run, the first that matches."""
    compat: frozenset[str] = frozenset()
    """Names out of ``COMPATIBLE`` for which Volcano's way is taken."""
    off: frozenset[str] = frozenset()
    """Names of rules that are not asked."""
