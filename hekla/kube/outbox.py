"""What a stream has for its consumer: coalesced into batches, held back while it is busy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from hekla.kube.wire import Batch, FromEngine

BATCH: Final = 1000
LINGER: Final = 0.005  # seconds that an event waits for others

Emit = Callable[[FromEngine], Awaitable[None]]


class Outbox:
    """Sends batches as the consumer has credit; a full one makes its producer wait."""

    def __init__(self, emit: Emit, number: int, credit: int) -> None:
        self._emit = emit
        self._number = number
        self._credit = asyncio.Semaphore(credit)
        self._pending: list[Any] = []
        self._changed = asyncio.Condition()

    def add_credit(self, batches: int) -> None:
        """The consumer took some."""
        for _ in range(batches):
            self._credit.release()

    async def put(self, items: Sequence[Any]) -> None:
        """Add items; waits while a whole batch has not been taken."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self._pending) < BATCH)
            self._pending.extend(items)
            self._changed.notify_all()

    async def send(self, message: FromEngine, *, counted: bool = True) -> None:
        """Send something of its own kind, after all that was put before."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._pending)
        if counted:
            await self._credit.acquire()
        await self._emit(message)

    async def run(self) -> None:
        """Send what is put, for ever."""
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: bool(self._pending))
            if len(self._pending) < BATCH:
                await asyncio.sleep(LINGER)
            await self._credit.acquire()
            batch = self._pending[:BATCH]
            await self._emit(Batch(self._number, batch))
            async with self._changed:
                del self._pending[: len(batch)]
                self._changed.notify_all()
