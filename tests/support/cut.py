"""A proxy before Postgres that loses what it is told to lose."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from pathlib import Path

Address = Path | tuple[str, int]
"""A Unix socket, or host and port."""


class Loss(Enum):
    """What is lost of the next commit; the connection breaks with it."""

    NOTHING = auto()
    THE_COMMIT = auto()
    THE_ANSWER = auto()


class Proxy:
    """Connections to a server, by TCP."""

    def __init__(self, server: Address) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self.loss = Loss.NOTHING
        self.port: int = self._listener.getsockname()[1]

    @classmethod
    @contextmanager
    def before(cls, server: Address) -> Iterator[Proxy]:
        """A proxy before the server that listens there, until the block ends."""
        proxy = cls(server)
        proxy._start(proxy._accept)
        try:
            yield proxy
        finally:
            proxy._listener.shutdown(socket.SHUT_RDWR)
            proxy._listener.close()
            for thread in proxy._threads:
                thread.join()

    def _start(self, run: object, *args: socket.socket) -> None:
        thread = threading.Thread(target=run, args=args)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = self._connect()
                self._start(self._forward, client, server)
                self._start(self._answer, server, client)

    def _connect(self) -> socket.socket:
        if not isinstance(self._server, Path):
            return socket.create_connection(self._server)
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(self._server))
        return server

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                commits = b"COMMIT" in data
                if commits and self.loss is Loss.THE_COMMIT:
                    break
                if commits and self.loss is Loss.THE_ANSWER:
                    _close(client)
                server.sendall(data)
        if self.loss is Loss.THE_ANSWER:
            # The server hears that nobody listens only after it has done it.
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_WR)
            return
        _close(client)
        _close(server)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)
        _close(client)
        _close(server)


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
