"""RPCs of the flow service. None is served yet: each answers ``UNIMPLEMENTED``."""

from __future__ import annotations

from typing import Final

import grpc

from hekla.v1 import flow_service_pb2, flow_service_pb2_grpc

SERVICES: Final = (flow_service_pb2.DESCRIPTOR.services_by_name["JobFlowService"].full_name,)


class JobFlowServicer(flow_service_pb2_grpc.JobFlowServiceServicer):
    """Serves ``hekla.v1.JobFlowService``: what it does not define, its base refuses."""


def register(server: grpc.Server) -> None:
    """Add the services to ``server``."""
    servicer = JobFlowServicer()  # type: ignore[abstract] # see the class
    flow_service_pb2_grpc.add_JobFlowServiceServicer_to_server(servicer, server)
