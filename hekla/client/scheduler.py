"""Calls of SchedulerService."""

from __future__ import annotations

from dataclasses import dataclass

from hekla.client.calls import Caller
from hekla.v1 import scheduler_service_pb2 as pb
from hekla.v1.scheduler_service_pb2_grpc import SchedulerServiceStub


@dataclass(frozen=True, slots=True)
class SchedulerStatus:
    """Who leads, and how the last session went."""

    leading: bool
    holder: str
    epoch: int
    nodes: int
    pods: int
    pod_groups: int
    queues: int
    sessions: int
    last_session_seconds: float


class Scheduler:
    """What the scheduler sees."""

    def __init__(self, stub: SchedulerServiceStub, caller: Caller) -> None:
        self._stub = stub
        self._caller = caller

    def status(self) -> SchedulerStatus:
        """Who leads, and how the last session went."""
        found = self._caller.unary(self._stub.GetStatus, pb.GetStatusRequest())
        return SchedulerStatus(
            leading=found.leading,
            holder=found.holder,
            epoch=found.epoch,
            nodes=found.nodes,
            pods=found.pods,
            pod_groups=found.pod_groups,
            queues=found.queues,
            sessions=found.sessions,
            last_session_seconds=found.last_session_seconds,
        )
