from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hekla import failpoint
from hekla.domain.errors import UnavailableError
from hekla.kube.client import KubeClient
from hekla.kube.events import WatchEvent
from hekla.kube.fence import Fence, Progress
from hekla.kube.requests import Binding, Reply
from hekla.kube.resources import PODS
from hekla.kube.subscription import Subscription
from tests.support import projections
from tests.support.kube_server import KubeServer
from tests.support.waiting import wait_until

PODS_PATH = "/api/v1/namespaces/ns/pods"


def pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns"}}


def alive(pid: int) -> bool:
    """Whether the process runs; one that is dead but not waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.fixture
def server() -> Iterator[KubeServer]:
    with KubeServer() as running:
        yield running


@pytest.fixture
def client(server: KubeServer, tmp_path: Path) -> Iterator[KubeClient]:
    with KubeClient.start(server.kubeconfig(tmp_path)) as running:
        yield running


def io_pid(client: KubeClient) -> int:
    return wait_until(lambda: client.io_pid or 0, what="the I/O process")


def taken_until(watch: Subscription, kind: str) -> list[WatchEvent]:
    """The batch with the first event of a kind."""
    while batch := watch.take(20):
        if kind in {event.type for event in batch}:
            return batch
    raise AssertionError(f"no {kind} came")


def test_writes_and_watches_pass_through_another_process(
    server: KubeServer, client: KubeClient
) -> None:
    watch = client.watch(PODS, project="tests.support.projections:process_id")
    assert len(watch.take(20)) == 1

    replies = client.create_many(PODS, [pod(f"p{number}") for number in range(50)])
    events: list[WatchEvent] = []
    while len(events) < 50:
        events += watch.take(20)

    assert {reply.status for reply in replies} == {201}
    assert replies[7].object == server.object(f"{PODS_PATH}/p7")
    assert {event.object for event in events} == {client.io_pid}
    assert client.io_pid != os.getpid()


def test_a_killed_process_fails_what_it_was_doing_and_is_replaced(
    server: KubeServer, client: KubeClient
) -> None:
    watch = client.watch(PODS)
    watch.take(20)
    server.on("POST", stall=60)
    raised = threading.Event()

    def create() -> None:
        with pytest.raises(UnavailableError, match="died"):
            client.create_many(PODS, [pod("stalled")])
        raised.set()

    threading.Thread(target=create, daemon=True).start()
    wait_until(lambda: server.seen("POST"), what="the create")

    os.kill(io_pid(client), signal.SIGKILL)

    assert raised.wait(20)
    [reply] = client.create_many(PODS, [pod("after")])
    assert reply.status == 201
    assert taken_until(watch, "RELISTED")
    server.put(f"{PODS_PATH}/later", {})
    seen: set[str] = set()
    while "later" not in seen:
        seen |= {event.object["metadata"]["name"] for event in taken_until(watch, "ADDED")}


def test_creates_that_dawdle_land_late_and_hold_up_nobody(
    server: KubeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(failpoint.VARIABLE, "kube.post-late=sleep 1@1")
    with KubeClient.start(server.kubeconfig(tmp_path)) as client:
        began = time.monotonic()
        replies = client.create_many(PODS, [pod("p0"), pod("p1")])
        [late] = [number for number in (0, 1) if not replies[number].ok]
        landed = server.object(f"{PODS_PATH}/p{late}")
        assert landed is None or time.monotonic() - began >= 1, "it was to sleep so long"

        wait_until(lambda: server.object(f"{PODS_PATH}/p{late}"), what="the late pod")

    assert replies[late].reason == "Timeout"


def test_a_log_does_not_survive_its_process(server: KubeServer, client: KubeClient) -> None:
    server.logs["p"] = [b"one\n"]
    log = client.logs("ns", "p", follow=True)
    assert next(log) == b"one\n"

    os.kill(io_pid(client), signal.SIGKILL)

    with pytest.raises(UnavailableError, match="died"):
        next(log)


def test_a_stopped_process_does_not_hold_up_its_callers(
    server: KubeServer, client: KubeClient
) -> None:
    pid = io_pid(client)
    os.kill(pid, signal.SIGSTOP)

    with pytest.raises(UnavailableError, match="does not answer"):
        client.get(PODS, "ns", "p", timeout=0.1)

    os.kill(pid, signal.SIGCONT)
    assert client.get(PODS, "ns", "p", timeout=20).status == 404


def test_signals_to_the_group_leave_it_to_its_parent(client: KubeClient) -> None:
    pid = io_pid(client)

    os.kill(pid, signal.SIGTERM)
    os.kill(pid, signal.SIGINT)

    assert client.get(PODS, "ns", "p", timeout=20).status == 404
    assert client.io_pid == pid
    assert os.getpgid(pid) == os.getpgid(0)


def test_closing_ends_the_process(server: KubeServer, tmp_path: Path) -> None:
    with KubeClient.start(server.kubeconfig(tmp_path)) as client:
        pid = io_pid(client)

    assert not alive(pid)
    assert client.io_pid is None


STARTER = """
import sys, time
from hekla.kube.client import KubeClient
client = KubeClient.start(sys.argv[1])
print(client.io_pid, flush=True)
time.sleep(600)
"""


def test_it_dies_with_its_parent(server: KubeServer, tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTER, server.kubeconfig(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        os.kill(pid, signal.SIGSTOP)  # so that it cannot end by itself
        assert alive(pid)

        parent.kill()

        wait_until(lambda: not alive(pid), what="the end of the I/O process")


def test_a_companion_keeps_the_fence_up_while_its_parent_moves(
    server: KubeServer, tmp_path: Path
) -> None:
    fence, progress = Fence(), Progress()
    with KubeClient.start(
        server.kubeconfig(tmp_path),
        fence=fence,
        progress=progress,
        companion=projections.renewal,
    ):
        assert fence.left() == 0

        def moved() -> float:
            progress.move()
            return fence.left()

        wait_until(moved, what="the fence to rise")
        wait_until(lambda: fence.left() == 0, what="the fence to fall when nothing moves")


def test_a_companion_that_fails_is_called_again(server: KubeServer, tmp_path: Path) -> None:
    fence, notes = Fence(), tmp_path / "notes"
    with KubeClient.start(
        server.kubeconfig(tmp_path),
        fence=fence,
        progress=Progress(),
        companion=projections.Stumbling(notes),
    ) as client:
        wait_until(fence.left, what="the second call")

        assert int(notes.read_text()) == client.io_pid


def test_a_process_stopped_past_the_lease_sends_no_bind_afterwards(
    server: KubeServer, tmp_path: Path
) -> None:
    uid = server.put(f"{PODS_PATH}/p", pod("p"))["metadata"]["uid"]
    fence = Fence()
    replies: list[Reply] = []
    with KubeClient.start(server.kubeconfig(tmp_path), fence=fence) as client:
        fence.extend(time.monotonic() + 0.5)
        os.kill(io_pid(client), signal.SIGSTOP)
        call = threading.Thread(
            target=lambda: replies.extend(client.bind_many([Binding("ns", "p", uid, "n1")]))
        )
        call.start()
        wait_until(lambda: fence.left() == 0, what="the lease to end")
        os.kill(io_pid(client), signal.SIGCONT)
        call.join(30)

    assert [reply.reason for reply in replies] == ["Fenced"]
    assert server.seen("POST", "/binding") == []
