"""The client: where the services are, and the calls by noun."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import timedelta
from functools import cached_property
from types import TracebackType
from typing import Final

import grpc

from hekla.client import endpoints
from hekla.client.calls import Caller
from hekla.client.job_flows import JobFlows
from hekla.client.job_templates import JobTemplates
from hekla.client.jobs import Jobs
from hekla.client.pod_groups import PodGroups
from hekla.client.queues import Queues
from hekla.client.scheduler import Scheduler
from hekla.rpc.channel import connect
from hekla.v1.job_flow_service_pb2_grpc import JobFlowServiceStub
from hekla.v1.job_service_pb2_grpc import JobServiceStub
from hekla.v1.job_template_service_pb2_grpc import JobTemplateServiceStub
from hekla.v1.pod_group_service_pb2_grpc import PodGroupServiceStub
from hekla.v1.queue_service_pb2_grpc import QueueServiceStub
from hekla.v1.scheduler_service_pb2_grpc import SchedulerServiceStub

TIMEOUT: Final = timedelta(seconds=30)
PATIENCE: Final = timedelta(seconds=5)


class Client:
    """Talks to a running system. Use it as a context manager, or call :meth:`close`."""

    def __init__(
        self,
        *,
        addresses: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
        timeout: timedelta = TIMEOUT,
        patience: timedelta = PATIENCE,
    ) -> None:
        """Take the settings; nothing is connected before the first call.

        Args:
            addresses: where services are, by name (``controller``, ``scheduler``, ``flow``);
                those left out are found by ``HEKLA_CONTROLLER`` and the like, or what
                ``hekla up`` wrote.
            environ: the environment to look in; this process' own by default.
            timeout: how long one call may take.
            patience: for how long a call is tried again while its service is away.
        """
        self._addresses = dict(addresses or {})
        self._environ = os.environ if environ is None else environ
        self._timeout = timeout
        self._patience = patience
        self._channels: dict[str, grpc.Channel] = {}
        self._open = ExitStack()
        self._closed = threading.Event()

    @cached_property
    def jobs(self) -> Jobs:
        """Calls of JobService."""
        return Jobs(JobServiceStub(self._channel("controller")), self._caller("controller"))

    @cached_property
    def queues(self) -> Queues:
        """Calls of QueueService."""
        return Queues(QueueServiceStub(self._channel("controller")), self._caller("controller"))

    @cached_property
    def pod_groups(self) -> PodGroups:
        """Calls of PodGroupService."""
        return PodGroups(
            PodGroupServiceStub(self._channel("controller")), self._caller("controller")
        )

    @cached_property
    def job_flows(self) -> JobFlows:
        """Calls of JobFlowService."""
        return JobFlows(JobFlowServiceStub(self._channel("flow")), self._caller("flow"))

    @cached_property
    def job_templates(self) -> JobTemplates:
        """Calls of JobTemplateService."""
        return JobTemplates(JobTemplateServiceStub(self._channel("flow")), self._caller("flow"))

    @cached_property
    def scheduler(self) -> Scheduler:
        """Calls of SchedulerService."""
        return Scheduler(
            SchedulerServiceStub(self._channel("scheduler")), self._caller("scheduler")
        )

    def close(self) -> None:
        """Hang up; streams that are read elsewhere end."""
        self._closed.set()
        self._open.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _address(self, service: str) -> str:
        return self._addresses.get(service) or endpoints.address(service, self._environ)

    def _channel(self, service: str) -> grpc.Channel:
        if service not in self._channels:
            channel = connect(self._address(service))
            self._channels[service] = self._open.enter_context(channel)
        return self._channels[service]

    def _caller(self, service: str) -> Caller:
        peer = f"the {service} at {self._address(service)}"
        return Caller(peer, closed=self._closed, timeout=self._timeout, patience=self._patience)
