"""PodGroupService. Errors are the interceptor's business."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import grpc

from hekla.api.convert import to_message, to_model
from hekla.api.pod_group import PodGroup, PodGroupStatus
from hekla.domain.errors import InvalidError, Violation
from hekla.domain.phases import PodGroupPhase
from hekla.store import asked, pod_groups
from hekla.store.hub import Hub, Item
from hekla.store.watching import Told, in_lists, metadata_of, queue_of
from hekla.v1 import (
    pod_group_pb2,
    pod_group_service_pb2 as messages,
    pod_group_service_pb2_grpc as stubs,
)
from services.controller.pod_group_calls import PodGroupCalls


class PodGroupServicer(stubs.PodGroupServiceServicer):
    """Serves ``hekla.v1.PodGroupService``."""

    def __init__(self, calls: PodGroupCalls, hub: Hub) -> None:
        self._calls = calls
        self._hub = hub

    def CreatePodGroup(
        self, request: messages.CreatePodGroupRequest, context: grpc.ServicerContext
    ) -> messages.CreatePodGroupResponse:
        if not request.HasField("pod_group"):
            raise InvalidError.of([Violation("pod_group", "is required")])
        group = to_model(request.pod_group, PodGroup)
        made = self._calls.create(group, asked.asking(request))
        return messages.CreatePodGroupResponse(pod_group=_message(made))

    def GetPodGroup(
        self, request: messages.GetPodGroupRequest, context: grpc.ServicerContext
    ) -> messages.GetPodGroupResponse:
        found = self._calls.get(asked.key(request.namespace, request.name))
        return messages.GetPodGroupResponse(pod_group=_message(found))

    def ListPodGroups(
        self, request: messages.ListPodGroupsRequest, context: grpc.ServicerContext
    ) -> messages.ListPodGroupsResponse:
        page = self._calls.page(
            namespace=asked.text(request.namespace, "namespace"),
            queue=asked.text(request.queue, "queue"),
            phases=asked.among(request.phases, list(PodGroupPhase), "phases"),
            labels=request.label_selector,
            after=asked.token_to_place(request.page_token),
            limit=asked.page_size(request.page_size),
        )
        return messages.ListPodGroupsResponse(
            pod_groups=[_message(group) for group in page.groups],
            next_page_token=asked.place_to_token(page.end) if page.end else "",
            cursor=str(page.cursor),
        )

    def WatchPodGroups(
        self, request: messages.WatchPodGroupsRequest, context: grpc.ServicerContext
    ) -> Iterator[messages.WatchPodGroupsResponse]:
        def wanted(item: Item) -> bool:
            namespace, _ = metadata_of(item)
            return request.namespace in ("", namespace) and request.queue in (
                "",
                queue_of(item),
            )

        lists = in_lists(
            self._hub,
            pod_groups.KIND,
            request.cursor,
            context.is_active,
            wanted=wanted,
            labels=request.label_selector,
            render=_render,
            most=asked.changes(request.most),
        )
        return (_response(cursor, changes) for cursor, changes in lists)

    def DeletePodGroup(
        self, request: messages.DeletePodGroupRequest, context: grpc.ServicerContext
    ) -> messages.DeletePodGroupResponse:
        self._calls.delete(
            asked.key(request.namespace, request.name),
            asked.asking(request),
            uid=asked.uid(request.uid),
        )
        return messages.DeletePodGroupResponse()

    def ReportScheduling(
        self, request: messages.ReportSchedulingRequest, context: grpc.ServicerContext
    ) -> messages.ReportSchedulingResponse:
        statuses = {}
        for position, report in enumerate(request.reports):
            path = f"reports[{position}].uid"
            uid = asked.uid(report.uid, path)
            if uid is None:
                raise InvalidError.of([Violation(path, "is required")])
            statuses[uid] = to_model(report.status, PodGroupStatus)
        unknown = self._calls.report(request.epoch, statuses)
        return messages.ReportSchedulingResponse(unknown_uids=[str(uid) for uid in unknown])


def _response(
    cursor: str, changes: Sequence[Told[pod_group_pb2.PodGroup]]
) -> messages.WatchPodGroupsResponse:
    first, *further = changes
    return messages.WatchPodGroupsResponse(
        cursor=cursor,
        type=first.type,
        pod_group=first.object,
        further=[
            messages.PodGroupChange(type=each.type, pod_group=each.object) for each in further
        ],
    )


def _message(group: PodGroup) -> pod_group_pb2.PodGroup:
    return to_message(group, pod_group_pb2.PodGroup)


def _render(stored: object) -> pod_group_pb2.PodGroup:
    return _message(stored if isinstance(stored, PodGroup) else PodGroup.model_validate(stored))
