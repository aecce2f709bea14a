"""A local cluster in a process of its own, for tests that talk to it as anybody would."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.support.waiting import wait_until

Object = dict[str, Any]


class Answer(NamedTuple):
    """What the API answered."""

    code: int
    body: Any
    warnings: list[str] = []  # noqa: RUF012 - nobody writes into it


class LocalCluster:
    """One local cluster, which can be killed and started again on the same folder and port."""

    def __init__(self, home: Path, *flags: str) -> None:
        self.home = home
        self.port = 0
        self._flags = flags
        self._process: subprocess.Popen[str] | None = None

    @property
    def kubeconfig(self) -> Path:
        return self.home / "kubeconfig"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> LocalCluster:
        """Start it and wait until it serves."""
        words = [sys.executable, "-m", "hekla.local", f"--home={self.home}"]
        self._process = subprocess.Popen(
            [*words, f"--port={self.port}", *self._flags],
            stdout=subprocess.PIPE,
            text=True,
            env={
                key: value for key, value in os.environ.items() if not key.startswith("HEKLA_")
            },
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert "ready" in line, f"the local cluster did not start: {line!r}"
        url = yaml.safe_load(self.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        self.port = int(url.rpartition(":")[2])
        return self

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send it a signal and wait until it is gone; its exit code."""
        assert self._process is not None
        self._process.send_signal(number)
        code = self._process.wait(timeout=20)
        if self._process.stdout is not None:
            self._process.stdout.close()
        return code

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.end(signal.SIGKILL)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """One request; the body is sent as JSON unless it is bytes."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            sent = ({"Content-Type": content_type} if data is not None else {}) | (
                headers or {}
            )
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            raw = response.read()
        finally:
            connection.close()
        warnings = response.headers.get_all("Warning") or []
        if response.headers.get_content_type() == "application/json":
            return Answer(response.status, json.loads(raw), warnings)
        return Answer(response.status, raw.decode(), warnings)

    def make(self, path: str, body: Object) -> Object:
        """Create an object, which must succeed."""
        answer = self.call("POST", path, body)
        assert answer.code == 201, answer.body
        made: Object = answer.body
        return made

    def get(self, path: str) -> Object:
        """Read an object, which must be there."""
        answer = self.call("GET", path)
        assert answer.code == 200, answer.body
        found: Object = answer.body
        return found

    def merge(self, path: str, patch: Any) -> Answer:
        """Send a merge patch."""
        content_type = "application/merge-patch+json"
        return self.call("PATCH", path, patch, content_type=content_type)

    def pod(self, name: str, namespace: str = "default") -> Object:
        """A pod as it is now."""
        return self.get(f"/api/v1/namespaces/{namespace}/pods/{name}")

    def phase(self, name: str) -> str:
        """A pod's phase; ``gone`` when there is no such pod."""
        answer = self.call("GET", f"/api/v1/namespaces/default/pods/{name}")
        return "gone" if answer.code == 404 else str(answer.body["status"]["phase"])

    def wait_for_phase(self, name: str, *phases: str, timeout: float = 20) -> Object:
        """The pod, once it has one of the phases; ``gone`` has no pod."""

        def found() -> list[Object]:
            answer = self.call("GET", f"/api/v1/namespaces/default/pods/{name}")
            if answer.code == 404:
                return [{}] if "gone" in phases else []
            return [answer.body] if answer.body["status"]["phase"] in phases else []

        return wait_until(found, timeout=timeout, what=f"{name} to be {phases}")[0]

    @contextmanager
    def watching(self, path: str) -> Iterator[Watch]:
        """A watch, read in the background."""
        watch = Watch(self.port, path)
        try:
            yield watch
        finally:
            watch.close()


class Watch:
    """The events of a watch so far."""

    def __init__(self, port: int, path: str) -> None:
        self.events: list[Object] = []
        self.ended = threading.Event()
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        self._connection.request("GET", path)
        self._socket = self._connection.sock
        self._response = self._connection.getresponse()
        self.code = self._response.status
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def names(self) -> list[tuple[str, str]]:
        """The type of each event and the name of its object."""
        return [
            (event["type"], event["object"].get("metadata", {}).get("name", ""))
            for event in list(self.events)
        ]

    def wait_for(self, count: int, *, timeout: float = 20) -> list[tuple[str, str]]:
        """The first events, once there are so many."""
        wait_until(
            lambda: len(self.events) >= count, timeout=timeout, what=f"{count} watch events"
        )
        return self.names()

    def close(self) -> None:
        """Cut the connection."""
        with suppress(OSError):  # ended by the server
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join(timeout=5)
        self._response.close()
        self._connection.close()

    def _read(self) -> None:
        try:
            for line in self._response:
                self.events.append(json.loads(line))
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass  # closed by the test
        finally:
            self.ended.set()


def make_pod(name: str, *command: str, node: str = "", **spec: Any) -> Object:
    """A pod of one container that runs ``command`` and is not started again."""
    container: Object = {"name": "main", "image": "none"}
    if command:
        container["command"] = list(command)
    wanted: Object = {"restartPolicy": "Never", "containers": [container], **spec}
    if node:
        wanted["nodeName"] = node
    return {"metadata": {"name": name}, "spec": wanted}
