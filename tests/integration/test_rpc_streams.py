"""Streams: they take nobody's threads, and every one of them ends."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import grpc
import pytest
from prometheus_client import REGISTRY

from hekla.domain.errors import ExhaustedError, UnavailableError
from hekla.rpc.callers import CallerLimits
from hekla.rpc.channel import connect
from hekla.rpc.errors import translated
from hekla.v1 import job_service_pb2, job_service_pb2_grpc
from tests.support.scripted import SERVICE, Scene, scene, scripted_server
from tests.support.waiting import wait_until

Message = job_service_pb2.WatchJobsResponse


class Feed:
    """A method that sends one message and then waits for its end, as a watch does."""

    def __init__(self, *, heeds: bool = True) -> None:
        self.ended = threading.Semaphore(0)
        self._heeds = heeds
        self._waiting: list[queue.SimpleQueue[Message | None]] = []

    def __call__(self, context: grpc.ServicerContext) -> Iterator[Message]:
        mine: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._waiting.append(mine)
        if self._heeds:
            context.add_callback(lambda: mine.put(None))
        try:
            yield Message(cursor="first")
            while (message := mine.get()) is not None:
                yield message
        finally:
            self.ended.release()

    def release(self) -> None:
        """Let every method that heeds nothing go."""
        for one in self._waiting:
            one.put(None)


def _open(at: Scene) -> Any:
    stream = at.watch()
    assert next(stream).cursor == "first"
    return stream


def _streams() -> float:
    value = REGISTRY.get_sample_value("hekla_rpc_streams", {"method": f"{SERVICE}/WatchJobs"})
    return value or 0


def test_streams_leave_the_threads_of_other_calls_alone() -> None:
    with scene(watch=Feed(), threads=1, stream_permits=8) as at:
        streams = [_open(at) for _ in range(8)]

        at.get(timeout=20)

        assert all(stream.is_active() for stream in streams)


def test_other_calls_leave_the_threads_of_streams_alone() -> None:
    leave = threading.Event()

    def get(_: grpc.ServicerContext) -> job_service_pb2.GetJobResponse:
        leave.wait(30)
        return job_service_pb2.GetJobResponse()

    with scene(watch=Feed(), get=get, threads=1) as at:
        request = job_service_pb2.GetJobRequest()
        calls = [at.jobs.GetJob.future(request, timeout=30) for _ in range(20)]

        _open(at)

        assert not any(call.done() for call in calls)
        leave.set()


def test_a_stream_too_many_is_refused_with_advice_until_another_ends() -> None:
    feed = Feed()
    before = _streams()
    with scene(watch=feed, stream_permits=2) as at:
        first, _second = _open(at), _open(at)

        with pytest.raises(ExhaustedError, match="2 streams are open") as raised, translated():
            next(at.watch())
        first.cancel()

        assert raised.value.retry_after is not None
        assert feed.ended.acquire(timeout=20)
        wait_until(lambda: _streams() == before + 1, what="the permit to be free")
        _open(at)


def test_however_many_streams_users_open_services_have_theirs_and_the_other_way_round() -> None:
    limits = CallerLimits(streams=2)
    with (
        scene(watch=Feed(), stream_permits=2, caller_limits=limits) as at,
        closing(connect(at.server.address, service="flow")) as channel,
    ):
        service = job_service_pb2_grpc.JobServiceStub(channel)
        request = job_service_pb2.WatchJobsRequest()
        users = [_open(at), _open(at)]

        ours = [service.WatchJobs(request, timeout=20) for _ in range(2)]

        assert [next(stream).cursor for stream in ours] == ["first", "first"]
        with pytest.raises(ExhaustedError, match="has 2 streams open"), translated():
            next(at.watch())
        users[0].cancel()
        wait_until(lambda: _opens(at), what="the user's permit to be free")


def _opens(at: Scene) -> bool:
    try:
        return bool(_open(at))
    except grpc.RpcError:
        return False


def test_a_stream_is_freed_when_its_client_goes() -> None:
    feed = Feed()
    before = _streams()
    with scene(watch=feed) as at:
        with connect(at.server.address) as other:
            jobs = job_service_pb2_grpc.JobServiceStub(other)
            stream = jobs.WatchJobs(job_service_pb2.WatchJobsRequest())
            next(stream)
            assert _streams() == before + 1

        assert feed.ended.acquire(timeout=20), "the method was told"
        wait_until(lambda: _streams() == before, what="the stream to be gone")


def test_a_client_that_does_not_read_is_cut_off() -> None:
    ended = threading.Event()

    def flood(_: grpc.ServicerContext) -> Iterator[Message]:
        try:
            while True:
                yield Message(cursor="x" * 100_000)
        finally:
            ended.set()

    with scene(watch=flood, stall_timeout=timedelta(seconds=0.5)) as at:
        stream = at.watch()
        next(stream)

        assert ended.wait(20), "the method's thread is free again"
        with pytest.raises(UnavailableError), translated():
            for _ in stream:
                pass


def test_a_slow_reader_is_not_cut_off() -> None:
    count = 120  # for longer than the time-out in all, if never at once

    def watch(_: grpc.ServicerContext) -> Iterator[Message]:
        for number in range(count):
            yield Message(cursor=f"{number} " + "x" * 100_000)

    pause = threading.Event()
    with scene(watch=watch, stall_timeout=timedelta(seconds=2)) as at:
        got = 0
        for _ in at.watch():
            got += 1
            pause.wait(0.02)

    assert got == count


def test_streams_end_when_the_server_stops_and_their_clients_may_resume() -> None:
    feed = Feed()
    with scripted_server(watch=feed) as server:
        channel = connect(server.address)
        stream = job_service_pb2_grpc.JobServiceStub(channel).WatchJobs(
            job_service_pb2.WatchJobsRequest()
        )
        assert next(stream).cursor == "first"

    with channel, pytest.raises(UnavailableError, match="resume"), translated():
        next(stream)
    assert feed.ended.acquire(timeout=20)


def test_a_stream_that_heeds_nothing_does_not_keep_the_server_from_stopping() -> None:
    feed = Feed(heeds=False)
    stopped = threading.Event()
    may_stop = threading.Event()
    address: queue.SimpleQueue[str] = queue.SimpleQueue()

    def serve() -> None:
        with scripted_server(watch=feed, drain_timeout=timedelta(seconds=1)) as server:
            address.put(server.address)
            may_stop.wait(30)
        stopped.set()

    thread = threading.Thread(target=serve)
    thread.start()
    with connect(address.get(timeout=20)) as channel:
        stream = job_service_pb2_grpc.JobServiceStub(channel).WatchJobs(
            job_service_pb2.WatchJobsRequest()
        )
        next(stream)
        may_stop.set()

        assert stopped.wait(20), "the server stopped"
        with pytest.raises(UnavailableError), translated():
            next(stream)
    feed.release()
    thread.join()
