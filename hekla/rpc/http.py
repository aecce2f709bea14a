"""The small HTTP server beside gRPC: is the process alive, is it ready, how is it doing."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET6, AddressFamily
from typing import Any, Final

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from hekla.rpc.listen import cannot_listen, split
from hekla.telemetry import metrics  # noqa: F401 - /metrics shows the whole table

Check = Callable[[], str | None]
"""Answers why the process is not ready, or None."""

STOP_SECONDS: Final = 0.1
"""How long it takes to notice that it is to stop."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Probes:
    """A server of probes that runs."""

    address: str
    """``host:port``, with the port that was bound."""


@contextmanager
def probes(listen: str, *, ready: Mapping[str, Check]) -> Iterator[Probes]:
    """Serve ``/healthz``, ``/readyz`` and ``/metrics`` until the block ends.

    ``/healthz`` is 200 as long as the process lives, whatever it depends on: else a database
    that is away would have every process started again. ``/readyz`` is 503 with the reasons
    while any check of ``ready`` has one.

    Raises:
        ListenError: nothing can listen on ``listen``.
    """
    host, port = split(listen)
    try:
        server = _server(host, port, ready)
    except OSError as error:
        raise cannot_listen(listen, error) from error
    thread = threading.Thread(
        target=server.serve_forever, args=[STOP_SECONDS], name="probes", daemon=True
    )
    thread.start()
    try:
        yield Probes(address=f"{listen.rpartition(':')[0]}:{server.server_address[1]}")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def reasons(ready: Mapping[str, Check]) -> dict[str, str]:
    """Why the process is not ready, by check; empty when it is."""
    found: dict[str, str] = {}
    for name, check in ready.items():
        try:
            reason = check()
        except Exception as error:
            reason = str(error) or type(error).__name__
        if reason is not None:
            found[name] = reason
    return found


def _server(host: str, port: int, ready: Mapping[str, Check]) -> ThreadingHTTPServer:
    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False
        request_queue_size = 128
        address_family = AF_INET6 if ":" in host else AddressFamily.AF_INET

        def handle_error(self, request: Any, client_address: Any) -> None:
            log.debug("probe failed", exc_info=True, extra={"client": str(client_address)})

    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # seconds for a client to say what it wants
        server_version = "hekla"
        sys_version = ""

        def do_GET(self) -> None:
            status, kind, body = _answer(self.path.partition("?")[0], ready)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 - the library finds methods by these names

        def log_message(self, *_: Any) -> None:
            """Probes come every second; none is worth a line."""

    return Server((host, port), Handler)


def _answer(path: str, ready: Mapping[str, Check]) -> tuple[HTTPStatus, str, bytes]:
    if path == "/healthz":
        return HTTPStatus.OK, "text/plain", b"ok\n"
    if path == "/readyz":
        why = reasons(ready)
        status = HTTPStatus.SERVICE_UNAVAILABLE if why else HTTPStatus.OK
        body = json.dumps({"ready": not why, "reasons": why}).encode() + b"\n"
        return status, "application/json", body
    if path == "/metrics":
        return HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest()
    return HTTPStatus.NOT_FOUND, "text/plain", b"there are /healthz, /readyz and /metrics\n"
