"""How fast the Kubernetes client is: ``python -m tests.benchmarks.bench_kube``.

The server is a protocol that answers what was prepared, in a process of its own, so that the
client is what is measured (they share the machine's cores, though). The busy parent computes
in Python in another thread all the time, as a session does.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar, cast

import httptools
import orjson

from hekla.kube.client import KubeClient
from hekla.kube.link import new_loop
from hekla.kube.requests import Binding, Deletion
from hekla.kube.resources import PODS

PODS_COUNT = 4_000
EVENTS = 60_000
LISTED = 20_000


def pod(number: int) -> dict[str, Any]:
    """About 1.4 kB, as a pod of a job is."""
    env = [{"name": f"VC_WORKER_{i}_HOSTS", "value": f"job-worker-{i}.job"} for i in range(8)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"job-worker-{number}",
            "namespace": "default",
            "uid": f"00000000-0000-0000-0000-{number:012}",
            "resourceVersion": str(1000 + number),
            "labels": {"volcano.sh/job-name": "job", "volcano.sh/task-index": str(number)},
            "annotations": {"hekla.io/attempt-uid": str(number), "volcano.sh/task-spec": "w"},
        },
        "spec": {
            "schedulerName": "volcano",
            "containers": [
                {
                    "name": "main",
                    "image": "busybox",
                    "command": ["sleep", "60"],
                    "env": env,
                    "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
                }
            ],
        },
        "status": {"phase": "Pending"},
    }


def small(item: dict[str, Any]) -> tuple[str, str, str | None]:
    """What a scheduler might want of a pod."""
    metadata = item["metadata"]
    return metadata["uid"], item["status"]["phase"], item["spec"].get("nodeName")


class Answers(asyncio.Protocol):
    """One connection of the server."""

    created = orjson.dumps(pod(0))
    page = orjson.dumps(
        {
            "metadata": {"resourceVersion": "1000", "continue": "more"},
            "items": [pod(number) for number in range(500)],
        }
    )
    lines: ClassVar = [
        orjson.dumps({"type": "MODIFIED", "object": pod(number)}) + b"\n"
        for number in range(2_000)
    ]
    listed = 0
    pages = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.parser = httptools.HttpRequestParser(self)
        self.url = b""
        self.resumed = asyncio.Event()
        self.resumed.set()

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def pause_writing(self) -> None:
        self.resumed.clear()

    def resume_writing(self) -> None:
        self.resumed.set()

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_message_complete(self) -> None:
        url, self.url = self.url, b""
        if b"sendInitialEvents=" in url:
            self.say(422, b"{}")
        elif b"watch=" in url:
            self.watch = asyncio.get_running_loop().create_task(self.stream())
        elif self.parser.get_method() == b"GET":
            self.list()
        else:
            self.say(201, self.created)

    def list(self) -> None:
        Answers.listed += 500
        page = self.page
        if Answers.listed >= Answers.pages:
            Answers.listed = 0
            page = page.replace(b'"continue":"more"', b'"continue":""')
        self.say(200, page)

    def say(self, status: int, body: bytes) -> None:
        head = b"HTTP/1.1 %d OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self.transport.write(head % (status, len(body)) + body)

    async def stream(self) -> None:
        self.transport.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for first in range(0, EVENTS, 40):
            start = first % len(self.lines)
            chunk = b"".join(self.lines[start : start + 40])
            self.transport.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            await self.resumed.wait()


def serve(pipe: Connection, listed: int) -> None:
    """The server's process."""
    Answers.pages = listed

    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Answers, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await loop.run_in_executor(None, pipe.recv)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())


@contextmanager
def server(listed: int = 0) -> Iterator[str]:
    """A server that lists so many pods; gives the path of a kubeconfig."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, listed))
    process.start()
    content = {
        "current-context": "bench",
        "contexts": [{"name": "bench", "context": {"cluster": "bench"}}],
        "clusters": [
            {"name": "bench", "cluster": {"server": f"http://127.0.0.1:{ours.recv()}"}}
        ],
    }
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(orjson.dumps(content))
        yield file.name
    ours.send(None)
    process.join()


@contextmanager
def busy(*, on: bool) -> Iterator[None]:
    """Compute in another thread, holding the GIL as long as it is let."""
    stop = threading.Event()

    def compute() -> None:
        while not stop.is_set():
            sum(number * number for number in range(10_000))

    thread = threading.Thread(target=compute)
    if on:
        thread.start()
    yield
    stop.set()
    if on:
        thread.join()


def writes(client: KubeClient) -> Iterator[tuple[str, float]]:
    """Writes a second."""
    pods = [pod(number) for number in range(PODS_COUNT)]
    client.create_many(PODS, pods[:200])
    began = time.perf_counter()
    client.create_many(PODS, pods)
    yield "creates/s", PODS_COUNT / (time.perf_counter() - began)
    began = time.perf_counter()
    client.bind_many([Binding("default", f"p{n}", "u", "node") for n in range(PODS_COUNT)])
    yield "binds/s", PODS_COUNT / (time.perf_counter() - began)
    began = time.perf_counter()
    client.delete_many([Deletion(PODS, "default", f"p{n}") for n in range(PODS_COUNT)])
    yield "deletes/s", PODS_COUNT / (time.perf_counter() - began)
    began = time.perf_counter()
    for number in range(300):
        client.create_many(PODS, pods[number : number + 1])
    yield "one at a time, creates/s", 300 / (time.perf_counter() - began)


def watching(client: KubeClient, project: str | None, name: str) -> Iterator[tuple[str, float]]:
    """Objects a second."""
    began = time.perf_counter()
    watch = client.watch(PODS, project=project)
    listed = sum(1 for _ in watch.take(60)[0].object)
    yield f"listed {name}, objects/s", listed / (time.perf_counter() - began)
    began = time.perf_counter()
    seen = batches = 0
    while seen < EVENTS:
        seen += len(watch.take(60))
        batches += 1
    yield f"watched {name}, events/s", EVENTS / (time.perf_counter() - began)
    yield f"watched {name}, events a batch", EVENTS / batches
    watch.close()


def main() -> None:
    """Print one line for each figure."""
    projection = f"{small.__module__}:small"
    if small.__module__ == "__main__":
        projection = "tests.benchmarks.bench_kube:small"
    for isolated in (False, True):
        for loaded in (False, True):
            place = "process" if isolated else "thread"
            state = "busy parent" if loaded else "idle parent"
            with (
                server(LISTED) as kubeconfig,
                KubeClient.start(kubeconfig, isolated=isolated) as client,
                busy(on=loaded),
            ):
                for figures in (
                    writes(client),
                    watching(client, None, "whole"),
                    watching(client, projection, "projected"),
                ):
                    for name, figure in figures:
                        sys.stdout.write(f"{place}, {state}: {name}: {figure:,.0f}\n")
                        sys.stdout.flush()


if __name__ == "__main__":
    main()
