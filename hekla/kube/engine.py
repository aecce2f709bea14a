"""Batches of requests: so many at once, each settled if it was not answered."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Final

import orjson

from hekla import failpoint
from hekla.kube import writes
from hekla.kube.backoff import backoff
from hekla.kube.errors import ALREADY_EXISTS
from hekla.kube.requests import FENCED, NOT_SENT, UNAVAILABLE
from hekla.kube.session import (
    Answer,
    FencedError,
    NotSentError,
    RequestError,
    Session,
    UnansweredError,
)
from hekla.kube.wire import Outcome, Verb, Write

LATE: Final = 2.0  # seconds after which a create lands that the failpoint held back
_SETTLING: Final = 2.0  # seconds of a call that are kept for finding out

log = logging.getLogger(__name__)

_METHODS: Final = {
    Verb.CREATE: "POST",
    Verb.BIND: "POST",
    Verb.DELETE: "DELETE",
    Verb.PATCH: "PATCH",
}
_CONTENT_TYPES: Final = {Verb.PATCH: "application/merge-patch+json"}


class Engine:
    """What the client asks for, done over one session."""

    def __init__(self, session: Session, *, concurrency: int) -> None:
        self._session = session
        self._concurrency = concurrency
        self._late: set[asyncio.Task[Answer]] = set()

    async def get(self, path: str, deadline: float) -> Outcome:
        """Read one object, however often it takes."""
        failures = 0
        while True:
            try:
                answer = await self._session.send("GET", path, deadline=deadline)
            except UnansweredError as error:
                outcome = Outcome(0, b"", UNAVAILABLE, str(error))
            except RequestError as error:
                return Outcome(0, b"", UNAVAILABLE, str(error))
            else:
                outcome = Outcome(answer.status, answer.body)
                if answer.status < 500:
                    return outcome
            failures += 1
            pause = backoff(failures)
            if time.monotonic() + pause >= deadline:
                return outcome
            await asyncio.sleep(pause)

    async def write(self, batch: Sequence[Write], deadline: float) -> list[Outcome]:
        """Do all writes of a batch, some at a time; answer in the same order."""
        outcomes: list[Outcome] = [Outcome(0)] * len(batch)
        todo = iter(enumerate(batch))
        reserve = min(_SETTLING, (deadline - time.monotonic()) / 4)

        async def lane() -> None:
            for position, write in todo:
                outcomes[position] = await self._one(write, deadline - reserve, deadline)

        async with asyncio.TaskGroup() as lanes:
            for _ in range(min(self._concurrency, len(batch))):
                lanes.create_task(lane())
        return outcomes

    async def _one(self, write: Write, answer_by: float, deadline: float) -> Outcome:
        try:
            answer = await self._send(write, answer_by)
        except FencedError as error:
            return Outcome(0, b"", FENCED, str(error))
        except NotSentError as error:
            return Outcome(0, b"", NOT_SENT, str(error))
        except UnansweredError as error:
            log.info("unanswered", extra={"path": write.path, "error": str(error)})
            return await self._settle(write, deadline, writes.UNANSWERED)
        outcome = Outcome(answer.status, answer.body)
        if answer.status >= 500 and write.object_path:
            return await self._settle(write, deadline, outcome)
        if answer.status == 409 and write.verb in {Verb.CREATE, Verb.BIND}:
            return await self._compare(write, outcome, deadline)
        return outcome

    async def _send(self, write: Write, answer_by: float) -> Answer:
        sending = self._attempt(write, answer_by)
        if write.verb is not Verb.CREATE:
            return await sending
        try:
            failpoint.hit("kube.post-late")
        except failpoint.FailpointError as error:
            late = asyncio.create_task(self._lands_late(write))
            self._late.add(late)
            late.add_done_callback(self._late.discard)
            sending.close()
            raise UnansweredError("the answer was dropped") from error
        return await sending

    async def _attempt(self, write: Write, answer_by: float) -> Answer:
        failures = 0
        while True:
            try:
                return await self._session.send(
                    _METHODS[write.verb],
                    write.path,
                    deadline=answer_by,
                    body=write.body,
                    content_type=_CONTENT_TYPES.get(write.verb, "application/json"),
                    fenced=write.fenced,
                )
            except UnansweredError:
                # A merge patch may be repeated: it says what shall be, or names a version.
                failures += 1
                pause = backoff(failures)
                if write.verb is not Verb.PATCH or time.monotonic() + pause >= answer_by:
                    raise
                await asyncio.sleep(pause)

    async def _lands_late(self, write: Write) -> Answer:
        await asyncio.sleep(LATE)
        return await self._attempt(write, time.monotonic() + 10)

    async def _settle(self, write: Write, deadline: float, otherwise: Outcome) -> Outcome:
        if not write.object_path:
            return otherwise
        found = await self.get(write.object_path, deadline)
        return writes.settle(write, found, otherwise)

    async def _compare(self, write: Write, refused: Outcome, deadline: float) -> Outcome:
        """Show what is in the way of ``write``, or that it was done before."""
        if write.verb is Verb.BIND:
            return await self._settle(write, deadline, refused)
        if not write.object_path:
            return refused
        found = await self.get(write.object_path, deadline)
        body = found.body if found.status == 200 else b""
        message = str(orjson.loads(refused.body).get("message") or "")
        return Outcome(409, body, ALREADY_EXISTS, message)

    async def close(self) -> None:
        """Forget what the failpoint holds back."""
        for late in self._late:
            late.cancel()
