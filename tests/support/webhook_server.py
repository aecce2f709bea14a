"""Admission webhooks of tests: a real HTTPS server whose answers the test writes."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.certificates import Authority

Object = dict[str, Any]
Reply = Object | bytes | int
"""Fields of a response, the whole body, or a code of HTTP."""
Verdict = Callable[[Object], Reply]


class Asked(NamedTuple):
    """One question that arrived."""

    path: str
    query: str
    client: tuple[str, int]
    review: Object

    @property
    def request(self) -> Object:
        found: Object = self.review["request"]
        return found


class WebhookServer:
    """Answers on the paths that ``on`` names, and remembers what it was asked."""

    def __init__(self, folder: Path, hosts: str = "IP:127.0.0.1") -> None:
        folder.mkdir(exist_ok=True)
        self.authority = Authority(folder)
        pair = self.authority.issue("webhook", hosts=hosts)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(pair.certificate, pair.key)
        self._verdicts: dict[str, Verdict] = {}
        self.asked: list[Asked] = []
        self._connections: list[socket.socket] = []
        self._server: ThreadingHTTPServer | None = None
        self.port = 0

    @property
    def bundle(self) -> str:
        """Whom to believe, as registrations have it."""
        return base64.b64encode(self.authority.root.certificate.read_bytes()).decode()

    def on(self, path: str, verdict: Verdict | Reply) -> str:
        """Answer so there; gives the URL."""
        self._verdicts[path] = verdict if callable(verdict) else lambda _: verdict
        return f"https://127.0.0.1:{self.port}{path}"

    def config(self, path: str, verdict: Verdict | Reply) -> Object:
        """The same as the ``clientConfig`` of a registration."""
        return {"url": self.on(path, verdict), "caBundle": self.bundle}

    def seen(self, path: str) -> list[Object]:
        """The requests of the questions that came to a path."""
        return [asked.request for asked in list(self.asked) if asked.path == path]

    def start(self) -> None:
        server = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler())
        self.port = server.server_port
        server.socket = self._context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        self._server = server

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            for connection in self._connections:
                with suppress(OSError):  # closed by the client
                    connection.shutdown(socket.SHUT_RDWR)
            self._connections.clear()
            self._server = None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        asked, verdicts, connections = self.asked, self._verdicts, self._connections

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                connections.append(self.connection)

            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                path, _, query = self.path.partition("?")
                asked.append(Asked(path, query, self.client_address[:2], review))
                reply = verdicts[path](review["request"])
                if isinstance(reply, int):
                    self.send_error(reply)
                    return
                body = reply if isinstance(reply, bytes) else answer(review, reply)
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@contextmanager
def serving(folder: Path, hosts: str = "IP:127.0.0.1") -> Iterator[WebhookServer]:
    """A server for as long as the block lasts."""
    server = WebhookServer(folder, hosts)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def answer(review: Object, response: Mapping[str, Any]) -> bytes:
    """The body of an answer; what is not said is allowed, with the question's uid."""
    told = {"uid": review["request"]["uid"], "allowed": True, **response}
    value = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": told}
    return json.dumps(value).encode()


def patching(*operations: Object, **more: Any) -> Object:
    """A response that changes the object."""
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"patchType": "JSONPatch", "patch": patch, **more}


def registration(name: str, *webhooks: Object, mutates: bool = False) -> Object:
    """A configuration; ``webhooks`` say how they differ from asking about config maps."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{'Mutating' if mutates else 'Validating'}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": f"w{index}.{name}.test",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "rules": [rule("configmaps", "CREATE")],
                **webhook,
            }
            for index, webhook in enumerate(webhooks)
        ],
    }


def rule(resource: str, *operations: str, groups: Sequence[str] = ("",), **more: Any) -> Object:
    """One rule about a resource of the core group, unless it says otherwise."""
    return {
        "operations": list(operations),
        "apiGroups": list(groups),
        "apiVersions": ["v1"],
        "resources": [resource],
        **more,
    }
