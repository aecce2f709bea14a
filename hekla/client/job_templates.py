"""Calls of JobTemplateService."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

from hekla.api.convert import to_message, to_model
from hekla.api.job_template import JobTemplate
from hekla.client.calls import Caller, pages, request_id
from hekla.client.records import Admitted, Change, Listing
from hekla.domain.errors import UnavailableError
from hekla.v1 import job_template_pb2, job_template_service_pb2 as pb
from hekla.v1.job_template_service_pb2_grpc import JobTemplateServiceStub


class JobTemplates:
    """Templates: specs of jobs that flows make."""

    def __init__(self, stub: JobTemplateServiceStub, caller: Caller) -> None:
        self._stub = stub
        self._caller = caller

    def create(self, template: JobTemplate) -> Admitted[JobTemplate]:
        """Make a template.

        Raises:
            InvalidError: it is refused; the violations say where and why.
            AlreadyExistsError: there is one of that name.
        """
        request = pb.CreateJobTemplateRequest(
            job_template=to_message(template, job_template_pb2.JobTemplate),
            request_id=request_id(),
        )
        answer = self._caller.unary(self._stub.CreateJobTemplate, request)
        return Admitted(to_model(answer.job_template, JobTemplate), answer.warnings)

    def get(self, namespace: str, name: str) -> JobTemplate:
        """One template."""
        request = pb.GetJobTemplateRequest(namespace=namespace, name=name)
        answer = self._caller.unary(self._stub.GetJobTemplate, request)
        return to_model(answer.job_template, JobTemplate)

    def list(
        self, namespace: str = "", *, label_selector: str = "", limit: int | None = None
    ) -> Listing[JobTemplate]:
        """Templates; without a namespace those of all."""

        def fetch(token: str, size: int) -> tuple[Sequence[JobTemplate], str, str]:
            request = pb.ListJobTemplatesRequest(
                namespace=namespace,
                label_selector=label_selector,
                page_size=size,
                page_token=token,
            )
            answer = self._caller.unary(self._stub.ListJobTemplates, request)
            found = [to_model(template, JobTemplate) for template in answer.job_templates]
            return found, answer.next_page_token, answer.cursor

        return Listing(*pages(fetch, limit))

    def watch(
        self,
        namespace: str = "",
        name: str = "",
        *,
        cursor: str = "",
        timeout: timedelta | None = None,
        on_outage: Callable[[UnavailableError], None] | None = None,
    ) -> Iterator[Change[JobTemplate]]:
        """Changes after ``cursor``; without one begin with all that exist.

        Raises:
            CursorExpiredError: list again, and watch from there.
        """

        def opened(cursor: str, left: float | None) -> Iterator[pb.WatchJobTemplatesResponse]:
            request = pb.WatchJobTemplatesRequest(namespace=namespace, name=name, cursor=cursor)
            return self._caller.stream(self._stub.WatchJobTemplates, request, left)

        def item(message: pb.WatchJobTemplatesResponse) -> JobTemplate | None:
            if not message.HasField("job_template"):
                return None
            return to_model(message.job_template, JobTemplate)

        return self._caller.watch(
            opened, item, cursor=cursor, timeout=timeout, on_outage=on_outage
        )

    def update(
        self, template: JobTemplate, *, expected_generation: int | None = None
    ) -> Admitted[JobTemplate]:
        """Change a template; jobs that were made from it stay as they are."""
        request = pb.UpdateJobTemplateRequest(
            job_template=to_message(template, job_template_pb2.JobTemplate),
            request_id=request_id(),
            expected_generation=expected_generation,
        )
        answer = self._caller.unary(self._stub.UpdateJobTemplate, request)
        return Admitted(to_model(answer.job_template, JobTemplate), answer.warnings)

    def delete(self, namespace: str, name: str, *, uid: str = "") -> None:
        """Remove a template; jobs that were made from it stay."""
        request = pb.DeleteJobTemplateRequest(
            namespace=namespace, name=name, uid=uid, request_id=request_id()
        )
        self._caller.unary(self._stub.DeleteJobTemplate, request)
