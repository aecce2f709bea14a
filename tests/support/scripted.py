"""A real server of JobService whose methods do what a test says, and a client of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final, NamedTuple

import grpc

from hekla.rpc.channel import connect
from hekla.rpc.server import Server, serving
from hekla.v1 import job_service_pb2, job_service_pb2_grpc

SERVICE: Final = "hekla.v1.JobService"

Get = Callable[[grpc.ServicerContext], job_service_pb2.GetJobResponse]
Watch = Callable[[grpc.ServicerContext], Iterator[job_service_pb2.WatchJobsResponse]]


class Scripted(job_service_pb2_grpc.JobServiceServicer):
    """Answers GetJob and WatchJobs as told; everything else is not served."""

    def __init__(self, get: Get | None, watch: Watch | None) -> None:
        self._get = get or (lambda _: job_service_pb2.GetJobResponse())
        self._watch = watch or (lambda _: iter(()))

    def GetJob(  # noqa: N802
        self, request: job_service_pb2.GetJobRequest, context: grpc.ServicerContext
    ) -> job_service_pb2.GetJobResponse:
        return self._get(context)

    def WatchJobs(  # noqa: N802
        self, request: job_service_pb2.WatchJobsRequest, context: grpc.ServicerContext
    ) -> Iterator[job_service_pb2.WatchJobsResponse]:
        return self._watch(context)


class Scene(NamedTuple):
    """What a test talks to."""

    server: Server
    channel: grpc.Channel
    jobs: job_service_pb2_grpc.JobServiceStub

    def get(self, *, timeout: float = 10) -> job_service_pb2.GetJobResponse:
        return self.jobs.GetJob(job_service_pb2.GetJobRequest(name="a"), timeout=timeout)

    def watch(self, *, timeout: float | None = 30) -> Any:
        return self.jobs.WatchJobs(job_service_pb2.WatchJobsRequest(), timeout=timeout)


@contextmanager
def scripted_server(
    *,
    get: Get | None = None,
    watch: Watch | None = None,
    listen: str = "127.0.0.1:0",
    threads: int = 4,
    drain_timeout: timedelta = timedelta(seconds=2),
    **options: Any,
) -> Iterator[Server]:
    """Serve until the block ends."""
    servicer = Scripted(get, watch)  # type: ignore[abstract] # the rest is not served
    with serving(
        lambda server: job_service_pb2_grpc.add_JobServiceServicer_to_server(servicer, server),
        listen=listen,
        threads=threads,
        services=[SERVICE],
        drain_timeout=drain_timeout,
        **options,
    ) as server:
        yield server


@contextmanager
def scene(**options: Any) -> Iterator[Scene]:
    """A scripted server and a client that is connected to it."""
    with scripted_server(**options) as server, connect(server.address) as channel:
        yield Scene(server, channel, job_service_pb2_grpc.JobServiceStub(channel))
