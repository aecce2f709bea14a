"""The HTTP side: an ASGI callable without a framework.

A review gets a 200 whatever the verdict. What is no review gets a 4xx with the reason as text;
503 is for trouble of ours, over which the API server then acts by the failure policy.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from concurrent.futures import Executor
from datetime import timedelta
from typing import Any, Final
from urllib.parse import parse_qs

from hekla.domain import duration
from hekla.domain.errors import DomainError, InvalidError
from hekla.telemetry import metrics
from services.webhook.https import envelope
from services.webhook.https.envelope import MalformedError, Review, Verdict
from services.webhook.https.inventory import ENDPOINTS, Endpoint

BODY_LIMIT: Final = 2 * 3 * 2**20 + 256 * 2**10
"""What an API server takes itself, twice for an update, and what it wraps around it."""
_DRAINED: Final = 5 * BODY_LIMIT
"""So much of a body that is too large is read and thrown away, so that the sender hears why."""
_HELD: Final = 64 * 2**20
"""Bytes of all bodies together."""
ANSWER_TIMEOUT: Final = 10.0
_SHARE: Final = 0.9
"""Of the time that an API server waits: an answer that comes too late is none."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Judge = Callable[[Endpoint, Review], Verdict]
"""May block, on what it asks of Postgres."""

log = logging.getLogger(__name__)


class RefusedError(Exception):
    """A request that is answered without a verdict."""

    def __init__(self, status: int, message: str, *, close: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.close = close


class ClientGoneError(Exception):
    """Nobody is there to be answered."""


class App:
    """Answers reviews by ``judge``, which is called in threads of ``executor``."""

    def __init__(self, judge: Judge, executor: Executor, *, read_timeout: timedelta) -> None:
        self._judge = judge
        self._executor = executor
        self._read_timeout = read_timeout.total_seconds()
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            endpoint = _endpoint(scope)
            began = time.monotonic()
            body = await self._body(scope, receive)
            status, answer, outcome = 200, b"", "allowed"
            try:
                verdict, answer = await self._answer(endpoint, scope, body)
                outcome = "allowed" if verdict.allowed else "denied"
            except RefusedError as error:
                outcome = "malformed" if error.status < 500 else "failed"
                raise
            finally:
                self._held -= len(body)
                metrics.reviews.labels(endpoint.path, outcome).inc()
                metrics.review_seconds.labels(endpoint.path).observe(time.monotonic() - began)
            await _send(send, status, answer, b"application/json")
        except RefusedError as error:
            text = f"{error}\n".encode(errors="replace")
            await _send(
                send, error.status, text, b"text/plain; charset=utf-8", close=error.close
            )
        except ClientGoneError:
            pass

    async def _answer(
        self, endpoint: Endpoint, scope: Scope, body: bytes
    ) -> tuple[Verdict, bytes]:
        loop = asyncio.get_running_loop()
        judging = loop.run_in_executor(self._executor, self._judged, endpoint, body)
        try:
            return await asyncio.wait_for(judging, _patience(scope))
        except MalformedError as error:
            raise RefusedError(400, str(error)) from None
        except TimeoutError:
            raise RefusedError(503, "there was no answer in time") from None
        except DomainError as error:
            log.warning("review failed", extra={"path": endpoint.path, "error": str(error)})
            raise RefusedError(503, str(error)) from None
        except Exception as error:  # a fault of ours: the sender learns no more than that
            log.exception("review failed", extra={"path": endpoint.path})
            raise RefusedError(
                500, "internal error; the log of the service says more"
            ) from error

    def _judged(self, endpoint: Endpoint, body: bytes) -> tuple[Verdict, bytes]:
        review = envelope.read(body)
        verdict = self._judge(endpoint, review)
        return verdict, envelope.answer(review, verdict)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """The body, counted among what is held."""
        pieces = bytearray()
        size = 0
        try:
            async with asyncio.timeout(self._read_timeout):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGoneError
                    piece = message.get("body", b"")
                    more = bool(message.get("more_body"))
                    size += len(piece)
                    if size <= BODY_LIMIT:
                        self._hold(len(piece))
                        pieces += piece
                    elif size > _DRAINED:
                        break
        except TimeoutError:
            self._held -= len(pieces)
            raise RefusedError(408, "the body did not arrive in time", close=True) from None
        except (ClientGoneError, RefusedError):
            self._held -= len(pieces)
            raise
        if size > BODY_LIMIT:
            self._held -= len(pieces)
            message_ = f"the body must have no more than {BODY_LIMIT} bytes"
            raise RefusedError(413, message_, close=more)
        return bytes(pieces)

    def _hold(self, size: int) -> None:
        if self._held + size > _HELD:
            raise RefusedError(429, "too many large requests at once", close=True)
        self._held += size


def _endpoint(scope: Scope) -> Endpoint:
    endpoint = ENDPOINTS.get(scope["path"])
    if endpoint is None:
        raise RefusedError(404, f"there are {', '.join(ENDPOINTS)}", close=True)
    if scope["method"] != "POST":
        raise RefusedError(405, "reviews are sent by POST", close=True)
    headers: Mapping[bytes, bytes] = dict(scope["headers"])
    content_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if content_type != b"application/json":
        raise RefusedError(415, "the Content-Type must be application/json", close=True)
    return endpoint


def _patience(scope: Scope) -> float:
    """How long the API server says that it waits, within ours."""
    asked = parse_qs(scope["query_string"].decode("latin-1")).get("timeout", [""])[-1]
    try:
        return min(ANSWER_TIMEOUT, max(0.1, _SHARE * duration.parse(asked).total_seconds()))
    except (InvalidError, OverflowError):
        return ANSWER_TIMEOUT


async def _send(
    send: Send, status: int, body: bytes, content_type: bytes, *, close: bool = False
) -> None:
    headers = [
        (b"content-type", content_type),
        (b"content-length", str(len(body)).encode()),
        *([(b"connection", b"close")] if close else []),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
