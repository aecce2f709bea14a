"""How a client reaches its engine: here in a thread of the same process.

See ``process`` for the other way. Both deliver every message that ``send`` accepted, in
order, or call ``lost`` first.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

from hekla import lifecycle
from hekla.domain.errors import UnavailableError
from hekla.kube.fence import Companion, Fence, Progress
from hekla.kube.service import Service, Settings
from hekla.kube.wire import FromEngine, ToEngine

STOP_TIMEOUT: Final = 5.0  # seconds


@dataclass(frozen=True, slots=True)
class Receiver:
    """What a link tells its client. Called from the link's threads; must not block."""

    receive: Callable[[FromEngine], None]
    found: Callable[[], None]
    """An engine is there, and knows of nothing."""
    lost: Callable[[], None]
    """The engine is gone, with all it was doing."""


@dataclass(frozen=True, slots=True)
class Aside:
    """What runs beside the engine."""

    fence: Fence
    progress: Progress
    companion: Companion | None


class Link(Protocol):
    """The client's side of a link."""

    def send(self, message: ToEngine, timeout: float) -> None:
        """Hand a message over; waits up to ``timeout`` seconds for an engine to be there.

        Raises:
            UnavailableError: there is none.
        """

    def close(self) -> None:
        """End the engine. Whatever is under way is lost."""


def new_loop() -> asyncio.AbstractEventLoop:
    """The fastest event loop there is."""
    try:
        import uvloop  # noqa: PLC0415 - not made for every platform
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


@contextmanager
def companion_running(aside: Aside) -> Iterator[None]:
    """Run the companion, if there is one, in a thread until the block ends."""
    companion = aside.companion
    if companion is None:
        yield
        return
    stop = threading.Event()

    def once() -> bool:
        companion(stop, aside.fence, aside.progress)
        return False

    with lifecycle.repeating("companion", once, idle=timedelta(seconds=1), stop=stop):
        try:
            yield
        finally:
            stop.set()


class ThreadLink:
    """An engine in a thread. For the CLI and tests: it shares the GIL with its caller."""

    def __init__(self, settings: Settings, aside: Aside, receiver: Receiver) -> None:
        self._settings = settings
        self._aside = aside
        self._receiver = receiver
        self._lock = threading.Lock()
        self._closed = False
        self._loop = new_loop()
        self._stop = asyncio.Event()
        self._service: Service | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kube", daemon=True)
        self._thread.start()
        self._ready.wait()

    def send(self, message: ToEngine, timeout: float) -> None:
        """Hand a message over."""
        with self._lock:
            if self._closed or self._service is None:
                raise UnavailableError("the Kubernetes client is closed")
            self._loop.call_soon_threadsafe(self._service.handle, message)

    def close(self) -> None:
        """End the thread."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(STOP_TIMEOUT)
        self._receiver.lost()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        finally:
            self._ready.set()  # whoever waits is to learn that there is no engine

    async def _serve(self) -> None:
        with companion_running(self._aside):
            self._service = Service(self._settings, fence=self._aside.fence, emit=self._emit)
            self._receiver.found()
            self._ready.set()
            await self._stop.wait()
            await self._service.close()

    async def _emit(self, message: FromEngine) -> None:
        self._receiver.receive(message)
