"""The failpoint ``kube.post-late``: a create whose answer is dropped and that lands late.

``raise`` and ``sleep <seconds>`` do the same but for how late it lands: the caller learns
nothing, and the request is sent when nobody waits for it any more.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from hekla import failpoint
from hekla.kube.session import RequestError

LATE: Final = 2.0  # seconds after which a create lands if the failpoint does not say
_NOTICED: Final = 0.1  # seconds after which a pass counts as a sleep
_SLEEPERS: Final = 256

log = logging.getLogger(__name__)


class Late:
    """Passes creates through the failpoint, and holds those that are to land late."""

    def __init__(self) -> None:
        # Sleeping is done in threads, or everything else would sleep too.
        self._threads = (
            ThreadPoolExecutor(_SLEEPERS) if failpoint.VARIABLE in os.environ else None
        )
        self._held: set[asyncio.Task[None]] = set()

    async def holds(self, send: Callable[[], Awaitable[Any]]) -> bool:
        """Whether the create is held back; then ``send`` is called later, for nobody."""
        if self._threads is None:
            try:
                failpoint.hit("kube.post-late")
            except failpoint.FailpointError:
                self._hold(asyncio.sleep(LATE), send)
                return True
            return False
        loop = asyncio.get_running_loop()
        passing = loop.run_in_executor(self._threads, _passed)
        done, _ = await asyncio.wait([passing], timeout=_NOTICED)
        if done and passing.result():
            return False
        self._hold(asyncio.sleep(LATE) if done else passing, send)
        return True

    def _hold(self, until: Awaitable[Any], send: Callable[[], Awaitable[Any]]) -> None:
        held = asyncio.create_task(_send_after(until, send))
        self._held.add(held)
        held.add_done_callback(self._held.discard)

    def close(self) -> None:
        """Forget what is held."""
        for held in self._held:
            held.cancel()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def _passed() -> bool:
    try:
        failpoint.hit("kube.post-late")
    except failpoint.FailpointError:
        return False
    return True


async def _send_after(until: Awaitable[Any], send: Callable[[], Awaitable[Any]]) -> None:
    await until
    try:
        await send()
    except RequestError as error:
        log.info("late create not sent", extra={"error": str(error)})
