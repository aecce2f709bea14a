"""Settings of the webhook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hekla.config import setting
from hekla.domain.names import SCHEDULER_NAME
from hekla.rpc.service import ServiceConfig
from services.webhook.rules.world import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookConfig(ServiceConfig):
    """The webhook: admits objects and fills in their defaults."""

    listen: str = "127.0.0.1:50051"
    http_listen: str = "127.0.0.1:9101"

    scheduler_name: str = SCHEDULER_NAME
    """The scheduler of jobs that name none."""

    max_queue_depth: int = setting(default=5, minimum=1)
    """How many queues may stand below each other, under root."""

    max_pods_per_job: int = setting(default=100_000, minimum=1)
    """How many pods all tasks of a job may ask for together."""

    protect_root_queue: bool = True
    """Whether the resources of the root queue are frozen."""

    protect_used_queues: bool = False
    """Whether a queue in which pods run may not be deleted."""

    admission_extra: Literal["deny", "warn"] = "deny"
    """What rules do that Volcano does not have."""

    compat: tuple[str, ...] = ()
    """Differences from Volcano to take back, by the names of docs/differences.md:
    volume-without-claim."""

    @property
    def limits(self) -> Limits:
        """What the rules are to hold objects to."""
        return Limits(
            scheduler_name=self.scheduler_name,
            max_queue_depth=self.max_queue_depth,
            max_pods_per_job=self.max_pods_per_job,
            protect_root_queue=self.protect_root_queue,
            protect_used_queues=self.protect_used_queues,
            extra_warns=self.admission_extra == "warn",
            compat=frozenset(self.compat),
        )
