"""Whatever is sent to whichever method: a clear answer, and nothing half done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, cast

import grpc
import pytest
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from sqlalchemy import text

from hekla.api.convert import to_message
from hekla.api.meta import ObjectMeta
from hekla.api.pod_group import PodGroup, PodGroupSpec
from hekla.domain.errors import NotFoundError
from hekla.v1 import (
    job_pb2,
    job_service_pb2,
    pod_group_pb2,
    pod_group_service_pb2,
    queue_service_pb2,
)
from tests.support.controller_scene import SOON, Driver, Scene, lead, message
from tests.support.hostile import messages, mutations
from tests.support.objects import make_job, make_policy, make_task

Code = grpc.StatusCode
SERVICES: Final = {
    "JobService": job_service_pb2,
    "QueueService": queue_service_pb2,
    "PodGroupService": pod_group_service_pb2,
}
METHODS: Final = [
    (service, method.name)
    for service, module in SERVICES.items()
    for method in module.DESCRIPTOR.services_by_name[service].methods
]
CLEAR: Final = frozenset(
    {
        Code.OK,
        Code.INVALID_ARGUMENT,
        Code.NOT_FOUND,
        Code.ALREADY_EXISTS,
        Code.FAILED_PRECONDITION,
        Code.ABORTED,
        Code.OUT_OF_RANGE,
        Code.RESOURCE_EXHAUSTED,
        Code.UNIMPLEMENTED,
    }
)
"""Answers that say what is wrong with the request, and not with us."""
WRITTEN: Final = ("job", "pod_group", "queue", "command", "request", "attempt", "work")
ANY_ORDER = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


class Prey:
    """A controller with some objects in it, for whoever wants to break it."""

    def __init__(self, served: Scene) -> None:
        self.served = served
        self.driver = Driver(served.database)
        self.database = served.database
        self.job = served.create(make_job("j", make_task("t", 2)))
        self.driver.start(self.job.metadata.uid)
        group = PodGroup(
            metadata=ObjectMeta(name="g", namespace="default"), spec=PodGroupSpec()
        )
        made = served.groups.CreatePodGroup(
            pod_group_service_pb2.CreatePodGroupRequest(
                pod_group=to_message(group, pod_group_pb2.PodGroup)
            ),
            timeout=SOON,
        ).pod_group
        page = served.jobs.ListJobs(job_service_pb2.ListJobsRequest(), timeout=SOON)
        self.bait = (self.job.metadata.uid, made.metadata.uid, page.cursor, "g", "j-t-0")
        self.epoch = lead(self.database)

    def rows(self) -> Mapping[str, int]:
        """How many rows each table has."""
        counts = ", ".join(f"(select count(*) from {table}) as {table}" for table in WRITTEN)
        with self.database.transaction() as session:
            return dict(session.execute(text(f"select {counts}")).one()._mapping)


@pytest.fixture(scope="module")
def prey(emptied: Scene) -> Prey:
    """One for all of these tests, whatever they do to it."""
    return Prey(emptied)


def outcome(act: Callable[[], Any], *, streams: bool) -> tuple[Code, str, Any]:
    """The code, what was said, and the answer or the first message of a stream."""
    try:
        answer = act()
        if streams:
            first = next(iter(answer), None)
            answer.cancel()
            return Code.OK, "", first
    except grpc.RpcError as error:
        refusal = cast("grpc.Call", error)
        return refusal.code(), refusal.details() or "", None
    return Code.OK, "", answer


def ask(served: Scene, service: str, method: str, request: Message) -> tuple[Code, str, Any]:
    stub = {"JobService": served.jobs, "QueueService": served.queues}.get(
        service, served.groups
    )
    return outcome(
        lambda: getattr(stub, method)(request, timeout=SOON),
        streams=method.startswith("Watch") or method == "GetLogs",
    )


@pytest.mark.parametrize(("service", "method"), METHODS, ids=[name for _, name in METHODS])
def test_any_request_has_a_clear_answer(prey: Prey, service: str, method: str) -> None:
    requests = messages(getattr(SERVICES[service], f"{method}Request"), *prey.bait)

    @ANY_ORDER
    @given(request=requests)
    def holds(request: Message) -> None:
        if method == "ReportScheduling":
            request.epoch = prey.epoch  # type: ignore[attr-defined]
        before = prey.rows()

        code, said, _ = ask(prey.served, service, method, request)

        assert code in CLEAR, said
        if code is not Code.OK:
            assert prey.rows() == before
            assert said

    holds()
    prey.driver.look(prey.job.metadata.uid)
    assert prey.served.get(prey.job).metadata.name == "j"


FILLED: Final = {"action": "AbortJob", "job": "j", "pod": "j-t-0"}
NAMES: Final = {"JobService": "j", "QueueService": "default", "PodGroupService": "g"}


def texts_of(cls: type[Message]) -> list[str]:
    """Fields of a request that hold texts."""
    return [
        field.name
        for field in cls.DESCRIPTOR.fields
        if field.cpp_type == field.CPPTYPE_STRING and not field.is_repeated
    ]


@pytest.mark.parametrize(("service", "method"), METHODS, ids=[name for _, name in METHODS])
def test_a_text_that_cannot_be_stored_is_told_of_as_such(
    prey: Prey, service: str, method: str
) -> None:
    request_of = getattr(SERVICES[service], f"{method}Request")
    for field in texts_of(request_of):
        request = request_of()
        for other in texts_of(request_of):
            setattr(request, other, FILLED.get(other, ""))
        if "name" in texts_of(request_of):
            request.name = NAMES[service]
        setattr(request, field, f"{getattr(request, field)}\0")

        code, said, _ = ask(prey.served, service, method, request)

        filtered = method.startswith("Watch") and field not in {"cursor", "label_selector"}
        expected = {Code.OK} if filtered else {Code.INVALID_ARGUMENT, Code.OUT_OF_RANGE}
        assert code in expected | {Code.UNIMPLEMENTED}, (field, said)


def a_rich_job() -> job_pb2.Job:
    return message(
        make_job(
            "rich",
            make_task(
                "a", 2, min_available=1, policies=[make_policy("RestartTask", event="*")]
            ),
            make_task("b", 1, max_retry=2),
            policies=[make_policy("AbortJob", events=["PodFailed"], timeout="1s")],
            plugins={"env": [], "svc": ["--x"]},
            min_available=2,
            max_retry=5,
            priority_class_name="high",
        )
    )


def test_a_job_that_is_let_in_can_be_run(prey: Prey) -> None:
    """However strange it is: it is refused, or its passes go well."""
    taken: list[str] = []

    @settings(ANY_ORDER, max_examples=60)
    @given(job=mutations(a_rich_job(), *prey.bait))
    def holds(job: job_pb2.Job) -> None:
        request = job_service_pb2.CreateJobRequest(job=job)
        code, said, answer = ask(prey.served, "JobService", "CreateJob", request)
        assert code in CLEAR, said
        if code is not Code.OK:
            return
        uid = answer.job.metadata.uid
        taken.append(uid)
        prey.driver.look(uid)
        if answer.job.spec.plugins.keys() <= {"env"}:
            prey.driver.admit(uid)
            prey.driver.look(uid)
        assert prey.served.get(answer.job).metadata.uid == uid
        prey.served.delete(answer.job)
        prey.driver.look(uid)
        prey.driver.pods.pods.clear()
        prey.driver.observer.take(prey.driver.pods.relist())
        prey.driver.look(uid)
        with pytest.raises(NotFoundError):
            prey.driver.job(uid)

    holds()
    assert taken, "some are let in"


def test_an_update_that_is_let_in_can_be_run(prey: Prey) -> None:
    made = prey.served.create(make_job("u", make_task("t", 2)))
    base = message(make_job("u", make_task("t", 2)))
    taken = []

    @settings(ANY_ORDER, max_examples=40)
    @given(job=mutations(base, *prey.bait))
    def holds(job: job_pb2.Job) -> None:
        request = job_service_pb2.UpdateJobRequest(job=job)
        code, said, _ = ask(prey.served, "JobService", "UpdateJob", request)
        assert code in CLEAR, said
        taken.append(code is Code.OK)
        prey.driver.look(made.metadata.uid)

    holds()
    assert any(taken)
    assert not all(taken)


@pytest.mark.parametrize(("service", "method"), METHODS, ids=[name for _, name in METHODS])
def test_bytes_that_are_no_message_are_refused(prey: Prey, service: str, method: str) -> None:
    streams = method.startswith("Watch") or method == "GetLogs"
    path = f"/hekla.v1.{service}/{method}"
    with grpc.insecure_channel(prey.served.address) as channel:
        make = channel.unary_stream if streams else channel.unary_unary
        raw: Callable[..., Any] = make(path, None, None)

        for data in (b"\xff", b"\x0a\x05a", b"\x00" * 100):
            code, said, _ = outcome(partial(raw, data, timeout=SOON), streams=streams)
            assert code in (Code.INVALID_ARGUMENT, Code.UNIMPLEMENTED), (data, said)


def test_a_message_that_is_too_large_is_refused(prey: Prey) -> None:
    job = message(make_job("large"))
    job.metadata.annotations["a"] = "x" * (17 * 2**20)
    request = job_service_pb2.CreateJobRequest(job=job)

    code, _, _ = ask(prey.served, "JobService", "CreateJob", request)

    assert code is Code.RESOURCE_EXHAUSTED
