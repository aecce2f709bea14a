"""JobTemplateService. Errors are the interceptor's business."""

from __future__ import annotations

from collections.abc import Iterator

import grpc

from hekla.api.convert import to_message, to_model
from hekla.api.job_template import JobTemplate
from hekla.domain.errors import InvalidError, Violation
from hekla.store import asked, job_templates
from hekla.store.hub import Hub, Item
from hekla.store.watching import metadata_of, stream
from hekla.v1 import (
    job_template_pb2,
    job_template_service_pb2 as messages,
    job_template_service_pb2_grpc as stubs,
)
from services.flow.template_calls import TemplateCalls


class JobTemplateServicer(stubs.JobTemplateServiceServicer):
    """Serves ``hekla.v1.JobTemplateService``."""

    def __init__(self, calls: TemplateCalls, hub: Hub) -> None:
        self._calls = calls
        self._hub = hub

    def CreateJobTemplate(
        self, request: messages.CreateJobTemplateRequest, context: grpc.ServicerContext
    ) -> messages.CreateJobTemplateResponse:
        template = _given(request.job_template, request.HasField("job_template"))
        made = self._calls.create(template, asked.asking(request))
        return messages.CreateJobTemplateResponse(
            job_template=_message(made.template), warnings=made.warnings
        )

    def GetJobTemplate(
        self, request: messages.GetJobTemplateRequest, context: grpc.ServicerContext
    ) -> messages.GetJobTemplateResponse:
        found = self._calls.get(asked.key(request.namespace, request.name))
        return messages.GetJobTemplateResponse(job_template=_message(found))

    def ListJobTemplates(
        self, request: messages.ListJobTemplatesRequest, context: grpc.ServicerContext
    ) -> messages.ListJobTemplatesResponse:
        page = self._calls.page(
            namespace=asked.text(request.namespace, "namespace"),
            labels=request.label_selector,
            after=asked.token_to_place(request.page_token),
            limit=asked.page_size(request.page_size),
        )
        return messages.ListJobTemplatesResponse(
            job_templates=[_message(template) for template in page.templates],
            next_page_token=asked.place_to_token(page.end) if page.end else "",
            cursor=str(page.cursor),
        )

    def WatchJobTemplates(
        self, request: messages.WatchJobTemplatesRequest, context: grpc.ServicerContext
    ) -> Iterator[messages.WatchJobTemplatesResponse]:
        def wanted(item: Item) -> bool:
            namespace, name = metadata_of(item)
            return request.namespace in ("", namespace) and request.name in ("", name)

        def respond(
            cursor: str, type_: str, job_template: job_template_pb2.JobTemplate | None
        ) -> messages.WatchJobTemplatesResponse:
            return messages.WatchJobTemplatesResponse(
                cursor=cursor, type=type_, job_template=job_template
            )

        return stream(
            self._hub,
            job_templates.KIND,
            request.cursor,
            context.is_active,
            wanted=wanted,
            render=_render,
            respond=respond,
        )

    def UpdateJobTemplate(
        self, request: messages.UpdateJobTemplateRequest, context: grpc.ServicerContext
    ) -> messages.UpdateJobTemplateResponse:
        template = _given(request.job_template, request.HasField("job_template"))
        expected = (
            request.expected_generation if request.HasField("expected_generation") else None
        )
        made = self._calls.update(template, asked.asking(request), expected_generation=expected)
        return messages.UpdateJobTemplateResponse(
            job_template=_message(made.template), warnings=made.warnings
        )

    def DeleteJobTemplate(
        self, request: messages.DeleteJobTemplateRequest, context: grpc.ServicerContext
    ) -> messages.DeleteJobTemplateResponse:
        self._calls.delete(
            asked.key(request.namespace, request.name),
            asked.asking(request),
            uid=asked.uid(request.uid),
        )
        return messages.DeleteJobTemplateResponse()


def _message(template: JobTemplate) -> job_template_pb2.JobTemplate:
    return to_message(template, job_template_pb2.JobTemplate)


def _render(stored: object) -> job_template_pb2.JobTemplate:
    return _message(
        stored if isinstance(stored, JobTemplate) else JobTemplate.model_validate(stored)
    )


def _given(message: job_template_pb2.JobTemplate, present: bool) -> JobTemplate:  # noqa: FBT001
    if not present:
        raise InvalidError.of([Violation("job_template", "is required")])
    return to_model(message, JobTemplate)
