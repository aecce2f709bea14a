"""uvicorn with TLS, in a thread of its own beside the gRPC server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import timedelta
from functools import partial
from typing import Any, Final, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from hekla.domain.errors import UnavailableError
from hekla.rpc.listen import cannot_listen, split
from services.webhook.https.authority import Served
from services.webhook.https.keeping import install

HEAD_LIMIT: Final = 256 * 2**10
"""Bytes of a request before its body, roughly."""
CONNECTIONS: Final = 1024
START_TIMEOUT: Final = 10.0
_BACKLOG: Final = 512
_KEEP_ALIVE: Final = 120
_FAREWELL: Final = 0.5

log = logging.getLogger(__name__)


def listen(address: str) -> socket.socket:
    """A socket on ``host:port`` that is bound, and answers once the server runs.

    Raises:
        ListenError: that is not possible.
    """
    host, port = split(address)
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit it. Without it the body of an answer waits for the peer to acknowledge
    # the head, which takes 40 ms: asyncio does not set it for sockets that are given to it.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise cannot_listen(address, error) from error
    return listener


class TlsServer:
    """Serves an ASGI application on a socket, from the first certificate on."""

    def __init__(
        self,
        app: Any,
        listener: socket.socket,
        *,
        read_timeout: timedelta,
        drain_timeout: timedelta,
    ) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._context.set_alpn_protocols(["http/1.1"])
        self._listener = listener
        self._drain = drain_timeout
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="https", daemon=True)
        self._server = _Server(
            uvicorn.Config(
                app,
                http=cast("Any", partial(_Connection, read_timeout=read_timeout)),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                backlog=_BACKLOG,
                limit_concurrency=CONNECTIONS,
                timeout_keep_alive=_KEEP_ALIVE,
                timeout_graceful_shutdown=max(1, round(drain_timeout.total_seconds())),
                ssl_context_factory=lambda _config, _default: self._context,
            )
        )

    @property
    def running(self) -> bool:
        """Whether it serves."""
        return self._server.started and self._thread.is_alive()

    def use(self, served: Served) -> None:
        """Show ``served`` to whoever connects from now on.

        Raises:
            OSError: it is no certificate with its key.
            UnavailableError: the server does not start.
        """
        install(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), served)  # a bad one changes nothing
        if self._loop is None:
            install(self._context, served)
            self._start()
            return
        # Between two steps of its loop no handshake is under way that could see half of it.
        done: Future[None] = Future()
        self._loop.call_soon_threadsafe(self._install, served, done)
        done.result(START_TIMEOUT)

    def _install(self, served: Served, done: Future[None]) -> None:
        try:
            install(self._context, served)
        except Exception as error:
            done.set_exception(error)
        else:
            done.set_result(None)

    def _start(self) -> None:
        self._thread.start()
        deadline = time.monotonic() + START_TIMEOUT
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise UnavailableError("the HTTPS server does not start; see the log")
            time.sleep(0.01)

    def _run(self) -> None:
        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            await self._server.serve(sockets=[self._listener])

        try:
            asyncio.run(serve())
        except Exception:  # a thread that ends without a word would not be noticed
            log.exception("the HTTPS server ended")

    def close(self) -> None:
        """Let reviews under way finish, for the time there is, and end."""
        if self._thread.ident is not None:
            self._server.should_exit = True
            self._thread.join(self._drain.total_seconds() + 2)
        self._listener.close()


class _Server(uvicorn.Server):
    """uvicorn, but the signals are not its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Connection(HttpToolsProtocol):
    """uvicorn's, but who says slowly what it wants, or without an end, is cut off."""

    def __init__(self, *args: Any, read_timeout: timedelta, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._read_timeout = read_timeout.total_seconds()
        self._timer: asyncio.TimerHandle | None = None
        self._head = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._head += len(data)
        super().data_received(data)
        if self._timer is not None and self._head > HEAD_LIMIT:
            self.transport.abort()

    def shutdown(self) -> None:
        super().shutdown()
        if self._idle():
            # A peer that is idle need not answer the end of TLS, which would be waited for.
            self.loop.call_later(_FAREWELL, self.transport.abort)

    def _idle(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or cycle.response_complete

    def on_message_begin(self) -> None:
        self._wait()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._arrived()
        super().on_headers_complete()

    def _wait(self) -> None:
        self._arrived()
        self._timer = self.loop.call_later(self._read_timeout, self.transport.abort)

    def _arrived(self) -> None:
        self._head = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
