"""The supervisor's socket: one JSON line asks, one answers.

The socket lies in the home folder, however long that path is: both sides name it through a
descriptor of its folder, which keeps within the 107 bytes a socket's name may have.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from hekla.domain.errors import DomainError, PreconditionError, UnavailableError

SOCKET: Final = "supervisor.sock"
LOCK: Final = "supervisor.lock"
LONGEST: Final = 1 << 20
PATIENCE: Final = 1.0
"""Seconds a connected client may take to send its line, for the loop waits for it."""


@contextmanager
def _short(folder: Path) -> Iterator[str]:
    """A short name for the socket in ``folder``, valid inside the block."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)


@contextmanager
def only_one(run: Path) -> Iterator[bool]:
    """Hold the supervisor's lock; False if another process does.

    The kernel frees it when the process ends, however that happens: there is no stale lock.
    """
    with (run / LOCK).open("a+") as lock:
        yield _taken(lock)


def _taken(lock: IO[str]) -> bool:
    # More than one try: who only looks (see alive) holds it for a moment, too.
    for attempt in range(10):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(0.01 * attempt)
    return False


def alive(run: Path) -> bool:
    """Whether a supervisor holds the lock."""
    try:
        with (run / LOCK).open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@contextmanager
def listening(run: Path) -> Iterator[socket.socket]:
    """The socket, for the holder of the lock."""
    with contextlib.suppress(FileNotFoundError):
        (run / SOCKET).unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        with _short(run) as name:
            listener.bind(name)
        (run / SOCKET).chmod(0o600)
        listener.listen(16)
        listener.settimeout(0.0)
        try:
            yield listener
        finally:
            with contextlib.suppress(FileNotFoundError):
                (run / SOCKET).unlink()


def serve_one(
    listener: socket.socket, handle: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> None:
    """Take one connection and answer its line. A client that misbehaves is dropped."""
    try:
        connection, _ = listener.accept()
    except OSError:
        return
    with connection, contextlib.suppress(OSError):
        connection.settimeout(PATIENCE)
        try:
            request = json.loads(_line(connection))
            if not isinstance(request, dict):
                raise PreconditionError("a request is an object")
            answer = {"ok": True, **handle(request)}
        except (DomainError, ValueError) as error:
            answer = {"ok": False, "error": str(error)}
        connection.sendall(json.dumps(answer).encode() + b"\n")


def _line(connection: socket.socket) -> bytes:
    received = b""
    while b"\n" not in received and len(received) < LONGEST:
        chunk = connection.recv(65536)
        if not chunk:
            break
        received += chunk
    return received


def call(run: Path, request: Mapping[str, Any], *, timeout: float = 5.0) -> Mapping[str, Any]:
    """Ask the supervisor.

    Raises:
        UnavailableError: there is none, or it does not answer in time.
        PreconditionError: it refuses.
    """
    try:
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection,
            _short(run) as name,
        ):
            connection.settimeout(timeout)
            connection.connect(name)
            connection.sendall(json.dumps(request).encode() + b"\n")
            answer = json.loads(_line(connection) or b"{}")
    except (OSError, ValueError) as error:
        text = f"the supervisor does not answer ({error}); 'hekla down' ends what it runs"
        raise UnavailableError(text) from error
    if not answer.get("ok"):
        raise PreconditionError(str(answer.get("error") or "the supervisor gave no answer"))
    return answer  # type: ignore[no-any-return]
