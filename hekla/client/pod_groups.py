"""Calls of PodGroupService that users make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from hekla.api.convert import to_message, to_model
from hekla.api.pod_group import PodGroup
from hekla.client.calls import Caller, pages, request_id
from hekla.client.records import Change, Listing
from hekla.domain.phases import PodGroupPhase
from hekla.v1 import pod_group_pb2, pod_group_service_pb2 as pb
from hekla.v1.pod_group_service_pb2_grpc import PodGroupServiceStub


class PodGroups:
    """Pod groups: pods that are scheduled together or not at all."""

    def __init__(self, stub: PodGroupServiceStub, caller: Caller) -> None:
        self._stub = stub
        self._caller = caller

    def create(self, group: PodGroup) -> PodGroup:
        """Make a pod group that belongs to no job."""
        request = pb.CreatePodGroupRequest(
            pod_group=to_message(group, pod_group_pb2.PodGroup), request_id=request_id()
        )
        answer = self._caller.unary(self._stub.CreatePodGroup, request)
        return to_model(answer.pod_group, PodGroup)

    def get(self, namespace: str, name: str) -> PodGroup:
        """One pod group."""
        request = pb.GetPodGroupRequest(namespace=namespace, name=name)
        answer = self._caller.unary(self._stub.GetPodGroup, request)
        return to_model(answer.pod_group, PodGroup)

    def list(
        self,
        namespace: str = "",
        *,
        queue: str = "",
        label_selector: str = "",
        phases: Iterable[PodGroupPhase | str] = (),
        limit: int | None = None,
    ) -> Listing[PodGroup]:
        """Pod groups; without a namespace those of all."""
        wanted = [str(phase) for phase in phases]

        def fetch(token: str, size: int) -> tuple[Sequence[PodGroup], str, str]:
            request = pb.ListPodGroupsRequest(
                namespace=namespace,
                queue=queue,
                label_selector=label_selector,
                page_size=size,
                page_token=token,
                phases=wanted,
            )
            answer = self._caller.unary(self._stub.ListPodGroups, request)
            groups = [to_model(group, PodGroup) for group in answer.pod_groups]
            return groups, answer.next_page_token, answer.cursor

        return Listing(*pages(fetch, limit))

    def watch(
        self,
        namespace: str = "",
        *,
        cursor: str = "",
        queue: str = "",
        label_selector: str = "",
        timeout: timedelta | None = None,
    ) -> Iterator[Change[PodGroup]]:
        """Changes after ``cursor``; without one begin with all that exist."""

        def opened(cursor: str, left: float | None) -> Iterator[pb.WatchPodGroupsResponse]:
            request = pb.WatchPodGroupsRequest(
                namespace=namespace, cursor=cursor, queue=queue, label_selector=label_selector
            )
            return self._caller.stream(self._stub.WatchPodGroups, request, left)

        def item(message: pb.WatchPodGroupsResponse) -> PodGroup | None:
            if not message.HasField("pod_group"):
                return None
            return to_model(message.pod_group, PodGroup)

        return self._caller.watch(opened, item, cursor=cursor, timeout=timeout, on_outage=None)

    def delete(self, namespace: str, name: str, *, uid: str = "") -> None:
        """Remove a pod group that belongs to no job."""
        request = pb.DeletePodGroupRequest(
            namespace=namespace, name=name, uid=uid, request_id=request_id()
        )
        self._caller.unary(self._stub.DeletePodGroup, request)
