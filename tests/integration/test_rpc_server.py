"""A server's start and stop, its health, reflection, figures and addresses."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from prometheus_client import REGISTRY

from hekla.domain.errors import NotFoundError, UnavailableError
from hekla.rpc.channel import connect
from hekla.rpc.errors import translated
from hekla.rpc.listen import ListenError
from hekla.v1 import job_service_pb2, job_service_pb2_grpc
from tests.support.scripted import SERVICE, scene, scripted_server

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Gate:
    """A method that waits until the test lets it go."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.leave = threading.Event()

    def __call__(self, _: grpc.ServicerContext) -> job_service_pb2.GetJobResponse:
        self.entered.set()
        self.leave.wait(30)
        return job_service_pb2.GetJobResponse()


def _health(channel: grpc.Channel) -> Any:  # its types know no methods
    return health_pb2_grpc.HealthStub(channel)


def _handled(code: str) -> float:
    labels = {"method": f"{SERVICE}/GetJob", "code": code}
    return REGISTRY.get_sample_value("hekla_rpc_handled_total", labels) or 0


def test_health_is_told_for_the_server_and_each_service() -> None:
    with scene() as at:
        for name in ("", SERVICE):
            request = health_pb2.HealthCheckRequest(service=name)
            assert _health(at.channel).Check(request, timeout=20).status == SERVING


def test_reflection_lists_the_service_and_its_methods() -> None:
    with scene() as at:
        database = ProtoReflectionDescriptorDatabase(at.channel)

        assert SERVICE in database.get_services()
        file = database.FindFileContainingSymbol(SERVICE)

    [service] = [one for one in file.service if one.name == "JobService"]
    assert "GetJob" in [method.name for method in service.method]


def test_reflection_holds_no_thread_of_other_calls() -> None:
    with scene(threads=1) as at:
        talks = [ProtoReflectionDescriptorDatabase(at.channel) for _ in range(2)]
        for talk in talks:
            talk.get_services()

        at.get(timeout=20)


def test_calls_are_counted_by_method_and_code() -> None:
    fine, missing = _handled("OK"), _handled("NOT_FOUND")

    def get(_: grpc.ServicerContext) -> job_service_pb2.GetJobResponse:
        raise NotFoundError("no job")

    with scene() as at:
        at.get()
    with scene(get=get) as at, pytest.raises(NotFoundError), translated():
        at.get()

    assert (_handled("OK"), _handled("NOT_FOUND")) == (fine + 1, missing + 1)


def test_a_call_without_a_deadline_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with scene() as at, caplog.at_level(logging.WARNING):
        for timeout in (5, None, None):
            at.jobs.GetJob(job_service_pb2.GetJobRequest(), timeout=timeout)

    said = [record.message for record in caplog.records]
    assert said.count("call without a deadline") == 1


def test_a_call_whose_client_gave_up_while_it_queued_is_not_made() -> None:
    gate = Gate()
    entered: list[int] = []

    def get(context: grpc.ServicerContext) -> job_service_pb2.GetJobResponse:
        entered.append(1)
        return gate(context)

    with scene(get=get, threads=1) as at:
        request = job_service_pb2.GetJobRequest()
        first = at.jobs.GetJob.future(request, timeout=20)
        assert gate.entered.wait(20)
        second = at.jobs.GetJob.future(request, timeout=20)
        second.cancel()
        # What is said on a connection is heard in that order.
        ProtoReflectionDescriptorDatabase(at.channel).get_services()
        gate.leave.set()
        first.result()
        at.get()

    assert len(entered) == 2, "the first and the last"


def test_a_call_under_way_finishes_while_the_server_stops() -> None:
    gate = Gate()
    health: list[int] = []
    with ExitStack() as later, ThreadPoolExecutor() as threads:
        with ExitStack() as running:
            server = running.enter_context(
                scripted_server(get=gate, drain_timeout=timedelta(seconds=30))
            )
            channel = later.enter_context(connect(server.address))
            jobs = job_service_pb2_grpc.JobServiceStub(channel)
            call = jobs.GetJob.future(job_service_pb2.GetJobRequest(), timeout=30)
            assert gate.entered.wait(20)
            watched = _health(channel).Watch(health_pb2.HealthCheckRequest(), timeout=30)
            assert next(watched).status == SERVING
            stopping = threads.submit(running.pop_all().close)

        health.append(next(watched).status)
        assert not stopping.done()
        watched.cancel()
        gate.leave.set()

        assert call.result() == job_service_pb2.GetJobResponse()
        stopping.result(timeout=20)
    assert health == [NOT_SERVING]


def test_a_call_that_does_not_finish_in_time_is_cut_off() -> None:
    gate = Gate()
    with scripted_server(get=gate, drain_timeout=timedelta(seconds=0.2)) as server:
        channel = connect(server.address)
        call = job_service_pb2_grpc.JobServiceStub(channel).GetJob.future(
            job_service_pb2.GetJobRequest(), timeout=30
        )
        assert gate.entered.wait(20)

    with channel, pytest.raises(UnavailableError), translated():
        call.result()
    gate.leave.set()


def test_a_port_in_use_is_one_clear_line() -> None:
    with (
        scripted_server() as server,
        pytest.raises(ListenError) as raised,
        scripted_server(listen=server.address),
    ):
        pass

    assert str(raised.value) == f"cannot listen on {server.address}: address already in use"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("50051", "'50051' is not host:port"),
        ("localhost:http", "'localhost:http' is not host:port"),
        ("127.0.0.1:70000", "'127.0.0.1:70000' is not host:port"),
        ("203.0.113.1:50051", "cannot listen on 203.0.113.1:50051: cannot assign"),
        ("nowhere.invalid:1", "cannot listen on nowhere.invalid:1: "),
    ],
)
def test_an_address_that_cannot_be_is_one_clear_line(address: str, message: str) -> None:
    with pytest.raises(ListenError) as raised, scripted_server(listen=address):
        pass

    assert str(raised.value).startswith(message)


def test_a_unix_socket_serves_as_an_address(tmp_path: Path) -> None:
    socket = f"unix:{tmp_path}/s"

    with scene(listen=socket) as at:
        assert at.server.address == socket
        at.get()


def test_a_client_finds_a_service_that_was_started_again() -> None:
    with scripted_server() as server:
        address = server.address
        channel = connect(address)
        jobs = job_service_pb2_grpc.JobServiceStub(channel)
        jobs.GetJob(job_service_pb2.GetJobRequest(), timeout=20)
    with pytest.raises(UnavailableError), translated():
        jobs.GetJob(job_service_pb2.GetJobRequest(), timeout=20)

    with scripted_server(listen=address), channel:
        jobs.GetJob(job_service_pb2.GetJobRequest(), timeout=30, wait_for_ready=True)
