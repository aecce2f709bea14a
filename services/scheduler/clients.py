"""The controller, as the scheduler calls it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

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
from services.scheduler.core.objects import Group, GroupReport, Queue
from services.scheduler.events import GONE, Change, Kind

REPORT_TIMEOUT: Final = 10.0
STREAM_SPAN: Final = 3600.0
"""Seconds after which a stream is opened anew: every call has an end."""

MOST: Final = 100
"""Changes of pod groups in one message."""

BOOKMARK: Final = "BOOKMARK"
"""No object: everything up to the cursor was told."""
UNREADABLE: Final = "UNREADABLE"
"""An object of which no sense can be made."""

log = logging.getLogger(__name__)


class News(NamedTuple):
    """One message of a stream."""

    cursor: str
    """What to go on from once all of it is taken in."""
    changes: Sequence[Change]
    """Of a ``Group`` or a ``Queue``, or None where there is none; a bookmark comes alone."""


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
                groups_pb2.WatchPodGroupsRequest(cursor=cursor, most=MOST),
                timeout=STREAM_SPAN,
            )
            news = (_news(each.cursor, [each, *each.further], _group) for each in call)
        else:
            call = self._queues.WatchQueues(
                queues_pb2.WatchQueuesRequest(cursor=cursor), timeout=STREAM_SPAN
            )
            news = (_news(each.cursor, [each], _queue) for each in call)
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


def _group(change: Any) -> Group:
    meta = change.pod_group.metadata
    if change.type == GONE:
        return Group(meta.uid, meta.namespace, meta.name)  # who it was is all that counts
    return convert.group(change.pod_group)


def _queue(change: Any) -> Queue:
    return convert.queue(change.queue)


def _news(cursor: str, changes: Iterable[Any], read: Callable[[Any], Any]) -> News:
    return News(cursor, [_change(change, read) for change in changes])


def _change(change: Any, read: Callable[[Any], Any]) -> Change:
    if change.type == BOOKMARK:
        return Change(BOOKMARK, None)
    try:
        return Change(change.type, read(change))
    except (InvalidError, ValueError) as error:
        log.error("object left out", extra={"object": str(change), "error": str(error)})
        return Change(UNREADABLE, None)
