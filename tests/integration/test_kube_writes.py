from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hekla import failpoint
from hekla.domain.errors import UnavailableError
from hekla.kube.client import KubeClient
from hekla.kube.fence import Fence
from hekla.kube.requests import Binding, Deletion, Patch
from hekla.kube.resources import CONFIGMAPS, NODES, PODS
from tests.support.kube_objects import Request
from tests.support.kube_server import KubeServer
from tests.support.ports import free_port
from tests.support.waiting import wait_until

PODS_PATH = "/api/v1/namespaces/ns/pods"


def pod(name: str, attempt: str | None = None, **metadata: Any) -> dict[str, Any]:
    metadata |= {"name": name, "namespace": "ns"}
    if attempt is not None:
        metadata["annotations"] = {"hekla.io/attempt-uid": attempt}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}}


@pytest.fixture
def server() -> Iterator[KubeServer]:
    with KubeServer() as running:
        yield running


@pytest.fixture
def client(server: KubeServer, tmp_path: Path) -> Iterator[KubeClient]:
    with KubeClient.start(server.kubeconfig(tmp_path), isolated=False) as running:
        yield running


class TestCreate:
    def test_every_object_gets_its_own_reply_in_order(
        self, server: KubeServer, client: KubeClient
    ) -> None:
        server.put(f"{PODS_PATH}/p1", pod("p1", attempt="other"))
        server.on("POST", only=lambda asked: asked.body["metadata"]["name"] == "p2", status=422)

        replies = client.create_many(PODS, [pod(f"p{number}") for number in range(4)])

        assert [reply.status for reply in replies] == [201, 409, 422, 201]
        made = replies[3].found()["metadata"]
        assert made["name"] == "p3"
        assert made["uid"]

    def test_the_object_in_the_way_comes_with_the_409(
        self, server: KubeServer, client: KubeClient
    ) -> None:
        server.put(f"{PODS_PATH}/p", pod("p", attempt="other"))

        [reply] = client.create_many(PODS, [pod("p", attempt="ours")])

        assert (reply.status, reply.reason) == (409, "AlreadyExists")
        assert reply.object is not None
        assert reply.object["metadata"]["annotations"] == {"hekla.io/attempt-uid": "other"}

    def test_a_conflict_over_quota_is_no_existing_object(
        self, server: KubeServer, client: KubeClient
    ) -> None:
        server.on("POST", status=409, reason="Conflict")

        [reply] = client.create_many(PODS, [pod("p")])

        assert (reply.status, reply.reason, reply.object) == (409, "Conflict", None)
        assert server.seen("GET", "/pods/p") == []

    @pytest.mark.parametrize("effect", [True, False], ids=["after", "before"])
    def test_a_connection_lost_around_the_effect_makes_one_pod(
        self, server: KubeServer, client: KubeClient, *, effect: bool
    ) -> None:
        server.on("POST", hang_up=True, effect=effect)

        [reply] = client.create_many(PODS, [pod("p", attempt="ours")])

        assert reply.status == 201
        assert reply.object == server.object(f"{PODS_PATH}/p")

    def test_without_a_mark_a_lost_answer_shows_what_is_there(
        self, server: KubeServer, client: KubeClient
    ) -> None:
        server.on("POST", hang_up=True)

        [reply] = client.create_many(CONFIGMAPS, [pod("c")])

        assert (reply.status, reply.reason) == (409, "AlreadyExists")
        assert reply.object is not None
        assert len(server.seen("POST")) == 1, "nobody could tell whose the second would be"

    @pytest.mark.parametrize(
        ("effect", "status", "reason"), [(True, 201, ""), (False, 0, "Timeout")]
    )
    def test_a_time_out_is_settled_by_a_look(
        self, server: KubeServer, client: KubeClient, *, effect: bool, status: int, reason: str
    ) -> None:
        server.on("POST", stall=30, effect=effect)

        began = time.monotonic()
        [reply] = client.create_many(PODS, [pod("p", attempt="ours")], timeout=1)

        assert (reply.status, reply.reason) == (status, reason)
        assert time.monotonic() - began < 20, "nor was the answer waited for"

    @pytest.mark.parametrize(("effect", "status"), [(True, 201), (False, 500)])
    def test_a_server_error_may_hide_a_success(
        self, server: KubeServer, client: KubeClient, *, effect: bool, status: int
    ) -> None:
        server.on("POST", status=500, reason="InternalError", effect=effect)

        [reply] = client.create_many(PODS, [pod("p", attempt="ours")])

        assert reply.status == status

    def test_being_asked_to_wait_is_waited_for(
        self, server: KubeServer, client: KubeClient
    ) -> None:
        server.on("POST", status=429, headers={"Retry-After": "1"})

        began = time.monotonic()
        [reply] = client.create_many(PODS, [pod("p")])

        assert reply.status == 201
        assert time.monotonic() - began >= 1

    def test_too_long_a_wait_is_told(self, server: KubeServer, client: KubeClient) -> None:
        server.on("POST", status=429, reason="TooManyRequests", headers={"Retry-After": "60"})

        [reply] = client.create_many(PODS, [pod("p")], timeout=5)

        assert (reply.status, reply.reason) == (429, "TooManyRequests")

    def test_a_create_that_lands_late_is_unknown_and_then_there(
        self, server: KubeServer, client: KubeClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("hekla.kube.late.LATE", 0.5)
        with failpoint.armed("kube.post-late=raise@2"):
            replies = client.create_many(PODS, [pod("p0", attempt="a"), pod("p1", attempt="b")])
        [late] = [f"p{number}" for number, reply in enumerate(replies) if not reply.ok]

        assert sorted((reply.status, reply.reason) for reply in replies) == [
            (0, "Timeout"),
            (201, ""),
        ]
        wait_until(lambda: server.object(f"{PODS_PATH}/{late}"), what="the late pod")

    def test_many_go_at_once_and_never_too_many(
        self, server: KubeServer, tmp_path: Path
    ) -> None:
        server.on("POST", times=14, stall=0.25)  # long enough for seven to be under way
        kubeconfig = server.kubeconfig(tmp_path)

        with (
            KubeClient.start(kubeconfig, isolated=False, concurrency=7) as client,
            ThreadPoolExecutor() as callers,
        ):
            batches = [[pod(f"{a}{number}") for number in range(50)] for a in "ab"]
            replies = list(callers.map(lambda batch: client.create_many(PODS, batch), batches))

        assert {reply.status for batch in replies for reply in batch} == {201}
        assert server.most_at_once == 7


class TestServerAway:
    def test_what_was_never_sent_is_told_so(self, tmp_path: Path) -> None:
        with KubeServer() as gone:
            kubeconfig = gone.kubeconfig(tmp_path)
        with KubeClient.start(kubeconfig, isolated=False) as client:
            [reply] = client.create_many(PODS, [pod("p")], timeout=0.3)
            assert (reply.status, reply.reason) == (0, "NotSent")

            found = client.get(PODS, "ns", "p", timeout=0.3)
            assert (found.status, found.reason) == (0, "Unavailable")

            with pytest.raises(UnavailableError):
                client.list(PODS, timeout=0.3)

    def test_what_time_ran_out_for_before_it_was_sent_is_told_so(self, tmp_path: Path) -> None:
        # A server that takes no connection: its queue is full, and the kernel answers nobody.
        with KubeServer() as server, socket.socket() as full, ExitStack() as queued:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            for _ in range(2):
                waiting = queued.enter_context(socket.socket())
                waiting.settimeout(0)
                waiting.connect_ex(full.getsockname())
            server.port = full.getsockname()[1]
            with KubeClient.start(server.kubeconfig(tmp_path), isolated=False) as client:
                [reply] = client.create_many(PODS, [pod("p")], timeout=0.3)

        assert (reply.status, reply.reason) == (0, "NotSent")

    def test_a_server_that_comes_back_in_time_is_used(self, tmp_path: Path) -> None:
        server = KubeServer(port=free_port())
        kubeconfig = server.kubeconfig(tmp_path)
        with KubeClient.start(kubeconfig, isolated=False) as client:
            replies: list[int] = []
            call = threading.Thread(
                target=lambda: replies.extend(
                    reply.status for reply in client.create_many(PODS, [pod("p")])
                )
            )
            call.start()
            with server:
                call.join(30)

        assert replies == [201]


class TestDelete:
    def test_only_the_pod_that_was_meant_is_deleted(
        self, server: KubeServer, client: KubeClient
    ) -> None:
        uid = server.put(f"{PODS_PATH}/p", pod("p"))["metadata"]["uid"]

        [refused] = client.delete_many([Deletion(PODS, "ns", "p", uid="another")])
        [deleted] = client.delete_many([Deletion(PODS, "ns", "p", uid=uid)])
        [missing] = client.delete_many([Deletion(PODS, "ns", "p", uid=uid)])

        assert [refused.status, deleted.status, missing.status] == [409, 200, 404]

    @pytest.mark.parametrize("finalizers", [[], ["hekla.io/outcome"]], ids=["gone", "going"])
    def test_a_deletion_whose_answer_is_lost_is_seen(
        self, server: KubeServer, client: KubeClient, finalizers: list[str]
    ) -> None:
        uid = server.put(f"{PODS_PATH}/p", pod("p", finalizers=finalizers))["metadata"]["uid"]
        server.on("DELETE", stall=30)

        [reply] = client.delete_many([Deletion(PODS, "ns", "p", uid=uid)], timeout=1)

        assert reply.status == 200

    def test_a_deletion_that_did_not_happen_is_not_claimed(
        self, server: KubeServer, client: KubeClient
    ) -> None:
        server.put(f"{PODS_PATH}/p", pod("p"))
        server.on("DELETE", stall=30, effect=False)

        [reply] = client.delete_many([Deletion(PODS, "ns", "p")], timeout=0.6)

        assert (reply.status, reply.reason) == (0, "Timeout")


class TestPatch:
    def test_a_patch_is_repeated_until_it_is_answered(
        self, server: KubeServer, client: KubeClient
    ) -> None:
        server.put(f"{PODS_PATH}/p", pod("p", finalizers=["hekla.io/outcome"]))
        server.on("PATCH", hang_up=True)
        server.on("PATCH", hang_up=True, effect=False)
        status = {"status": {"phase": "Running"}}

        [marked, unlocked] = client.patch_many(
            [
                Patch(PODS, "ns", "p", status, subresource="status"),
                Patch(PODS, "ns", "p", {"metadata": {"finalizers": None}}),
            ]
        )

        assert [marked.status, unlocked.status] == [200, 200]
        now = server.object(f"{PODS_PATH}/p")
        assert now is not None
        assert now["status"] == {"phase": "Running"}
        assert "finalizers" not in now["metadata"]
        kinds = {asked.headers["Content-Type"] for asked in server.seen("PATCH")}
        assert kinds == {"application/merge-patch+json"}


class TestBind:
    def bind(self, client: KubeClient, uid: str, node: str = "n1", timeout: float = 5) -> Any:
        return client.bind_many([Binding("ns", "p", uid, node)], timeout=timeout)[0]

    def test_a_pod_is_bound_once_and_to_one_node(
        self, server: KubeServer, client: KubeClient
    ) -> None:
        uid = server.put(f"{PODS_PATH}/p", pod("p"))["metadata"]["uid"]

        stranger = self.bind(client, "another")
        first = self.bind(client, uid)
        again = self.bind(client, uid)
        elsewhere = self.bind(client, uid, "n2")

        assert [stranger.status, first.status, again.status] == [409, 201, 201]
        assert (elsewhere.status, elsewhere.object["spec"]["nodeName"]) == (409, "n1")

    @pytest.mark.parametrize("effect", [True, False], ids=["after", "before"])
    def test_a_connection_lost_around_the_effect_leaves_the_pod_bound(
        self, server: KubeServer, client: KubeClient, *, effect: bool
    ) -> None:
        uid = server.put(f"{PODS_PATH}/p", pod("p"))["metadata"]["uid"]
        server.on("POST", "/binding", hang_up=True, effect=effect)

        reply = self.bind(client, uid)

        assert reply.status == 201
        bound = server.object(f"{PODS_PATH}/p")
        assert bound is not None
        assert bound["spec"]["nodeName"] == "n1"

    @pytest.mark.parametrize(
        ("effect", "status", "reason"), [(True, 201, ""), (False, 0, "Timeout")]
    )
    def test_a_time_out_is_settled_by_a_look(
        self, server: KubeServer, client: KubeClient, *, effect: bool, status: int, reason: str
    ) -> None:
        uid = server.put(f"{PODS_PATH}/p", pod("p"))["metadata"]["uid"]
        server.on("POST", "/binding", stall=30, effect=effect)

        reply = self.bind(client, uid, timeout=1)

        assert (reply.status, reply.reason) == (status, reason)


class TestFence:
    @pytest.fixture
    def fence(self) -> Fence:
        return Fence()

    @pytest.fixture
    def fenced(self, server: KubeServer, tmp_path: Path, fence: Fence) -> Iterator[KubeClient]:
        kubeconfig = server.kubeconfig(tmp_path)
        with KubeClient.start(kubeconfig, isolated=False, fence=fence) as running:
            yield running

    def test_nothing_fenced_is_sent_while_the_fence_is_down(
        self, server: KubeServer, fenced: KubeClient, fence: Fence
    ) -> None:
        server.put(f"{PODS_PATH}/p", pod("p"))

        [bound] = fenced.bind_many([Binding("ns", "p", "u", "n1")])
        [evicted] = fenced.delete_many([Deletion(PODS, "ns", "p")], fenced=True)
        [patched] = fenced.patch_many([Patch(PODS, "ns", "p", {})], fenced=True)

        assert {reply.reason for reply in (bound, evicted, patched)} == {"Fenced"}
        assert server.seen("POST") + server.seen("DELETE") + server.seen("PATCH") == []

    def test_other_writes_pass_a_fence_that_is_down(self, fenced: KubeClient) -> None:
        [made] = fenced.create_many(PODS, [pod("p")])
        [deleted] = fenced.delete_many([Deletion(PODS, "ns", "p")])

        assert [made.status, deleted.status] == [201, 200]

    def test_while_it_is_up_pods_are_bound(
        self, server: KubeServer, fenced: KubeClient, fence: Fence
    ) -> None:
        uid = server.put(f"{PODS_PATH}/p", pod("p"))["metadata"]["uid"]
        fence.extend(time.monotonic() + 60)

        [reply] = fenced.bind_many([Binding("ns", "p", uid, "n1")])

        assert reply.status == 201

    def test_no_bind_is_under_way_longer_than_the_lease(
        self, server: KubeServer, fenced: KubeClient, fence: Fence
    ) -> None:
        uid = server.put(f"{PODS_PATH}/p", pod("p"))["metadata"]["uid"]
        server.on("POST", "/binding", stall=30, effect=False)
        until = time.monotonic() + 0.5
        fence.extend(until)

        [reply] = fenced.bind_many([Binding("ns", "p", uid, "n1")], timeout=20)

        assert reply.reason == "Timeout"
        assert time.monotonic() < until + 15, "nor was its own time waited for"

    def test_a_bind_that_waits_for_the_server_is_not_sent_after_the_lease(
        self, server: KubeServer, fenced: KubeClient, fence: Fence
    ) -> None:
        uid = server.put(f"{PODS_PATH}/p", pod("p"))["metadata"]["uid"]

        def ends_meanwhile(_: Request) -> bool:
            fence.extend(time.monotonic() + 0.5)
            return True

        server.on(
            "POST",
            "/binding",
            # The lease ends while the answer is on its way: no sooner, however long it took.
            only=ends_meanwhile,
            status=429,
            headers={"Retry-After": "1"},
        )
        fence.extend(time.monotonic() + 60)

        [reply] = fenced.bind_many([Binding("ns", "p", uid, "n1")], timeout=20)

        assert reply.reason == "Fenced"
        assert len(server.seen("POST", "/binding")) == 1

    def test_a_bind_is_looked_at_again_when_it_is_about_to_leave(
        self, server: KubeServer, tmp_path: Path
    ) -> None:
        class Ending(Fence):
            """Up when it is first looked at, down from then on."""

            looks = 0

            def left(self) -> float:
                self.looks += 1
                return 5.0 if self.looks == 1 else 0.0

        uid = server.put(f"{PODS_PATH}/p", pod("p"))["metadata"]["uid"]
        kubeconfig = server.kubeconfig(tmp_path)
        with KubeClient.start(kubeconfig, isolated=False, fence=Ending()) as client:
            [reply] = client.bind_many([Binding("ns", "p", uid, "n1")], timeout=2)

        assert (reply.status, reply.reason) == (0, "Fenced")
        assert server.seen("POST", "/binding") == []


class TestRead:
    def test_an_object_is_read_or_missing(self, server: KubeServer, client: KubeClient) -> None:
        stored = server.put("/api/v1/nodes/n1", {})

        assert client.get(NODES, None, "n1").found() == stored
        assert client.get(NODES, None, "n2").status == 404

    def test_a_read_outlasts_a_bad_moment(self, server: KubeServer, client: KubeClient) -> None:
        server.put("/api/v1/nodes/n1", {})
        server.on("GET", hang_up=True)
        server.on("GET", status=503)

        assert client.get(NODES, None, "n1").status == 200

    def test_a_list_is_whole_however_many_pages_it_takes(
        self, server: KubeServer, client: KubeClient
    ) -> None:
        for number in range(1200):
            server.put(f"{PODS_PATH}/p{number}", pod(f"p{number}"))
        server.put("/api/v1/namespaces/other/pods/p", {})
        server.on("GET", only=lambda asked: "continue" in asked.query, status=410)

        items, version = client.list(PODS, "ns", label_selector={"a": "b", "c": "d"})

        assert len(items) == 1200
        assert int(version) == 100 + 1201
        assert {asked.query["labelSelector"] for asked in server.seen("GET")} == {"a=b,c=d"}

    def test_a_closed_client_says_so(self, server: KubeServer, tmp_path: Path) -> None:
        client = KubeClient.start(server.kubeconfig(tmp_path), isolated=False)
        client.close()

        with pytest.raises(UnavailableError, match="closed"):
            client.get(PODS, "ns", "p")
