"""Calls of QueueService."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from hekla.api.convert import to_message, to_model
from hekla.api.queue import Queue
from hekla.client.calls import Caller, pages, request_id
from hekla.client.records import Admitted, Change, Listing
from hekla.domain.phases import QueueState
from hekla.v1 import queue_pb2, queue_service_pb2 as pb
from hekla.v1.queue_service_pb2_grpc import QueueServiceStub


class Queues:
    """Queues: jobs wait in them, and each has a share of the cluster."""

    def __init__(self, stub: QueueServiceStub, caller: Caller) -> None:
        self._stub = stub
        self._caller = caller

    def create(self, queue: Queue) -> Admitted[Queue]:
        """Make a queue.

        Raises:
            AlreadyExistsError: there is one of that name.
        """
        request = pb.CreateQueueRequest(
            queue=to_message(queue, queue_pb2.Queue), request_id=request_id()
        )
        answer = self._caller.unary(self._stub.CreateQueue, request)
        return Admitted(to_model(answer.queue, Queue), answer.warnings)

    def get(self, name: str) -> Queue:
        """One queue."""
        request = pb.GetQueueRequest(name=name)
        return to_model(self._caller.unary(self._stub.GetQueue, request).queue, Queue)

    def list(
        self,
        *,
        label_selector: str = "",
        states: Iterable[QueueState | str] = (),
        parent: str = "",
        limit: int | None = None,
    ) -> Listing[Queue]:
        """Queues; with a ``parent`` its children only."""
        wanted = [str(state) for state in states]

        def fetch(token: str, size: int) -> tuple[Sequence[Queue], str, str]:
            request = pb.ListQueuesRequest(
                page_size=size,
                page_token=token,
                label_selector=label_selector,
                states=wanted,
                parent=parent,
            )
            answer = self._caller.unary(self._stub.ListQueues, request)
            queues = [to_model(queue, Queue) for queue in answer.queues]
            return queues, answer.next_page_token, answer.cursor

        return Listing(*pages(fetch, limit))

    def watch(
        self,
        name: str = "",
        *,
        cursor: str = "",
        label_selector: str = "",
        timeout: timedelta | None = None,
    ) -> Iterator[Change[Queue]]:
        """Changes after ``cursor``; without one begin with all that exist."""

        def opened(cursor: str, left: float | None) -> Iterator[pb.WatchQueuesResponse]:
            request = pb.WatchQueuesRequest(
                name=name, cursor=cursor, label_selector=label_selector
            )
            return self._caller.stream(self._stub.WatchQueues, request, left)

        def item(message: pb.WatchQueuesResponse) -> Queue | None:
            return to_model(message.queue, Queue) if message.HasField("queue") else None

        return self._caller.watch(opened, item, cursor=cursor, timeout=timeout, on_outage=None)

    def update(
        self, queue: Queue, *, expected_generation: int | None = None
    ) -> Admitted[Queue]:
        """Change a queue's spec."""
        request = pb.UpdateQueueRequest(
            queue=to_message(queue, queue_pb2.Queue),
            request_id=request_id(),
            expected_generation=expected_generation,
        )
        answer = self._caller.unary(self._stub.UpdateQueue, request)
        return Admitted(to_model(answer.queue, Queue), answer.warnings)

    def delete(self, name: str) -> None:
        """Remove a queue that nothing uses."""
        request = pb.DeleteQueueRequest(name=name, request_id=request_id())
        self._caller.unary(self._stub.DeleteQueue, request)

    def open(self, name: str) -> Queue:
        """Have a queue take jobs again."""
        return self.command(name, "OpenQueue")

    def close(self, name: str) -> Queue:
        """Have a queue take no new jobs; those in it go on."""
        return self.command(name, "CloseQueue")

    def command(self, name: str, action: str) -> Queue:
        """Send a queue the command ``OpenQueue`` or ``CloseQueue``."""
        request = pb.CommandQueueRequest(name=name, action=action, request_id=request_id())
        return to_model(self._caller.unary(self._stub.CommandQueue, request).queue, Queue)
