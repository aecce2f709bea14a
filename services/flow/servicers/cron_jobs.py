"""CronJobService. No method is served yet: each answers ``UNIMPLEMENTED``."""

from __future__ import annotations

from hekla.v1 import cron_job_service_pb2_grpc as stubs


class CronJobServicer(stubs.CronJobServiceServicer):
    """Serves ``hekla.v1.CronJobService``: what it does not define, its base refuses."""
