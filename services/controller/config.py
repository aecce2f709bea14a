"""Settings of the controller."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from hekla.config import setting
from hekla.rpc.service import ServiceConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig(ServiceConfig):
    """The controller: drives jobs, pod groups and queues through their lives."""

    listen: str = "127.0.0.1:50052"
    http_listen: str = "127.0.0.1:9102"

    webhook: str = "127.0.0.1:50051"
    """Where the webhook's gRPC server is."""

    database_direct_url: str = setting(env="HEKLA_DATABASE_DIRECT_URL", default="", secret=True)
    """Postgres past any pooling proxy, for LISTEN; empty if HEKLA_DATABASE_URL is direct."""

    kubeconfig: str = setting(env="KUBECONFIG", default="")
    """The kubeconfig file; empty takes the pod's own account, or ~/.kube/config."""

    workers: int = setting(default=8, minimum=1)
    """Jobs looked at at once."""

    claim_lease: timedelta = timedelta(seconds=30)
    """How long a job is left to a worker that does not answer; longer than any one call."""

    max_requeue_num: int = setting(default=15, minimum=1)
    """After so many failed looks at a job in a row its owner is told; they go on."""

    pool_size: int = setting(default=10, minimum=4)
    """Connections to Postgres, one more for hints not counted."""

    mirror_statuses: int = setting(default=200, minimum=1)
    """Statuses of custom resources of one kind written in a second."""

    history_retention: timedelta = timedelta(days=90)
    """For how long removed jobs and their attempts are remembered at least."""
