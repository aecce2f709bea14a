"""The I/O process: ``python -m hekla.kube.child`` with four inherited descriptors.

Started by ``process``; it serves one parent and ends with it.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import pickle
import signal
import socket
import sys
from contextlib import suppress
from typing import Final

from hekla.kube.fence import Companion, Fence, Progress
from hekla.kube.link import Aside, companion_running, new_loop
from hekla.kube.process import Hello, Ready
from hekla.kube.service import Service
from hekla.kube.wire import LENGTH, FromEngine, ToEngine, frame
from hekla.telemetry import configure_logging

_PR_SET_PDEATHSIG: Final = 1
_BUFFER: Final = 2**22


def main() -> None:
    """Serve the parent at the other end of the descriptors."""
    into, out, fence, progress = (int(text) for text in sys.argv[1:])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # Signals to the whole group are for the parent: it drains, and needs us for that.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(
            _serve(
                socket.socket(fileno=into),
                socket.socket(fileno=out),
                Fence(fence),
                Progress(progress),
            )
        )


async def _serve(
    into: socket.socket, out: socket.socket, fence: Fence, progress: Progress
) -> None:
    reader, reading = await asyncio.open_connection(sock=into, limit=_BUFFER)
    _, writer = await asyncio.open_connection(sock=out)
    writer.transport.set_write_buffer_limits(high=_BUFFER)
    try:
        hello = await _read(reader)
        assert isinstance(hello, Hello)
        if os.getppid() != hello.parent:
            return
        sys.path[:] = hello.path
        configure_logging(hello.service)
        companion: Companion | None = pickle.loads(hello.companion)  # noqa: S301 - our parent's

        async def emit(message: FromEngine | Ready) -> None:
            with suppress(ConnectionError):  # the loop below notices that the parent is gone
                writer.write(frame(message))
                await writer.drain()

        service = Service(hello.settings, fence=fence, emit=emit)
        with companion_running(Aside(fence, progress, companion)):
            gc.freeze()
            await emit(Ready())
            try:
                while True:
                    service.handle(await _read(reader))
            finally:
                await service.close()
    except (asyncio.IncompleteReadError, ConnectionError):
        return  # the parent closed its end, or is gone
    finally:
        reading.close()
        writer.close()


async def _read(reader: asyncio.StreamReader) -> ToEngine:
    (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    message: ToEngine = pickle.loads(await reader.readexactly(length))  # noqa: S301 - as above
    return message


if __name__ == "__main__":
    main()
