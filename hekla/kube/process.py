"""An engine in a process of its own, started again whenever it dies.

Messages go over two sockets, one for each direction, so that a child that does not read
cannot keep the parent from reading. The child ends with its parent: it is killed when the
thread that started it ends, and stops by itself when its socket closes.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from typing import Final, NamedTuple, Protocol

from hekla.domain.errors import UnavailableError
from hekla.kube.backoff import backoff
from hekla.kube.link import STOP_TIMEOUT, Aside, Receiver
from hekla.kube.service import Settings
from hekla.kube.wire import LENGTH, FromEngine, ToEngine, frame

START_TIMEOUT: Final = 60.0  # seconds until the first child must be there
SEND_TIMEOUT: Final = 10.0  # seconds after which a child that does not read is given up
STEADY: Final = 30.0  # seconds a child must have lived for its death to count as the first

log = logging.getLogger(__name__)


class Hello(NamedTuple):
    """What the child is told first."""

    parent: int
    path: list[str]
    """The parent's ``sys.path``: projections and companions are found by it."""
    service: str
    """Whose log lines they are."""
    settings: Settings
    companion: bytes
    """Pickled by itself: it may need ``path`` to be set."""


class Ready(NamedTuple):
    """What the child says first."""


class ProcessLink:
    """Keeps a child running and passes messages to and fro."""

    def __init__(
        self, settings: Settings, aside: Aside, receiver: Receiver, *, service: str
    ) -> None:
        self._aside = aside
        self._receiver = receiver
        self._hello = Hello(
            parent=os.getpid(),
            path=list(sys.path),
            service=service,
            settings=settings,
            companion=pickle.dumps(aside.companion),
        )
        self._state = threading.Condition()
        self._sender: socket.socket | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._closing = threading.Event()
        self._sending = threading.Lock()
        self._thread = threading.Thread(target=self._keep, name="kube", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """The child's process id, while there is one."""
        child = self._child
        return child.pid if child is not None else None

    def wait(self, timeout: float) -> bool:
        """Wait for a child to be there; return whether it is."""
        with self._state:
            return self._state.wait_for(lambda: self._sender is not None, timeout)

    def send(self, message: ToEngine, timeout: float) -> None:
        """Hand a message over; waits up to ``timeout`` seconds for a child to be there.

        Raises:
            UnavailableError: there is none, or it does not read.
        """
        data = frame(message)
        with self._state:
            self._state.wait_for(
                lambda: self._sender is not None or self._closing.is_set(), timeout
            )
            sender = self._sender
        if sender is None:
            raise UnavailableError("the Kubernetes I/O process is not running")
        try:
            with self._sending:
                sender.sendall(data)
        except OSError as error:
            with self._state:  # half a frame may be written: it is of no use any more
                if self._sender is sender and self._child is not None:
                    self._child.kill()
            raise UnavailableError(f"the Kubernetes I/O process is lost: {error}") from error

    def close(self) -> None:
        """End the child, kindly at first."""
        self._closing.set()
        with self._state:
            if self._sender is not None:
                self._sender.shutdown(socket.SHUT_RDWR)
            elif self._child is not None:
                self._child.kill()
            self._state.notify_all()
        self._thread.join(2 * STOP_TIMEOUT)

    def _keep(self) -> None:
        """Start child after child. Always from this thread: a child dies with its starter."""
        deaths = 0
        while not self._closing.is_set():
            began = time.monotonic()
            code: int | None = None
            try:
                code = self._live()
            except Exception:  # the loop goes on: without a child nothing works
                log.exception("the Kubernetes I/O process cannot be kept")
            deaths = 1 if time.monotonic() - began > STEADY else deaths + 1
            if not self._closing.is_set():
                log.error(
                    "the Kubernetes I/O process ended", extra={"code": code, "deaths": deaths}
                )
                self._closing.wait(backoff(deaths))

    def _live(self) -> int:
        """Start a child and pass on what it says until it ends; its exit code."""
        with ExitStack() as open_sockets:
            ours_out, theirs_in = socket.socketpair()
            ours_in, theirs_out = socket.socketpair()
            for one in (ours_in, theirs_in, theirs_out):
                open_sockets.enter_context(one)
            open_sockets.callback(self._close, ours_out)
            fence, progress = self._aside.fence.fileno(), self._aside.progress.fileno()
            inherited = [theirs_in.fileno(), theirs_out.fileno(), fence, progress]
            child = subprocess.Popen(
                [sys.executable, "-m", "hekla.kube.child", *map(str, inherited)],
                stdin=subprocess.DEVNULL,
                pass_fds=inherited,
            )
            theirs_in.close()
            theirs_out.close()
            with self._state:
                self._child = child
            try:
                self._converse(ours_out, ours_in)
            finally:
                with self._state:
                    self._sender = self._child = None
                self._receiver.lost()
                code = _end(child)
        return code

    def _close(self, sender: socket.socket) -> None:
        with self._sending:  # nobody may be writing to a descriptor that is closed
            sender.close()

    def _converse(self, out: socket.socket, into: socket.socket) -> None:
        out.settimeout(SEND_TIMEOUT)
        try:
            out.sendall(frame(self._hello))
        except OSError:
            return
        with into.makefile("rb", buffering=2**20) as reader:
            while (message := _read(reader)) is not None:
                if not isinstance(message, Ready):
                    self._receiver.receive(message)
                    continue
                with self._state:
                    self._sender = out
                    self._state.notify_all()
                self._receiver.found()


class _Reader(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _read(reader: _Reader) -> FromEngine | Ready | None:
    """The next message, or None at the end of what was said whole."""
    head = reader.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    body = reader.read(length)
    if len(body) < length:
        return None
    message: FromEngine | Ready = pickle.loads(body)  # noqa: S301 - our own child's
    return message


def _end(child: subprocess.Popen[bytes]) -> int:
    try:
        return child.wait(STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()
