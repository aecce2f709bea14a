"""The webhook through a socket, with queues in Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import grpc
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from hekla.api import convert
from hekla.api.job import Job
from hekla.api.queue import Queue
from hekla.domain.errors import InvalidError, UnavailableError
from hekla.domain.phases import QueueState
from hekla.rpc.channel import connect
from hekla.rpc.errors import translated
from hekla.rpc.server import serving
from hekla.store import queues
from hekla.store.database import Database
from hekla.v1 import (
    admission_service_pb2 as messages,
    admission_service_pb2_grpc,
    job_flow_pb2,
    job_pb2,
    job_template_pb2,
    queue_pb2,
)
from services.webhook.convert import LARGEST_BATCH
from services.webhook.rules.world import Limits
from services.webhook.servicer import SERVICES, AdmissionServicer
from tests.support.objects import (
    make_flow,
    make_job,
    make_queue,
    make_task,
    make_template,
    models,
)

Stub = admission_service_pb2_grpc.AdmissionServiceStub


@pytest.fixture
def webhook(database: Database) -> Iterator[Stub]:
    with database.transaction() as session:
        queues.make_well_known(session)

    def register(server: grpc.Server) -> None:
        admission_service_pb2_grpc.add_AdmissionServiceServicer_to_server(
            AdmissionServicer(database, Limits()), server
        )

    with (
        serving(register, listen="127.0.0.1:0", threads=4, services=SERVICES) as server,
        connect(server.address) as channel,
    ):
        yield Stub(channel)


def review(
    webhook: Stub, *requests: messages.AdmissionRequest
) -> list[messages.AdmissionResponse]:
    with translated():
        answer = webhook.Review(messages.ReviewRequest(requests=requests), timeout=10)
    return list(answer.responses)


def job_request(
    job: Job, operation: str = "CREATE", old: Job | None = None
) -> messages.AdmissionRequest:
    request = messages.AdmissionRequest(operation=operation)
    request.job.CopyFrom(convert.to_message(job, job_pb2.Job))
    if old is not None:
        request.old_job.CopyFrom(convert.to_message(old, job_pb2.Job))
    return request


def queue_request(
    queue: Queue, operation: str = "CREATE", old: Queue | None = None
) -> messages.AdmissionRequest:
    request = messages.AdmissionRequest(operation=operation)
    request.queue.CopyFrom(convert.to_message(queue, queue_pb2.Queue))
    if old is not None:
        request.old_queue.CopyFrom(convert.to_message(old, queue_pb2.Queue))
    return request


def paths(response: messages.AdmissionResponse) -> list[str]:
    return [violation.path for violation in response.violations]


def test_a_job_comes_back_complete(webhook: Stub) -> None:
    [answer] = review(webhook, job_request(make_job("j", make_task("", 3))))

    job = convert.to_model(answer.job, Job)
    assert answer.allowed
    assert job.spec.min_available == 3
    assert [task.name for task in job.spec.tasks or ()] == ["default0"]


def test_each_of_a_batch_has_its_own_answer_in_order(webhook: Stub) -> None:
    good, unreadable = job_request(make_job()), job_request(make_job())
    unreadable.job.spec.tasks[0].template_json = "{"

    answers = review(
        webhook,
        good,
        job_request(make_job(queue="nope")),
        unreadable,
        queue_request(make_queue("q", weight=0)),
        job_request(make_job(plugins={"svc": []})),
    )

    assert [answer.allowed for answer in answers] == [True, False, False, True, True]
    assert paths(answers[1]) == ["spec.queue"]
    assert paths(answers[2]) == ["spec.tasks[0].template"]
    assert answers[3].queue.spec.weight == 1
    assert "spec.plugins.svc" in answers[4].warnings[0]


def test_flows_and_templates_are_judged_too(webhook: Stub) -> None:
    flow = convert.to_message(make_flow(a="", b="a"), job_flow_pb2.JobFlow)
    other = convert.to_message(make_flow(a="", b=""), job_flow_pb2.JobFlow)
    template = convert.to_message(make_template(queue="nope"), job_template_pb2.JobTemplate)

    answers = review(
        webhook,
        messages.AdmissionRequest(operation="CREATE", job_flow=flow),
        messages.AdmissionRequest(operation="UPDATE", job_flow=other, old_job_flow=flow),
        messages.AdmissionRequest(operation="CREATE", job_template=template),
    )

    assert answers[0].allowed
    assert answers[0].job_flow == flow
    assert [paths(answer) for answer in answers] == [[], ["spec.flows"], ["spec.queue"]]


def test_queues_are_judged_as_postgres_has_them(webhook: Stub, database: Database) -> None:
    parent, child = make_queue("parent", weight=1), make_queue("child", parent="parent")
    with database.transaction() as session:
        queues.make(session, parent, uid=uuid4())
        queues.make(session, child, uid=uuid4())

    assert [
        answer.allowed
        for answer in review(
            webhook,
            job_request(make_job(queue="child")),
            job_request(make_job(queue="parent")),
            queue_request(parent, "DELETE"),
            queue_request(child, "DELETE"),
            queue_request(make_queue("parent", parent="child"), "UPDATE", parent),
        )
    ] == [True, False, False, True, False]

    with database.transaction() as session:
        queues.change(session, "child", state=QueueState.CLOSED)
    [closed] = review(webhook, job_request(make_job(queue="child")))
    assert "which is Closed" in closed.violations[0].message


def test_updates_are_compared_with_what_they_replace(webhook: Stub) -> None:
    old = make_job("j", make_task("t", 2))

    grown, changed = review(
        webhook,
        job_request(make_job("j", make_task("t", 3)), "UPDATE", old),
        job_request(make_job("j", make_task("u", 2)), "UPDATE", old),
    )

    assert grown.allowed
    assert paths(changed) == ["spec.tasks[0].name"]


@pytest.mark.parametrize(
    "requests",
    [
        [messages.AdmissionRequest(operation="CREATE")],
        [messages.AdmissionRequest(operation="PATCH", job=job_pb2.Job())],
        [
            messages.AdmissionRequest(
                operation="UPDATE", job=job_pb2.Job(), old_queue=queue_pb2.Queue()
            )
        ],
        [messages.AdmissionRequest()] * (LARGEST_BATCH + 1),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(
    webhook: Stub, requests: list[messages.AdmissionRequest]
) -> None:
    with pytest.raises(InvalidError):
        review(webhook, *requests)


def test_without_postgres_it_is_unavailable(webhook: Stub, database: Database) -> None:
    away = AdmissionServicer(Database("postgresql://127.0.0.1:1/none"), Limits())

    def register(server: grpc.Server) -> None:
        admission_service_pb2_grpc.add_AdmissionServiceServicer_to_server(away, server)

    with (
        serving(register, listen="127.0.0.1:0", threads=1, services=SERVICES) as server,
        grpc.insecure_channel(server.address) as channel,
        pytest.raises(UnavailableError),
    ):
        review(Stub(channel), job_request(make_job()))


def test_any_object_gets_an_answer(webhook: Stub) -> None:
    @settings(
        max_examples=40,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(models(Job), models(Queue), st.sampled_from(["CREATE", "UPDATE", "DELETE"]))
    def check(job: Job, queue: Queue, operation: str) -> None:
        answers = review(
            webhook,
            job_request(job, operation, job),
            queue_request(queue, operation, queue),
        )

        assert all(answer.allowed is not bool(answer.violations) for answer in answers)

    check()
