"""JobFlowService. Errors are the interceptor's business; CommandJobFlow is not served yet."""

from __future__ import annotations

from collections.abc import Iterator

import grpc

from hekla.api.convert import to_message, to_model
from hekla.api.job_flow import JobFlow
from hekla.domain.errors import InvalidError, Violation
from hekla.store import asked, job_flows
from hekla.store.hub import Hub, Item
from hekla.store.watching import metadata_of, stream
from hekla.v1 import (
    job_flow_pb2,
    job_flow_service_pb2 as messages,
    job_flow_service_pb2_grpc as stubs,
)
from services.flow.flow_calls import FlowCalls


class JobFlowServicer(stubs.JobFlowServiceServicer):
    """Serves ``hekla.v1.JobFlowService``."""

    def __init__(self, calls: FlowCalls, hub: Hub) -> None:
        self._calls = calls
        self._hub = hub

    def CreateJobFlow(
        self, request: messages.CreateJobFlowRequest, context: grpc.ServicerContext
    ) -> messages.CreateJobFlowResponse:
        flow = _given(request.job_flow, request.HasField("job_flow"))
        made = self._calls.create(flow, asked.asking(request))
        return messages.CreateJobFlowResponse(
            job_flow=_message(made.flow), warnings=made.warnings
        )

    def GetJobFlow(
        self, request: messages.GetJobFlowRequest, context: grpc.ServicerContext
    ) -> messages.GetJobFlowResponse:
        uid = asked.uid(request.uid)
        key = None if uid else asked.key(request.namespace, request.name)
        found = self._calls.get(uid=uid, key=key)
        return messages.GetJobFlowResponse(job_flow=_message(found))

    def ListJobFlows(
        self, request: messages.ListJobFlowsRequest, context: grpc.ServicerContext
    ) -> messages.ListJobFlowsResponse:
        page = self._calls.page(
            namespace=asked.text(request.namespace, "namespace"),
            phases=list(request.phases),
            labels=request.label_selector,
            after=asked.token_to_place(request.page_token),
            limit=asked.page_size(request.page_size),
        )
        return messages.ListJobFlowsResponse(
            job_flows=[_message(flow) for flow in page.flows],
            next_page_token=asked.place_to_token(page.end) if page.end else "",
            cursor=str(page.cursor),
        )

    def WatchJobFlows(
        self, request: messages.WatchJobFlowsRequest, context: grpc.ServicerContext
    ) -> Iterator[messages.WatchJobFlowsResponse]:
        def wanted(item: Item) -> bool:
            namespace, name = metadata_of(item)
            return request.namespace in ("", namespace) and request.name in ("", name)

        def respond(
            cursor: str, type_: str, job_flow: job_flow_pb2.JobFlow | None
        ) -> messages.WatchJobFlowsResponse:
            return messages.WatchJobFlowsResponse(cursor=cursor, type=type_, job_flow=job_flow)

        return stream(
            self._hub,
            job_flows.KIND,
            request.cursor,
            context.is_active,
            wanted=wanted,
            render=_render,
            respond=respond,
        )

    def UpdateJobFlow(
        self, request: messages.UpdateJobFlowRequest, context: grpc.ServicerContext
    ) -> messages.UpdateJobFlowResponse:
        flow = _given(request.job_flow, request.HasField("job_flow"))
        expected = (
            request.expected_generation if request.HasField("expected_generation") else None
        )
        made = self._calls.update(flow, asked.asking(request), expected_generation=expected)
        return messages.UpdateJobFlowResponse(
            job_flow=_message(made.flow), warnings=made.warnings
        )

    def DeleteJobFlow(
        self, request: messages.DeleteJobFlowRequest, context: grpc.ServicerContext
    ) -> messages.DeleteJobFlowResponse:
        flow = self._calls.delete(
            asked.key(request.namespace, request.name),
            asked.asking(request),
            uid=asked.uid(request.uid),
        )
        return messages.DeleteJobFlowResponse(job_flow=_message(flow))


def _message(flow: JobFlow) -> job_flow_pb2.JobFlow:
    return to_message(flow, job_flow_pb2.JobFlow)


def _render(stored: object) -> job_flow_pb2.JobFlow:
    return _message(stored if isinstance(stored, JobFlow) else JobFlow.model_validate(stored))


def _given(message: job_flow_pb2.JobFlow, present: bool) -> JobFlow:  # noqa: FBT001
    if not present:
        raise InvalidError.of([Violation("job_flow", "is required")])
    return to_model(message, JobFlow)
