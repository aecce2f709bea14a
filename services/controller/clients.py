"""What the controller calls: the webhook, before anything is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from hekla.api.convert import to_message, to_model
from hekla.api.job import Job
from hekla.api.queue import Queue
from hekla.domain.errors import InvalidError, PreconditionError, Violation
from hekla.rpc.channel import connect, patiently
from hekla.rpc.errors import translated
from hekla.v1 import (
    admission_service_pb2 as messages,
    admission_service_pb2_grpc as stubs,
    job_pb2,
    queue_pb2,
)

REVIEW_TIMEOUT_SECONDS: Final = 10.0
PATIENCE_SECONDS: Final = 1.0
"""For so long a webhook that is being started again is tried."""
CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"


class AdmittedJob(NamedTuple):
    """A job with its defaults, and what the user should be told."""

    job: Job
    warnings: Sequence[str]


class AdmittedQueue(NamedTuple):
    """A queue with its defaults, and what the user should be told."""

    queue: Queue
    warnings: Sequence[str]


class Admission:
    """The webhook's word on jobs and queues."""

    def __init__(self, address: str) -> None:
        self._channel = connect(address)
        self._stub = stubs.AdmissionServiceStub(self._channel)

    def close(self) -> None:
        """Give the connection back."""
        self._channel.close()

    def job(self, operation: str, job: Job, old: Job | None = None) -> AdmittedJob:
        """Have a job reviewed.

        Raises:
            InvalidError: it is refused; all violations are in it.
            PreconditionError: it is refused for now; its queue is closed, for example.
            UnavailableError: the webhook does not answer.
        """
        request = messages.AdmissionRequest(
            operation=operation, job=to_message(job, job_pb2.Job)
        )
        if old is not None:
            request.old_job.CopyFrom(to_message(old, job_pb2.Job))
        response = self._review(request)
        return AdmittedJob(to_model(response.job, Job), list(response.warnings))

    def queue(self, operation: str, queue: Queue, old: Queue | None = None) -> AdmittedQueue:
        """Have a queue reviewed.

        Raises:
            InvalidError: it is refused; all violations are in it.
            UnavailableError: the webhook does not answer.
        """
        request = messages.AdmissionRequest(
            operation=operation, queue=to_message(queue, queue_pb2.Queue)
        )
        if old is not None:
            request.old_queue.CopyFrom(to_message(old, queue_pb2.Queue))
        response = self._review(request)
        return AdmittedQueue(to_model(response.queue, Queue), list(response.warnings))

    def _review(self, request: messages.AdmissionRequest) -> messages.AdmissionResponse:
        def call() -> messages.ReviewResponse:
            with translated("the webhook"):
                return self._stub.Review(
                    messages.ReviewRequest(requests=[request]), timeout=REVIEW_TIMEOUT_SECONDS
                )

        response = patiently(call, patience=PATIENCE_SECONDS).responses[0]
        if not response.allowed:
            violations = [
                Violation(one.path, one.message, one.passing) for one in response.violations
            ]
            if violations and all(one.passing for one in violations):
                raise PreconditionError("; ".join(str(one) for one in violations))
            raise InvalidError.of(violations)
        return response
