"""The controller, as the scheduler calls it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Protocol

import grpc

from hekla.domain.errors import InvalidError
from hekla.rpc.attended import attended
from hekla.rpc.errors import translated
from hekla.v1 import (
    pod_group_service_pb2 as groups_pb2,
    pod_group_service_pb2_grpc as groups_grpc,
    queue_service_pb2 as queues_pb2,
    queue_service_pb2_grpc as queues_grpc,
)
from services.scheduler import convert
from services.scheduler.core.objects import Group, GroupReport
from services.scheduler.events import GONE, Kind

REPORT_TIMEOUT: Final = 10.0
STREAM_SPAN: Final = 3600.0
"""Seconds after which a stream is opened anew: every call has an end."""

BOOKMARK: Final = "BOOKMARK"
"""No object: everything up to the cursor was told."""
UNREADABLE: Final = "UNREADABLE"
"""An object of which no sense can be made."""

log = logging.getLogger(__name__)


class News(NamedTuple):
    """One message of a stream."""

    cursor: str
    type: str
    object: Any
    """A ``Group`` or a ``Queue``; None where there is none."""


class _Message(Protocol):
    cursor: str
    type: str


class Controller:
    """Calls of PodGroupService and QueueService."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._groups = groups_grpc.PodGroupServiceStub(channel)
        self._queues = queues_grpc.QueueServiceStub(channel)

    @contextmanager
    def watch(self, kind: Kind, cursor: str) -> Iterator[Iterator[News]]:
        """Everything that happened to groups or queues after ``cursor``; from "", all there is.

        Raises:
            CursorExpiredError: watch from "".
            UnavailableError: the stream ended; go on from the last cursor.
        """
        call: Any
        if kind is Kind.GROUP:
            call = self._groups.WatchPodGroups(
                groups_pb2.WatchPodGroupsRequest(cursor=cursor), timeout=STREAM_SPAN
            )
            news = _read(call, _group)
        else:
            call = self._queues.WatchQueues(
                queues_pb2.WatchQueuesRequest(cursor=cursor), timeout=STREAM_SPAN
            )
            news = _read(call, lambda message: convert.queue(message.queue))
        with translated("the controller"), attended(call, news) as attended_news:
            yield attended_news

    def report(self, epoch: int, reports: Iterable[GroupReport]) -> Sequence[str]:
        """Tell what was decided of groups; return the uids of those that are gone.

        Raises:
            PreconditionError: another epoch leads.
            UnavailableError: nothing is known; report again.
        """
        request = groups_pb2.ReportSchedulingRequest(
            epoch=epoch, reports=[convert.report(each) for each in reports]
        )
        with translated("the controller"):
            answer = self._groups.ReportScheduling(request, timeout=REPORT_TIMEOUT)
        return list(answer.unknown_uids)


def _group(message: groups_pb2.WatchPodGroupsResponse) -> Group:
    meta = message.pod_group.metadata
    if message.type == GONE:
        return Group(meta.uid, meta.namespace, meta.name)  # who it was is all that counts
    return convert.group(message.pod_group)


def _read(call: Iterable[_Message], read: Callable[[Any], Any]) -> Iterator[News]:
    for message in call:
        if message.type == BOOKMARK:
            yield News(message.cursor, BOOKMARK, None)
            continue
        try:
            found = read(message)
        except (InvalidError, ValueError) as error:
            log.error("object left out", extra={"object": str(message), "error": str(error)})
            yield News(message.cursor, UNREADABLE, None)
        else:
            yield News(message.cursor, message.type, found)
