"""Between the messages of AdmissionService and what the rules judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from google.protobuf.message import Message

from hekla.api.convert import to_message, to_model
from hekla.api.cron_job import CronJob
from hekla.api.fields import Model
from hekla.api.hyper_node import HyperNode
from hekla.api.job import Job
from hekla.api.job_flow import JobFlow
from hekla.api.job_template import JobTemplate
from hekla.api.pod_group import PodGroup
from hekla.api.queue import Queue
from hekla.domain.errors import InvalidError, Violation
from hekla.v1 import (
    admission_service_pb2,
    cron_job_pb2,
    hyper_node_pb2,
    job_flow_pb2,
    job_pb2,
    job_template_pb2,
    meta_pb2,
    pod_group_pb2,
    queue_pb2,
)
from services.webhook.rules.admission import Operation, admit
from services.webhook.rules.world import Limits, World

Kind = TypeVar("Kind", bound=Model)

LARGEST_BATCH: Final = 1000
"""Requests in one call."""

Review = Callable[
    [Operation, admission_service_pb2.AdmissionRequest, World, Limits],
    admission_service_pb2.AdmissionResponse,
]


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
        return REVIEWS[kind](asked, request, world, limits)
    except InvalidError as error:
        return _refusal(error.violations, ())


def _reviewing(field: str, model: type[Kind], message: type[Message]) -> Review:
    """Reviews requests whose objects are in ``field``."""

    def judge(
        asked: Operation,
        request: admission_service_pb2.AdmissionRequest,
        world: World,
        limits: Limits,
    ) -> admission_service_pb2.AdmissionResponse:
        old = None
        if request.HasField(f"old_{field}"):  # type: ignore[arg-type] # one of its fields
            old = to_model(getattr(request, f"old_{field}"), model)
        new: Any = to_model(getattr(request, field), model)
        found = admit(asked, new, old, world, limits)
        if not found.allowed:
            return _refusal(found.violations, found.warnings)
        answer = admission_service_pb2.AdmissionResponse(allowed=True, warnings=found.warnings)
        getattr(answer, field).CopyFrom(to_message(found.object, message))
        return answer

    return judge


REVIEWS: Final[Mapping[str, Review]] = {
    "job": _reviewing("job", Job, job_pb2.Job),
    "queue": _reviewing("queue", Queue, queue_pb2.Queue),
    "job_flow": _reviewing("job_flow", JobFlow, job_flow_pb2.JobFlow),
    "job_template": _reviewing("job_template", JobTemplate, job_template_pb2.JobTemplate),
    "cron_job": _reviewing("cron_job", CronJob, cron_job_pb2.CronJob),
    "pod_group": _reviewing("pod_group", PodGroup, pod_group_pb2.PodGroup),
    "hyper_node": _reviewing("hyper_node", HyperNode, hyper_node_pb2.HyperNode),
}


def _refusal(
    violations: Sequence[Violation], warnings: Sequence[str]
) -> admission_service_pb2.AdmissionResponse:
    return admission_service_pb2.AdmissionResponse(
        allowed=False,
        violations=[
            meta_pb2.FieldViolation(
                path=each.path,
                message=each.message,
                passing=each.passing,
                rule=each.rule,
                value=each.value,
            )
            for each in violations
        ],
        warnings=warnings,
    )
