"""Between the messages of AdmissionService and what the rules judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hekla.api.convert import to_message, to_model
from hekla.api.job import Job
from hekla.api.queue import Queue
from hekla.domain.errors import InvalidError, Violation
from hekla.v1 import admission_service_pb2, job_pb2, meta_pb2, queue_pb2
from services.webhook.rules.admission import Admission, Operation, admit
from services.webhook.rules.world import Limits, World

LARGEST_BATCH: Final = 1000
"""Requests in one call."""


def operation(text: str) -> Operation:
    """The operation a request names.

    Raises:
        InvalidError: there is none of that name.
    """
    try:
        return Operation(text)
    except ValueError:
        known = ", ".join(Operation)
        raise InvalidError(f"the operation must be one of {known}, is {text!r}") from None


def review(
    request: admission_service_pb2.AdmissionRequest, world: World, limits: Limits
) -> admission_service_pb2.AdmissionResponse:
    """The answer to one request. An object that cannot be read is refused like a bad one.

    Raises:
        InvalidError: the request itself makes no sense.
    """
    asked = operation(request.operation)
    kind = request.WhichOneof("object")
    if kind is None:
        raise InvalidError("the request has no object")
    if request.WhichOneof("old_object") not in {None, f"old_{kind}"}:
        raise InvalidError(f"the old object must be a {kind} too")
    try:
        if kind == "job":
            old_job = _job(request.old_job) if request.HasField("old_job") else None
            return _answer(admit(asked, _job(request.job), old_job, world, limits))
        old_queue = _queue(request.old_queue) if request.HasField("old_queue") else None
        return _answer(admit(asked, _queue(request.queue), old_queue, world, limits))
    except InvalidError as error:
        return _refusal(error.violations, ())


def _job(message: job_pb2.Job) -> Job:
    return to_model(message, Job)


def _queue(message: queue_pb2.Queue) -> Queue:
    return to_model(message, Queue)


def _answer(
    admission: Admission[Job] | Admission[Queue],
) -> admission_service_pb2.AdmissionResponse:
    if not admission.allowed:
        return _refusal(admission.violations, admission.warnings)
    answer = admission_service_pb2.AdmissionResponse(allowed=True, warnings=admission.warnings)
    if isinstance(admission.object, Job):
        answer.job.CopyFrom(to_message(admission.object, job_pb2.Job))
    else:
        answer.queue.CopyFrom(to_message(admission.object, queue_pb2.Queue))
    return answer


def _refusal(
    violations: Sequence[Violation], warnings: Sequence[str]
) -> admission_service_pb2.AdmissionResponse:
    return admission_service_pb2.AdmissionResponse(
        allowed=False,
        violations=[
            meta_pb2.FieldViolation(path=each.path, message=each.message, passing=each.passing)
            for each in violations
        ],
        warnings=warnings,
    )
