"""Settings of the scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from hekla.config import setting
from hekla.domain import names
from hekla.rpc.service import ServiceConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig(ServiceConfig):
    """The scheduler: decides which pod runs on which node, and when a group may start."""

    listen: str = "127.0.0.1:50053"
    http_listen: str = "127.0.0.1:9103"

    controller: str = "127.0.0.1:50052"
    """Where the controller's gRPC server is."""

    kubeconfig: Path | None = setting(default=None, env="KUBECONFIG")  # noqa: RUF009 - a field
    """How to reach Kubernetes; else by ~/.kube/config, or as a pod."""

    scheduler_name: str = names.SCHEDULER_NAME
    """Pods with this schedulerName are ours to place."""

    conf: Path | None = None
    """A volcano-scheduler.conf; it is read again when it changes. Else a default is used."""

    shared_volumes: bool = False
    """Every node reaches every volume: pods with claims may go to any node, or else wait."""

    schedule_period: timedelta = timedelta(seconds=1)
    """A session begins at least as often, whether anything happened or not."""

    coalesce_least: timedelta = timedelta(milliseconds=20)
    """How long a session waits for more events after the first."""

    coalesce_most: timedelta = timedelta(milliseconds=200)
    """How long after the last session it waits at most, while sessions take much time."""

    lease_ttl: timedelta = setting(default=timedelta(seconds=3), minimum=0.5)  # noqa: RUF009 - a field
    """How long a leader that vanished keeps others from leading."""

    stall_timeout: timedelta = setting(default=timedelta(seconds=5), minimum=1)  # noqa: RUF009 - a field
    """A scheduling thread that has not moved for so long loses the lease."""

    bind_timeout: timedelta = setting(default=timedelta(seconds=1), minimum=0.1)  # noqa: RUF009 - a field
    """How long a batch of binds may take before its stragglers are looked for."""

    bind_batch: int = setting(256, minimum=1)
    """Binds sent at once."""

    kube_concurrency: int = setting(32, minimum=1)
    """Requests to Kubernetes under way at once."""

    condition_rate: int = setting(50, minimum=1)
    """Pods a second that may be told in their status why they wait."""
