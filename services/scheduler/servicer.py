"""RPCs of the scheduler. What is not served yet is left to the base class, which says so."""

from __future__ import annotations

from typing import Final

import grpc

from hekla.v1 import scheduler_service_pb2, scheduler_service_pb2_grpc
from services.scheduler.cache import Cache
from services.scheduler.campaign import Campaign
from services.scheduler.events import Kind
from services.scheduler.loop import Figures

SERVICES: Final = (
    scheduler_service_pb2.DESCRIPTOR.services_by_name["SchedulerService"].full_name,
)


class SchedulerServicer(scheduler_service_pb2_grpc.SchedulerServiceServicer):
    """Serves ``hekla.v1.SchedulerService``: what it does not define, its base refuses."""

    def __init__(self, cache: Cache, campaign: Campaign, figures: Figures) -> None:
        self._cache = cache
        self._campaign = campaign
        self._figures = figures

    def GetStatus(
        self, request: scheduler_service_pb2.GetStatusRequest, context: grpc.ServicerContext
    ) -> scheduler_service_pb2.GetStatusResponse:
        del request, context
        figures, campaign, size = self._figures, self._campaign, self._cache.size
        return scheduler_service_pb2.GetStatusResponse(
            leading=figures.leading,
            holder=campaign.leader,
            epoch=campaign.leader_epoch,
            nodes=size(Kind.NODE),
            pods=size(Kind.POD),
            pod_groups=size(Kind.GROUP),
            queues=size(Kind.QUEUE),
            sessions=figures.sessions,
            last_session_seconds=figures.last_session_seconds,
        )


def register(server: grpc.Server, cache: Cache, campaign: Campaign, figures: Figures) -> None:
    """Add the service to ``server``."""
    servicer = SchedulerServicer(cache, campaign, figures)  # type: ignore[abstract] # see there
    scheduler_service_pb2_grpc.add_SchedulerServiceServicer_to_server(servicer, server)
