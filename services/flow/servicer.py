"""RPCs of the flow service. None is served yet: each answers ``UNIMPLEMENTED``."""

from __future__ import annotations

from typing import Final

import grpc

from hekla.v1 import (
    cron_job_service_pb2,
    cron_job_service_pb2_grpc,
    job_flow_service_pb2,
    job_flow_service_pb2_grpc,
    job_template_service_pb2,
    job_template_service_pb2_grpc,
)

SERVICES: Final = (
    job_flow_service_pb2.DESCRIPTOR.services_by_name["JobFlowService"].full_name,
    job_template_service_pb2.DESCRIPTOR.services_by_name["JobTemplateService"].full_name,
    cron_job_service_pb2.DESCRIPTOR.services_by_name["CronJobService"].full_name,
)


class JobFlowServicer(job_flow_service_pb2_grpc.JobFlowServiceServicer):
    """Serves ``hekla.v1.JobFlowService``: what it does not define, its base refuses."""


class JobTemplateServicer(job_template_service_pb2_grpc.JobTemplateServiceServicer):
    """Serves ``hekla.v1.JobTemplateService``: what it does not define, its base refuses."""


class CronJobServicer(cron_job_service_pb2_grpc.CronJobServiceServicer):
    """Serves ``hekla.v1.CronJobService``: what it does not define, its base refuses."""


def register(server: grpc.Server) -> None:
    """Add the services to ``server``."""
    job_flow_service_pb2_grpc.add_JobFlowServiceServicer_to_server(
        JobFlowServicer(),  # type: ignore[abstract] # see the class
        server,
    )
    job_template_service_pb2_grpc.add_JobTemplateServiceServicer_to_server(
        JobTemplateServicer(),  # type: ignore[abstract] # see the class
        server,
    )
    cron_job_service_pb2_grpc.add_CronJobServiceServicer_to_server(
        CronJobServicer(),  # type: ignore[abstract] # see the class
        server,
    )
