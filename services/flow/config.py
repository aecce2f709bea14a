"""Settings of the flow service."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from hekla.config import setting
from hekla.rpc.service import ServiceConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowConfig(ServiceConfig):
    """The flow service: runs graphs of jobs."""

    listen: str = "127.0.0.1:50054"
    http_listen: str = "127.0.0.1:9104"

    controller: str = "127.0.0.1:50052"
    """Where the controller's gRPC server is."""

    webhook: str = "127.0.0.1:50051"
    """Where the webhook's gRPC server is."""

    database_direct_url: str = setting(env="HEKLA_DATABASE_DIRECT_URL", default="", secret=True)
    """Postgres past any pooling proxy, for LISTEN; empty if HEKLA_DATABASE_URL is direct."""

    kubeconfig: str = setting(env="KUBECONFIG", default="")
    """The kubeconfig file; empty takes the pod's own account, or ~/.kube/config; where there
    is none of them there are no custom resources either."""

    workers: int = setting(default=2, minimum=1)
    """Flows looked at at once."""

    claim_lease: timedelta = timedelta(seconds=10)
    """How long a flow is left to a worker that does not answer; longer than any one call."""

    max_requeue_num: int = setting(default=15, minimum=1)
    """After so many failed looks at a flow in a row its status says so; they go on."""

    pool_size: int = setting(default=6, minimum=4)
    """Connections to Postgres, one more for hints not counted."""
