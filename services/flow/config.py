"""Settings of the flow service."""

from __future__ import annotations

from dataclasses import dataclass

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
