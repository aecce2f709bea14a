"""RPCs of the webhook."""

from __future__ import annotations

from typing import Final

import grpc

from hekla.domain.errors import InvalidError
from hekla.store.database import Database
from hekla.v1 import admission_service_pb2, admission_service_pb2_grpc
from services.webhook import convert
from services.webhook.rules.world import Limits
from services.webhook.world import UNKNOWN, Cluster, StoredWorld

SERVICES: Final = (
    admission_service_pb2.DESCRIPTOR.services_by_name["AdmissionService"].full_name,
)


class AdmissionServicer(admission_service_pb2_grpc.AdmissionServiceServicer):
    """Serves ``hekla.v1.AdmissionService``."""

    def __init__(self, database: Database, limits: Limits, cluster: Cluster = UNKNOWN) -> None:
        self._database = database
        self._limits = limits
        self._cluster = cluster

    def Review(
        self,
        request: admission_service_pb2.ReviewRequest,
        context: grpc.ServicerContext,
    ) -> admission_service_pb2.ReviewResponse:
        if len(request.requests) > convert.LARGEST_BATCH:
            raise InvalidError(
                f"a call may hold {convert.LARGEST_BATCH} requests, has {len(request.requests)}"
            )
        world = StoredWorld(self._database, self._cluster)
        responses = [convert.review(each, world, self._limits) for each in request.requests]
        return admission_service_pb2.ReviewResponse(responses=responses)
