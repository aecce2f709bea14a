"""What services ask the webhook before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from google.protobuf.message import Message

from hekla.api.convert import to_message, to_model
from hekla.api.cron_job import CronJob
from hekla.api.fields import Model
from hekla.api.job import Job
from hekla.api.job_flow import JobFlow
from hekla.api.job_template import JobTemplate
from hekla.api.pod_group import PodGroup
from hekla.api.queue import Queue
from hekla.domain.errors import DomainError, InvalidError, PreconditionError, Violation
from hekla.rpc.channel import connect, patiently
from hekla.rpc.errors import translated
from hekla.v1 import (
    admission_service_pb2 as messages,
    admission_service_pb2_grpc as stubs,
    cron_job_pb2,
    job_flow_pb2,
    job_pb2,
    job_template_pb2,
    pod_group_pb2,
    queue_pb2,
)

REVIEW_TIMEOUT_SECONDS: Final = 10.0
PATIENCE_SECONDS: Final = 1.0
"""For so long a webhook that is being started again is tried."""
LARGEST_BATCH: Final = 100
"""Objects reviewed in one call."""
CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"

Kind = TypeVar("Kind", bound=Model)

_KINDS: Final[Mapping[type[Model], tuple[str, type[Message]]]] = {
    Job: ("job", job_pb2.Job),
    Queue: ("queue", queue_pb2.Queue),
    JobFlow: ("job_flow", job_flow_pb2.JobFlow),
    JobTemplate: ("job_template", job_template_pb2.JobTemplate),
    CronJob: ("cron_job", cron_job_pb2.CronJob),
    PodGroup: ("pod_group", pod_group_pb2.PodGroup),
}
"""The field of a request that an object is in, and its message there."""


@dataclass(frozen=True, slots=True)
class Admitted(Generic[Kind]):
    """An object with its defaults, and what the user should be told."""

    object: Kind
    warnings: Sequence[str]


class Admission:
    """The webhook's word on objects. Each method has one reviewed.

    Raises:
        InvalidError: it is refused; all violations are in it.
        PreconditionError: it is refused for now; its queue is closed, for example.
        UnavailableError: the webhook does not answer.
    """

    def __init__(self, address: str, *, service: str | None = None) -> None:
        self._channel = connect(address, service=service)
        self._stub = stubs.AdmissionServiceStub(self._channel)

    def close(self) -> None:
        """Give the connection back."""
        self._channel.close()

    def job(self, operation: str, job: Job, old: Job | None = None) -> Admitted[Job]:
        """Have a job reviewed."""
        return self._reviewed(operation, job, old)

    def queue(self, operation: str, queue: Queue, old: Queue | None = None) -> Admitted[Queue]:
        """Have a queue reviewed."""
        return self._reviewed(operation, queue, old)

    def job_flow(
        self, operation: str, flow: JobFlow, old: JobFlow | None = None
    ) -> Admitted[JobFlow]:
        """Have a flow reviewed."""
        return self._reviewed(operation, flow, old)

    def job_template(
        self, operation: str, template: JobTemplate, old: JobTemplate | None = None
    ) -> Admitted[JobTemplate]:
        """Have a template reviewed."""
        return self._reviewed(operation, template, old)

    def cron_job(
        self, operation: str, cron_job: CronJob, old: CronJob | None = None
    ) -> Admitted[CronJob]:
        """Have a cron job reviewed."""
        return self._reviewed(operation, cron_job, old)

    def pod_group(
        self, operation: str, group: PodGroup, old: PodGroup | None = None
    ) -> Admitted[PodGroup]:
        """Have a pod group reviewed."""
        return self._reviewed(operation, group, old)

    def jobs(self, asked: Sequence[tuple[str, Job, Job | None]]) -> Sequence[Admitted[Job]]:
        """Have many jobs reviewed, each with its operation and what it replaces.

        They are in the order given; the first that is refused is told of, for all.
        """
        admitted = []
        for one in self.each_job(asked):
            if isinstance(one, DomainError):
                raise one
            admitted.append(one)
        return admitted

    def each_job(
        self, asked: Sequence[tuple[str, Job, Job | None]]
    ) -> Sequence[Admitted[Job] | DomainError]:
        """As :meth:`jobs`; of each that is refused it is said why, and the others stand."""
        requests = [_request(operation, new, old) for operation, new, old in asked]
        chunks = [
            requests[start : start + LARGEST_BATCH]
            for start in range(0, len(requests), LARGEST_BATCH)
        ]
        responses = [one for chunk in chunks for one in self._review(chunk)]
        return [_told(Job, response) for response in responses]

    def _reviewed(self, operation: str, new: Kind, old: Kind | None) -> Admitted[Kind]:
        [response] = self._review([_request(operation, new, old)])
        return _admitted(type(new), response)

    def _review(
        self, requests: Sequence[messages.AdmissionRequest]
    ) -> Sequence[messages.AdmissionResponse]:
        def call() -> messages.ReviewResponse:
            with translated("the webhook"):
                return self._stub.Review(
                    messages.ReviewRequest(requests=requests), timeout=REVIEW_TIMEOUT_SECONDS
                )

        return patiently(call, patience=PATIENCE_SECONDS).responses


def _request(operation: str, new: Model, old: Model | None) -> messages.AdmissionRequest:
    field, message = _KINDS[type(new)]
    objects: dict[str, Any] = {field: to_message(new, message)}
    if old is not None:
        objects[f"old_{field}"] = to_message(old, message)
    return messages.AdmissionRequest(operation=operation, **objects)


def _told(
    kind: type[Kind], response: messages.AdmissionResponse
) -> Admitted[Kind] | DomainError:
    try:
        return _admitted(kind, response)
    except DomainError as error:
        return error


def _admitted(kind: type[Kind], response: messages.AdmissionResponse) -> Admitted[Kind]:
    if not response.allowed:
        violations = [
            Violation(one.path, one.message, one.passing, one.rule, one.value)
            for one in response.violations
        ]
        if violations and all(one.passing for one in violations):
            raise PreconditionError("; ".join(str(one) for one in violations))
        raise InvalidError.of(violations)
    found = to_model(getattr(response, _KINDS[kind][0]), kind)
    return Admitted(found, list(response.warnings))
