"""Following a stream of the controller, over a socket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import grpc

from hekla.domain.errors import CursorExpiredError, UnavailableError
from hekla.rpc.channel import connect
from hekla.rpc.server import serving
from hekla.v1 import meta_pb2, pod_group_pb2, pod_group_service_pb2 as messages
from hekla.v1.pod_group_service_pb2_grpc import (
    PodGroupServiceServicer,
    add_PodGroupServiceServicer_to_server,
)
from services.scheduler.clients import Controller
from services.scheduler.events import Batch, Full, Kind
from services.scheduler.inbox import Inbox
from services.scheduler.sources import Stream
from tests.support.waiting import wait_until

Response = messages.WatchPodGroupsResponse
BOOKMARK = "BOOKMARK"


def news(cursor: str, kind: str, uid: str = "", **spec: str) -> Response:
    """One message of a stream."""
    if not uid:
        return Response(cursor=cursor, type=kind)
    metadata = meta_pb2.ObjectMeta(
        uid=uid, name=uid, namespace="ns", creation_timestamp="2026-01-02T03:04:05Z"
    )
    group = pod_group_pb2.PodGroup(metadata=metadata)
    group.spec.min_resources.update(spec)
    return Response(cursor=cursor, type=kind, pod_group=group)


def together(first: Response, *others: Response) -> Response:
    """All of it in one message."""
    further = [messages.PodGroupChange(type=it.type, pod_group=it.pod_group) for it in others]
    return Response(
        cursor=others[-1].cursor, type=first.type, pod_group=first.pod_group, further=further
    )


@dataclass
class Groups(PodGroupServiceServicer):
    """Plays one script after the other; the last one stays open."""

    scripts: list[list[Response | Exception]] = field(default_factory=list)
    cursors: list[str] = field(default_factory=list)

    def WatchPodGroups(  # noqa: N802
        self, request: messages.WatchPodGroupsRequest, context: grpc.ServicerContext
    ) -> Iterator[Response]:
        self.cursors.append(request.cursor)
        for each in self.scripts.pop(0) if self.scripts else []:
            if isinstance(each, Exception):
                raise each
            yield each
        wait_until(lambda: not context.is_active(), timeout=60, what="the client to go")


class Follower:
    """What a stream brought."""

    def __init__(self, inbox: Inbox, stream: Stream) -> None:
        self.stream = stream
        self._inbox = inbox
        self._brought: list[tuple[str, object]] = []

    def brought(self, count: int) -> list[tuple[str, object]]:
        """The first events, once there are so many: full lists and single changes."""

        def taken() -> bool:
            for event in self._inbox.drain():
                if isinstance(event, Full):
                    self._brought.append(("full", sorted(it.uid for it in event.objects)))
                elif isinstance(event, Batch):
                    self._brought += [(type_, found.uid) for type_, found in event.changes]
            return len(self._brought) >= count

        wait_until(taken, what=f"{count} events")
        return self._brought


@contextmanager
def following(*scripts: list[Response | Exception]) -> Iterator[tuple[Groups, Follower]]:
    """A stream that is followed while the server plays these scripts."""
    groups, inbox = Groups(list(scripts)), Inbox()  # type: ignore[abstract] # one method will do

    def register(server: grpc.Server) -> None:
        add_PodGroupServiceServicer_to_server(groups, server)

    names = ["hekla.v1.PodGroupService"]
    with serving(register, listen="127.0.0.1:0", threads=4, services=names) as server:
        channel = connect(server.address)
        stream = Stream(Kind.GROUP, Controller(channel), inbox)
        with stream.following():
            yield groups, Follower(inbox, stream)
            stream.stop()
            channel.close()


def test_all_there_is_comes_as_one_list_and_then_every_change() -> None:
    script: list[Response | Exception] = [
        news("", "ADDED", "a"),
        news("", "ADDED", "b"),
        news("1", BOOKMARK),
        news("2", "MODIFIED", "a"),
        news("3", "DELETED", "b"),
    ]
    with following(script) as (_, follower):
        assert follower.brought(3) == [
            ("full", ["a", "b"]),
            ("MODIFIED", "a"),
            ("DELETED", "b"),
        ]
        assert follower.stream.problem() is None


def test_a_stream_that_broke_goes_on_behind_what_it_told() -> None:
    with following(
        [news("1", BOOKMARK), news("2", "ADDED", "a"), UnavailableError("closing")],
        [news("3", "ADDED", "b")],
    ) as (groups, follower):
        assert follower.brought(3) == [("full", []), ("ADDED", "a"), ("ADDED", "b")]
        assert groups.cursors == ["", "2"]


def test_a_list_that_broke_off_is_begun_anew() -> None:
    with following(
        [news("5", "ADDED", "a"), UnavailableError("closing")],
        [news("5", "ADDED", "b"), news("5", BOOKMARK)],
    ) as (groups, follower):
        assert follower.brought(1) == [("full", ["b"])]
        assert groups.cursors == ["", ""]


def test_a_cursor_that_is_too_old_leads_to_a_new_list() -> None:
    with following(
        [news("5", "ADDED", "a"), news("5", BOOKMARK), UnavailableError("closing")],
        [CursorExpiredError("too old")],
        [news("9", "ADDED", "b"), news("9", BOOKMARK)],
    ) as (groups, follower):
        assert follower.brought(2) == [("full", ["a"]), ("full", ["b"])]
        assert groups.cursors == ["", "5", ""]


def test_what_comes_in_one_message_is_taken_in_before_its_cursor_counts() -> None:
    with following(
        [
            together(news("", "ADDED", "a"), news("", "ADDED", "b"), news("", "DELETED", "a")),
            news("1", BOOKMARK),
            together(
                news("1", "MODIFIED", "b"),
                news("1", "ADDED", "bad", cpu="much"),
                news("2", "ADDED", "c"),
            ),
            UnavailableError("closing"),
        ],
        [news("3", "DELETED", "bad", cpu="much")],
    ) as (groups, follower):
        assert follower.brought(4) == [
            ("full", ["b"]),
            ("MODIFIED", "b"),
            ("ADDED", "c"),
            ("DELETED", "bad"),
        ]
        assert groups.cursors == ["", "2"]


def test_an_object_of_which_no_sense_can_be_made_is_left_out() -> None:
    script: list[Response | Exception] = [
        news("1", "ADDED", "bad", cpu="much"),
        news("1", "ADDED", "a"),
        news("1", BOOKMARK),
        news("2", "ADDED", "worse", cpu="more"),
        news("3", "ADDED", "b"),
    ]
    with following(script) as (_, follower):
        assert follower.brought(2) == [("full", ["a"]), ("ADDED", "b")]


def test_a_stream_that_is_not_connected_says_why() -> None:
    with connect("127.0.0.1:1") as channel:
        stream = Stream(Kind.QUEUE, Controller(channel), Inbox())
        assert stream.problem() == "queues: not connected yet"

        with stream.following():
            wait_until(
                lambda: "cannot be reached" in (stream.problem() or ""), what="it to say why"
            )
