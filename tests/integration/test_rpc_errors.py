"""What goes wrong in a method reaches its caller as what it was, through a real socket."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, NoReturn

import grpc
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from hekla.domain.errors import (
    ConflictError,
    DomainError,
    ExhaustedError,
    InvalidError,
    NotServedError,
    UnavailableError,
    Violation,
)
from hekla.rpc.channel import connect
from hekla.rpc.errors import STATUS, translated
from hekla.v1 import job_service_pb2, job_service_pb2_grpc
from tests.support.scripted import SERVICE, Scene, scene


def error_of(error: Exception) -> DomainError:
    """What a caller gets of a method that raises ``error``."""

    def get(_: grpc.ServicerContext) -> NoReturn:
        raise error

    with scene(get=get) as at, pytest.raises(DomainError) as raised, translated():
        at.get()
    return raised.value


@pytest.mark.parametrize("kind", STATUS)
def test_every_error_of_the_domain_arrives_as_itself(kind: type[DomainError]) -> None:
    got = error_of(kind("job default/a: no"))

    # Unavailable is told apart from a peer that is away.
    assert type(got) is kind
    assert str(got) == "job default/a: no"


def test_no_two_errors_share_a_status() -> None:
    assert len(set(STATUS.values())) == len(STATUS)


def test_violations_arrive_with_their_paths() -> None:
    violations = [
        Violation("spec.tasks[0].replicas", "must be >= 0, is -1"),
        Violation("", "é"),
    ]

    got = error_of(InvalidError.of(violations))

    assert isinstance(got, InvalidError)
    assert list(got.violations) == violations


def test_more_violations_than_fit_are_counted() -> None:
    violations = [Violation(f"spec.täsks[{n}].name", "ungültig " * 20) for n in range(1000)]

    got = error_of(InvalidError.of(violations))

    assert isinstance(got, InvalidError)
    *shown, last = got.violations
    assert shown
    assert shown[0].path == violations[0].path
    assert last.message == f"and {1000 - len(shown)} more"


def test_advice_on_when_to_try_again_arrives() -> None:
    got = error_of(ExhaustedError("full", retry_after=timedelta(seconds=2.5)))

    assert isinstance(got, ExhaustedError)
    assert got.retry_after == timedelta(seconds=2.5)


class Texts:
    """A method that raises what the test says next."""

    text = ""

    def __call__(self, _: grpc.ServicerContext) -> NoReturn:
        raise ConflictError(self.text)


@pytest.fixture(scope="module")
def texts() -> Texts:
    return Texts()


@pytest.fixture(scope="module")
def conflicting(texts: Texts) -> Iterator[Scene]:
    with scene(get=texts) as at:
        yield at


@given(text=st.text(st.characters(exclude_categories=()), min_size=1, max_size=3000))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_message_of_any_characters_and_length_arrives_as_its_kind(
    text: str, texts: Texts, conflicting: Scene
) -> None:
    texts.text = text

    with pytest.raises(ConflictError) as raised, translated():
        conflicting.get()

    sent = text.encode("utf-8", "replace").decode()
    got = str(raised.value)
    assert got == sent or (got.endswith("…") and sent.startswith(got[:-1]))


def test_an_error_of_ours_is_logged_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        got = error_of(KeyError("password"))

    assert type(got) is DomainError
    assert "password" not in str(got)
    [record] = [one for one in caplog.records if one.exc_info]
    assert "password" in str(record.exc_info)
    assert vars(record)["method"] == f"{SERVICE}/GetJob"


def test_a_method_that_is_not_written_is_said_to_be_not_served() -> None:
    refused = pytest.raises(NotServedError, match="CreateJob is not yet served")
    with scene() as at, refused, translated():
        at.jobs.CreateJob(job_service_pb2.CreateJobRequest(), timeout=10)


def test_an_error_in_the_middle_of_a_stream_arrives_after_what_was_sent() -> None:
    def watch(_: grpc.ServicerContext) -> Iterator[job_service_pb2.WatchJobsResponse]:
        yield job_service_pb2.WatchJobsResponse(cursor="1")
        raise ConflictError("later")

    got: list[str] = []
    with scene(watch=watch) as at, pytest.raises(ConflictError, match="later"), translated():
        got.extend(message.cursor for message in at.watch())

    assert got == ["1"]


def _get(channel: grpc.Channel, data: bytes) -> None:
    call: Any = channel.unary_unary(f"/{SERVICE}/GetJob")
    call(data, timeout=10)


def _watch(channel: grpc.Channel, data: bytes) -> None:
    call: Any = channel.unary_stream(f"/{SERVICE}/WatchJobs")
    list(call(data, timeout=10))


@pytest.mark.parametrize("call", [_get, _watch])
def test_bytes_that_are_no_message_are_the_callers_fault(
    call: Callable[[grpc.Channel, bytes], None],
) -> None:
    with scene() as at, pytest.raises(InvalidError, match="malformed"), translated():
        call(at.channel, b"\xff\xff\xff")


def test_a_message_that_is_too_large_is_refused() -> None:
    with scene() as at, pytest.raises(ExhaustedError), translated():
        at.jobs.GetJob(job_service_pb2.GetJobRequest(name="x" * 17 * 2**20), timeout=10)


def test_a_service_that_is_away_is_named() -> None:
    with connect("127.0.0.1:1") as channel:
        jobs = job_service_pb2_grpc.JobServiceStub(channel)
        with pytest.raises(UnavailableError) as raised, translated("the controller"):
            jobs.GetJob(job_service_pb2.GetJobRequest(), timeout=10)

    assert str(raised.value) == "the controller cannot be reached: connection refused"


def test_a_service_that_does_not_answer_is_named() -> None:
    asked = threading.Event()

    def get(_: grpc.ServicerContext) -> job_service_pb2.GetJobResponse:
        asked.wait(30)
        return job_service_pb2.GetJobResponse()

    with scene(get=get) as at:
        with pytest.raises(UnavailableError) as raised, translated("the controller"):
            at.get(timeout=0.2)
        asked.set()

    assert str(raised.value) == "the controller did not answer in time"
