"""QueueService. Errors are the interceptor's business."""

from __future__ import annotations

from collections.abc import Iterator

import grpc

from hekla.api.convert import to_message, to_model
from hekla.api.queue import Queue
from hekla.domain.errors import InvalidError, Violation
from hekla.domain.phases import QueueState
from hekla.store import asked, queues
from hekla.store.hub import Hub, Item
from hekla.store.watching import metadata_of, stream
from hekla.v1 import queue_pb2, queue_service_pb2 as messages, queue_service_pb2_grpc as stubs
from services.controller.queue_calls import QueueCalls


class QueueServicer(stubs.QueueServiceServicer):
    """Serves ``hekla.v1.QueueService``."""

    def __init__(self, calls: QueueCalls, hub: Hub) -> None:
        self._calls = calls
        self._hub = hub

    def CreateQueue(
        self, request: messages.CreateQueueRequest, context: grpc.ServicerContext
    ) -> messages.CreateQueueResponse:
        queue = _given(request.queue, request.HasField("queue"))
        made = self._calls.create(queue, asked.asking(request))
        return messages.CreateQueueResponse(queue=_message(made.queue), warnings=made.warnings)

    def GetQueue(
        self, request: messages.GetQueueRequest, context: grpc.ServicerContext
    ) -> messages.GetQueueResponse:
        return messages.GetQueueResponse(queue=_message(self._calls.get(_name(request.name))))

    def ListQueues(
        self, request: messages.ListQueuesRequest, context: grpc.ServicerContext
    ) -> messages.ListQueuesResponse:
        page = self._calls.page(
            after=asked.token_to_name(request.page_token),
            limit=asked.page_size(request.page_size),
            labels=request.label_selector,
            states=asked.among(request.states, list(QueueState), "states"),
            parent=asked.text(request.parent, "parent"),
        )
        return messages.ListQueuesResponse(
            queues=[_message(queue) for queue in page.queues],
            next_page_token=asked.name_to_token(page.end),
            cursor=str(page.cursor),
        )

    def WatchQueues(
        self, request: messages.WatchQueuesRequest, context: grpc.ServicerContext
    ) -> Iterator[messages.WatchQueuesResponse]:
        def wanted(item: Item) -> bool:
            return request.name in ("", metadata_of(item)[1])

        def respond(
            cursor: str, type_: str, queue: queue_pb2.Queue | None
        ) -> messages.WatchQueuesResponse:
            return messages.WatchQueuesResponse(cursor=cursor, type=type_, queue=queue)

        return stream(
            self._hub,
            queues.KIND,
            request.cursor,
            context.is_active,
            wanted=wanted,
            labels=request.label_selector,
            render=_render,
            respond=respond,
        )

    def UpdateQueue(
        self, request: messages.UpdateQueueRequest, context: grpc.ServicerContext
    ) -> messages.UpdateQueueResponse:
        queue = _given(request.queue, request.HasField("queue"))
        expected = (
            request.expected_generation if request.HasField("expected_generation") else None
        )
        changed = self._calls.update(queue, asked.asking(request), expected_generation=expected)
        return messages.UpdateQueueResponse(
            queue=_message(changed.queue), warnings=changed.warnings
        )

    def DeleteQueue(
        self, request: messages.DeleteQueueRequest, context: grpc.ServicerContext
    ) -> messages.DeleteQueueResponse:
        self._calls.delete(_name(request.name), asked.asking(request))
        return messages.DeleteQueueResponse()

    def CommandQueue(
        self, request: messages.CommandQueueRequest, context: grpc.ServicerContext
    ) -> messages.CommandQueueResponse:
        queue = self._calls.command(_name(request.name), request.action, asked.asking(request))
        return messages.CommandQueueResponse(queue=_message(queue))


def _name(name: str) -> str:
    return asked.key("", name).name


def _message(queue: Queue) -> queue_pb2.Queue:
    return to_message(queue, queue_pb2.Queue)


def _render(stored: object) -> queue_pb2.Queue:
    return _message(stored if isinstance(stored, Queue) else Queue.model_validate(stored))


def _given(message: queue_pb2.Queue, present: bool) -> Queue:  # noqa: FBT001
    if not present:
        raise InvalidError.of([Violation("queue", "is required")])
    return to_model(message, Queue)
