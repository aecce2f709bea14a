"""The engine's side of the wire: every message is taken at once and done in a task."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any, Final

from hekla.kube.connection import Connection
from hekla.kube.engine import Engine
from hekla.kube.fence import Fence
from hekla.kube.late_source import LateSource
from hekla.kube.listing import RefusedError, RestartedError, pages, path_with
from hekla.kube.outbox import Emit, Outbox
from hekla.kube.reflector import Reflector
from hekla.kube.requests import UNAVAILABLE
from hekla.kube.session import Limits, RequestError, Session
from hekla.kube.wire import (
    Call,
    Close,
    Credit,
    Ended,
    Failed,
    Get,
    List,
    Listing,
    Logs,
    Open,
    Outcome,
    Returned,
    ToEngine,
    Watch,
    Writes,
)

LOG_SILENCE: Final = 24 * 3600.0  # seconds; a container may say nothing for long

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """What an engine is started with; plain values, may cross to a process."""

    connection: Connection
    kubeconfig: str | None
    limits: Limits
    user_agent: str
    fenced: bool = False
    """Whether the fence is kept; else it is never looked at."""


@dataclass(frozen=True, slots=True)
class _Stream:
    outbox: Outbox
    task: asyncio.Task[None]


class Service:
    """Takes messages; hands what comes of them to ``emit``. Belongs to one event loop."""

    def __init__(self, settings: Settings, *, fence: Fence, emit: Emit) -> None:
        self._session = Session(
            settings.connection,
            LateSource(settings.kubeconfig),
            limits=settings.limits,
            fence=fence if settings.fenced else None,
            user_agent=settings.user_agent,
        )
        self._engine = Engine(self._session, concurrency=settings.limits.concurrency)
        self._emit = emit
        self._calls: set[asyncio.Task[None]] = set()
        self._streams: dict[int, _Stream] = {}

    async def close(self) -> None:
        """Stop everything under way."""
        tasks = [*self._calls, *(stream.task for stream in self._streams.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._engine.close()
        await self._session.close()

    def handle(self, message: ToEngine) -> None:
        """Take one message."""
        match message:
            case Call():
                task = asyncio.create_task(self._call(message))
                self._calls.add(task)
                task.add_done_callback(self._calls.discard)
            case Open() if message.id not in self._streams:
                outbox = Outbox(self._emit, message.id, message.credit)
                running = asyncio.create_task(self._stream(message, outbox))
                self._streams[message.id] = _Stream(outbox, running)
            case Credit():
                if (known := self._streams.get(message.id)) is not None:
                    known.outbox.add_credit(message.batches)
            case Close():
                if (closed := self._streams.pop(message.id, None)) is not None:
                    closed.task.cancel()

    async def _call(self, call: Call) -> None:
        try:
            result = await self._result(call)
        except Exception as error:  # the caller waits: a fault of ours must reach it
            log.exception("call failed")
            await self._emit(Failed(call.id, repr(error)))
        else:
            await self._emit(Returned(call.id, result))

    async def _result(self, call: Call) -> Any:
        match call.request:
            case Writes(writes):
                return await self._engine.write(writes, call.deadline)
            case Get(path):
                return await self._engine.get(path, call.deadline)
            case List():
                return await self._list(call.request, call.deadline)

    async def _list(self, wanted: List, deadline: float) -> Listing | Outcome:
        read: list[bytes] = []
        version = ""
        size = wanted.page
        while True:
            try:
                async for page in pages(
                    self._session, wanted.path, wanted.query, deadline=deadline, size=size
                ):
                    read.append(page.body)
                    version = page.resource_version
            except RestartedError:
                read.clear()
                size = 0
            except RefusedError as error:
                return Outcome(error.answer.status, error.answer.body)
            except RequestError as error:
                return Outcome(0, b"", UNAVAILABLE, str(error))
            else:
                return Listing(read, version)

    async def _stream(self, opened: Open, outbox: Outbox) -> None:
        sending = asyncio.create_task(outbox.run())
        try:
            match opened.stream:
                case Watch() as watch:
                    await Reflector(self._session, opened.id, watch, outbox).run()
                case Logs() as logs:
                    await self._logs(opened.id, logs, outbox)
        except Exception as error:  # as in _call
            log.exception("stream failed")
            await self._emit(Ended(opened.id, Outcome(0, b"", "InternalError", repr(error))))
        finally:
            sending.cancel()
            self._streams.pop(opened.id, None)

    async def _logs(self, number: int, logs: Logs, outbox: Outbox) -> None:
        ended = Outcome(200)
        try:
            path = path_with(logs.path, logs.query)
            async with self._session.stream(path, silence=LOG_SILENCE) as response:
                if response.status != 200:
                    ended = Outcome(response.status, await response.read())
                else:
                    async for chunk in response.content.iter_any():
                        await outbox.put([chunk])
        except RequestError as error:
            ended = Outcome(0, b"", UNAVAILABLE, str(error))
        await outbox.send(Ended(number, ended), counted=False)
