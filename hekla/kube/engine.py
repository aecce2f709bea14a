"""Batches of requests: so many at once, each settled if it was not answered."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Final

from hekla.kube import writes
from hekla.kube.backoff import backoff
from hekla.kube.errors import ALREADY_EXISTS
from hekla.kube.late import Late
from hekla.kube.requests import TIMEOUT, UNAVAILABLE
from hekla.kube.session import (
    Answer,
    FencedError,
    NotSentError,
    RequestError,
    Session,
    UnansweredError,
)
from hekla.kube.wire import Outcome, Verb, Write

_LATE_TIMEOUT: Final = 10.0  # seconds for a create that the failpoint held back
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
        self._late = Late()

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
                try:
                    outcomes[position] = await self._one(write, deadline - reserve, deadline)
                except Exception as error:  # per-item guard: the others are to be answered
                    log.exception("write failed", extra={"path": write.path})
                    outcomes[position] = Outcome(0, b"", TIMEOUT, f"a fault of ours: {error!r}")

        async with asyncio.TaskGroup() as lanes:
            for _ in range(min(self._concurrency, len(batch))):
                lanes.create_task(lane())
        return outcomes

    async def _one(self, write: Write, answer_by: float, deadline: float) -> Outcome:
        try:
            answer = await self._send(write, answer_by)
        except UnansweredError as error:
            log.info("unanswered", extra={"path": write.path, "error": str(error)})
            return await self._settle(write, deadline, writes.UNANSWERED)
        except RequestError as error:
            return Outcome(0, b"", error.reason, str(error))
        outcome = Outcome(answer.status, answer.body)
        if answer.status < 300:
            # The answer to a bind is a Status, not the pod.
            return Outcome(answer.status) if write.verb is Verb.BIND else outcome
        if answer.status >= 500:
            return await self._settle(write, deadline, outcome)
        if answer.status == 409 and write.object_path:
            return await self._compare(write, outcome, deadline)
        return outcome

    async def _send(self, write: Write, answer_by: float) -> Answer:
        if write.verb is Verb.CREATE and await self._late.holds(
            lambda: self._attempt(write, time.monotonic() + _LATE_TIMEOUT)
        ):
            raise UnansweredError("the answer was dropped")
        return await self._attempt(write, answer_by)

    async def _attempt(self, write: Write, answer_by: float) -> Answer:
        """Send, and send again after a broken connection what may be sent twice.

        A marked create and a bind find what they did the first time and tell it by its mark; a
        merge patch says what shall be, or names the version it is for.
        """
        repeatable = write.verb is Verb.PATCH or (
            write.verb is not Verb.DELETE and bool(write.mark and write.object_path)
        )
        failures = 0
        while True:
            try:
                answer = await self._session.send(
                    _METHODS[write.verb],
                    write.path,
                    deadline=answer_by,
                    body=write.body,
                    content_type=_CONTENT_TYPES.get(write.verb, "application/json"),
                    fenced=write.fenced,
                )
            except (NotSentError, FencedError) as error:
                if failures:
                    raise UnansweredError(str(error)) from error  # the first time it was sent
                raise
            except UnansweredError:
                failures += 1
                pause = backoff(failures)
                if not repeatable or time.monotonic() + pause >= answer_by:
                    raise
                await asyncio.sleep(pause)
            else:
                if failures and answer.status == 409 and write.object_path:
                    raise UnansweredError("what is in the way may be its own doing")
                return answer

    async def _settle(self, write: Write, deadline: float, otherwise: Outcome) -> Outcome:
        if not write.object_path:
            return otherwise
        found = await self.get(write.object_path, deadline)
        return writes.settle(write, found, otherwise)

    async def _compare(self, write: Write, refused: Outcome, deadline: float) -> Outcome:
        """Show what is in the way of ``write``, or that it was done before."""
        reason, message = writes.said(refused)
        match write.verb:
            case Verb.BIND:
                return await self._settle(write, deadline, refused)
            case Verb.CREATE if reason == ALREADY_EXISTS:
                found = await self.get(write.object_path, deadline)
                body = found.body if found.status == 200 else b""
                return Outcome(409, body, reason, message)
            case _:
                return refused

    def close(self) -> None:
        """Forget what the failpoint holds back."""
        self._late.close()
