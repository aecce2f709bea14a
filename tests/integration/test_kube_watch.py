from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hekla.domain.errors import NotFoundError, UnavailableError
from hekla.kube.client import KubeClient
from hekla.kube.events import WatchEvent
from hekla.kube.resources import PODS
from hekla.kube.subscription import WINDOW, Subscription
from tests.support.kube_server import KubeServer
from tests.support.waiting import wait_until

PODS_PATH = "/api/v1/namespaces/ns/pods"
PROJECTION = "tests.support.projections:name_and_phase"


class World:
    """What a consumer knows by its events."""

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.objects: dict[str, dict[str, Any]] = {}
        self.versions: list[int] = []
        self.relists = 0
        self.largest = 0

    def take(self, timeout: float = 20) -> list[WatchEvent]:
        """Take in one batch."""
        batch = self.subscription.take(timeout)
        self.largest = max(self.largest, len(batch))
        for event in batch:
            if event.type == "RELISTED":
                self.relists += 1
                self.objects = {item["metadata"]["name"]: item for item in event.object}
                continue
            metadata = event.object["metadata"]
            self.versions.append(int(metadata["resourceVersion"]))
            if event.type == "DELETED":
                self.objects.pop(metadata["name"], None)
            else:
                self.objects[metadata["name"]] = event.object
        return batch

    def until(self, met: Callable[[World], bool]) -> None:
        """Take in batches until ``met``."""
        while not met(self):
            assert self.take(), "nothing more came"


@pytest.fixture
def server() -> Iterator[KubeServer]:
    with KubeServer() as running:
        yield running


@pytest.fixture
def client(server: KubeServer, tmp_path: Path) -> Iterator[KubeClient]:
    with KubeClient.start(server.kubeconfig(tmp_path), isolated=False) as running:
        yield running


@pytest.fixture
def world(server: KubeServer, client: KubeClient) -> World:
    """A consumer that has its first list, and whose watch is open."""
    world = World(client.watch(PODS))
    world.take()
    wait_until(lambda: server.watching == 1, what="the watch")
    return world


def test_the_full_list_comes_first_then_what_changes(
    server: KubeServer, client: KubeClient
) -> None:
    server.put(f"{PODS_PATH}/old", {})
    world = World(client.watch(PODS))

    assert [event.type for event in world.take()] == ["RELISTED"]
    assert set(world.objects) == {"old"}
    assert world.subscription.listed

    server.put(f"{PODS_PATH}/new", {})
    server.put(f"{PODS_PATH}/new", {"status": {"phase": "Running"}})
    server.remove(f"{PODS_PATH}/old")
    world.until(lambda world: "old" not in world.objects)

    assert world.objects == {"new": server.object(f"{PODS_PATH}/new")}
    assert world.versions == [102, 103, 104]


def test_an_empty_list_is_a_list_too(client: KubeClient) -> None:
    [event] = client.watch(PODS).take(20)

    assert event.type == "RELISTED"
    assert list(event.object) == []


def test_a_cut_watch_is_resumed_where_it_was(server: KubeServer, world: World) -> None:
    server.put(f"{PODS_PATH}/a", {})
    world.until(lambda world: "a" in world.objects)

    server.cut_watches()
    server.put(f"{PODS_PATH}/b", {})
    world.until(lambda world: "b" in world.objects)

    assert world.versions == [101, 102]
    assert world.relists == 1
    assert len(server.seen("GET", "/pods")) == 1, "one list was enough"


def test_no_event_is_lost_or_doubled_over_many_cuts(server: KubeServer, world: World) -> None:
    chance = random.Random(7)
    changes = 600

    def change() -> None:
        for number in range(changes):
            name = f"{PODS_PATH}/p{chance.randrange(20)}"
            if server.object(name) and chance.random() < 0.3:
                server.remove(name)
            else:
                server.put(name, {"spec": {"n": number}})
            if number % 40 == 0:
                server.cut_watches()

    writer = threading.Thread(target=change)
    writer.start()
    world.until(lambda world: world.versions[-1:] == [100 + changes])
    writer.join()

    assert world.versions == list(range(101, 101 + changes))
    assert world.relists == 1


def test_a_watch_that_comes_back_too_late_is_made_up_for_by_a_full_list(
    server: KubeServer, world: World
) -> None:
    server.put(f"{PODS_PATH}/vanishing", {})
    world.until(lambda world: "vanishing" in world.objects)

    server.on("GET", only=lambda asked: "watch" in asked.query, status=410, reason="Expired")
    server.cut_watches()
    server.remove(f"{PODS_PATH}/vanishing")
    server.put(f"{PODS_PATH}/missed", {})
    world.until(lambda world: world.relists == 2)

    assert set(world.objects) == {"missed"}


def test_an_open_watch_that_expires_is_made_up_for_by_a_full_list(
    server: KubeServer, world: World
) -> None:
    with server.forgetting():
        server.put(f"{PODS_PATH}/missed", {})
    world.until(lambda world: world.relists == 2)
    server.put(f"{PODS_PATH}/seen", {})
    world.until(lambda world: "seen" in world.objects)

    assert set(world.objects) == {"missed", "seen"}
    assert world.versions == [102]


def test_bookmarks_keep_a_quiet_watch_young(server: KubeServer, client: KubeClient) -> None:
    server.bookmark_every = 0.02
    world = World(client.watch(PODS))
    world.take()
    server.put("/api/v1/nodes/n", {})

    def resumed_from() -> str:
        server.cut_watches()
        asked = server.seen("GET", "/pods", watch=True)
        return asked[-1].query.get("resourceVersion", "") if asked else ""

    wait_until(lambda: resumed_from() == "101", what="a watch resumed from the bookmark")
    with server.forgetting():
        server.cut_watches()
    server.put(f"{PODS_PATH}/p", {})
    world.until(lambda world: "p" in world.objects)

    assert world.relists == 1


@pytest.mark.parametrize(
    ("status", "headers"), [(500, {}), (429, {"Retry-After": "1"}), (403, {})]
)
def test_a_refused_watch_is_tried_again_and_resumes(
    server: KubeServer, world: World, status: int, headers: dict[str, str]
) -> None:
    server.on("GET", only=lambda asked: "watch" in asked.query, status=status, headers=headers)
    server.put(f"{PODS_PATH}/p", {})
    server.cut_watches()
    world.until(lambda world: "p" in world.objects)

    assert world.relists == 1


def test_a_version_that_is_refused_for_long_is_given_up(
    server: KubeServer, world: World
) -> None:
    server.on(
        "GET", only=lambda asked: "watch" in asked.query, times=7, status=504, reason="Timeout"
    )
    server.cut_watches()

    world.until(lambda world: world.relists == 2)


def test_a_selection_that_is_refused_is_not_asked_for_all_the_time(
    server: KubeServer, client: KubeClient
) -> None:
    server.on("GET", times=10_000, status=400, reason="BadRequest")
    began = time.monotonic()
    watch = client.watch(PODS, label_selector="((")

    wait_until(lambda: len(server.requests) >= 5, what="some tries")
    took = time.monotonic() - began

    # A twentieth of a second at first, doubling, of which half may be left out.
    assert took >= sum(0.025 * 2**tries for tries in range(4))
    assert watch.take(0) == []


def test_a_line_that_is_no_event_does_not_end_the_watch(
    server: KubeServer, world: World
) -> None:
    server.put(f"{PODS_PATH}/before", {})
    server.say(b'{"type":"MODIFIED","object":{"metadata":\n')
    server.put(f"{PODS_PATH}/after", {})
    world.until(lambda world: "after" in world.objects)

    assert set(world.objects) == {"before", "after"}


def test_a_list_in_pages_arrives_whole(server: KubeServer, client: KubeClient) -> None:
    for number in range(1200):
        server.put(f"{PODS_PATH}/p{number}", {})
    server.on("GET", only=lambda asked: "continue" in asked.query, times=99, status=410)

    [event] = client.watch(PODS).take(20)

    assert len(event.object) == 1200, "the pages of the list that broke off do not count"
    assert len(list(event.object)) == 1200


@pytest.mark.parametrize("project", [None, PROJECTION], ids=["whole", "projected"])
def test_a_watch_may_begin_with_the_list(
    server: KubeServer, client: KubeClient, project: str | None
) -> None:
    server.begins_watches_with_lists = True
    for number in range(1200):
        server.put(f"{PODS_PATH}/p{number}", {"status": {"phase": "Running"}})

    watch = client.watch(PODS, project=project)
    [listed] = watch.take(20)
    assert (listed.type, len(listed.object), len([*listed.object])) == ("RELISTED", 1200, 1200)

    wait_until(lambda: server.watching, what="the watch")
    server.cut_watches()
    wait_until(lambda: len(server.seen("GET", "/pods", watch=True)) == 2, what="a new watch")
    server.put(f"{PODS_PATH}/new", {"status": {"phase": "Pending"}})
    [added] = watch.take(20)
    assert added.type == "ADDED"

    assert server.seen("GET", "/pods") == [], "no list was asked for"
    resumed = server.seen("GET", "/pods", watch=True)[-1].query
    assert resumed["resourceVersion"] == str(100 + 1200)
    assert "sendInitialEvents" not in resumed


def test_what_happens_while_the_list_is_sent_comes_after_it(
    server: KubeServer, client: KubeClient
) -> None:
    server.begins_watches_with_lists = True
    for number in range(4_000):
        server.put(f"{PODS_PATH}/p{number}", {})
    world = World(client.watch(PODS))
    wait_until(lambda: server.watching, what="the watch")
    for number in range(10):
        server.put(f"{PODS_PATH}/new{number}", {})

    world.until(lambda world: len(world.objects) == 4_010)

    assert world.relists == 1


def test_a_server_that_ignores_how_it_is_asked_is_asked_for_pages(
    server: KubeServer, client: KubeClient
) -> None:
    server.put(f"{PODS_PATH}/old", {})
    server.ignores_how_watches_begin = True
    world = World(client.watch(PODS))
    wait_until(lambda: server.watching, what="the watch")
    server.put(f"{PODS_PATH}/old", {"spec": {"n": 1}})
    world.take()
    server.put(f"{PODS_PATH}/new", {})
    world.until(lambda world: "new" in world.objects)

    assert set(world.objects) == {"old", "new"}
    assert world.relists == 1


def test_a_list_inside_a_watch_that_breaks_off_does_not_count(
    server: KubeServer, client: KubeClient
) -> None:
    server.begins_watches_with_lists = True
    for number in range(6_000):
        server.put(f"{PODS_PATH}/p{number}", {})
    world = World(client.watch(PODS))
    wait_until(lambda: server.watching, what="the watch")
    server.cut_watches()
    world.take()
    server.put(f"{PODS_PATH}/new", {})
    world.until(lambda world: "new" in world.objects)

    assert len(world.objects) == 6_001
    assert world.relists == 1


def test_a_watch_asks_for_its_selection(server: KubeServer, client: KubeClient) -> None:
    watch = client.watch(
        PODS, namespace="ns", label_selector="a in (b,c)", field_selector={"spec.nodeName": "n"}
    )
    watch.take(20)
    wait_until(lambda: server.watching == 1, what="the watch")

    asked = server.seen("GET", watch=True)[-1]
    assert asked.path == PODS_PATH
    assert asked.query["labelSelector"] == "a in (b,c)"
    assert asked.query["fieldSelector"] == "spec.nodeName=n"
    assert asked.query["allowWatchBookmarks"] == "true"


def test_a_consumer_that_is_busy_holds_back_its_watch_and_misses_nothing(
    server: KubeServer, client: KubeClient, world: World
) -> None:
    quick = World(client.watch(PODS))
    quick.take()
    for number in range(9000):
        server.put(f"{PODS_PATH}/p{number % 3}", {"spec": {"n": number}})
    quick.until(lambda world: world.versions[-1:] == [9100])
    assert world.subscription.waiting <= WINDOW

    world.until(lambda world: world.versions[-1:] == [9100])

    assert world.versions == list(range(101, 9101))
    assert world.largest <= 1000
    assert world.relists == 1


def test_full_lists_do_not_pile_up_before_a_busy_consumer(
    server: KubeServer, client: KubeClient, world: World
) -> None:
    quick = World(client.watch(PODS))
    quick.take()
    for number in range(2 * WINDOW):
        with server.forgetting():
            server.put(f"{PODS_PATH}/a{number}", {})
        quick.until(lambda world: world.relists == number + 2)  # noqa: B023 - called at once
        server.put(f"{PODS_PATH}/b{number}", {})
        quick.until(lambda world: f"b{number}" in world.objects)  # noqa: B023
    assert world.subscription.waiting <= WINDOW

    world.until(lambda world: len(world.objects) == 4 * WINDOW)


def test_projections_leave_out_what_they_say_and_what_they_cannot_take(
    server: KubeServer, client: KubeClient
) -> None:
    for name in ("seen", "hidden"):
        server.put(f"{PODS_PATH}/{name}", {"status": {"phase": "Pending"}})
    server.put(f"{PODS_PATH}/odd", {"status": None})
    watch = client.watch(PODS, project=PROJECTION)

    [listed] = watch.take(20)
    assert (listed.type, list(listed.object), len(listed.object)) == (
        "RELISTED",
        [("seen", "Pending")],
        1,
    )

    server.put(f"{PODS_PATH}/odd", {"status": None})
    server.put(f"{PODS_PATH}/hidden", {"status": {}})
    server.put(f"{PODS_PATH}/seen", {"status": {"phase": "Running"}})
    assert watch.take(20) == [WatchEvent("MODIFIED", ("seen", "Running"))]


def test_a_projection_that_does_not_exist_is_told(client: KubeClient) -> None:
    watch = client.watch(PODS, project="tests.support.projections:nothing")

    with pytest.raises(UnavailableError, match="nothing"):
        watch.take(20)
    assert watch.ended


def test_who_waits_for_a_batch_is_let_go(server: KubeServer, world: World) -> None:
    ended = threading.Event()

    def consume() -> None:
        for _ in world.subscription:
            pass
        ended.set()

    threading.Thread(target=consume, daemon=True).start()
    world.subscription.close()

    assert ended.wait(20)
    assert world.subscription.ended
    wait_until(lambda: server.watching == 0, what="the connection to be closed")


def test_closing_the_client_ends_its_watches(client: KubeClient, world: World) -> None:
    client.close()

    assert list(world.subscription) == []


def test_a_log_is_streamed_as_it_is_written(server: KubeServer, client: KubeClient) -> None:
    server.logs["p"] = [b"one\n", b"two\n"]

    whole = b"".join(client.logs("ns", "p", container="c", tail_lines=2))

    assert whole == b"one\ntwo\n"
    [asked] = server.seen("GET", "/pods/p/log")
    assert asked.query == {"container": "c", "tailLines": "2"}


def test_a_log_that_is_followed_ends_when_it_is_closed(
    server: KubeServer, client: KubeClient
) -> None:
    server.logs["p"] = [b"one\n"]
    log = client.logs("ns", "p", follow=True)
    assert next(log) == b"one\n"

    log.close()

    assert list(log) == []


def test_a_log_that_does_not_exist_is_told(client: KubeClient) -> None:
    with pytest.raises(NotFoundError, match="pods"):
        next(client.logs("ns", "missing"))


def test_a_log_that_breaks_off_is_told(server: KubeServer, client: KubeClient) -> None:
    server.logs["p"] = [b"one\n"]
    log = client.logs("ns", "p", follow=True)
    next(log)

    server.cut_all()

    with pytest.raises(UnavailableError):
        next(log)
