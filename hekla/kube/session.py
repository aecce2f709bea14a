"""HTTP to one API server: bounded, patient with 429, and exact about what it knows.

A request ends in an ``Answer`` or in one of three errors that differ in what happened:
``NotSentError`` (nothing), ``FencedError`` (nothing), ``UnansweredError`` (nobody knows).
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from typing import Any, Final, NamedTuple

import aiohttp
from aiohttp.payload import BytesPayload
from multidict import CIMultiDict
from yarl import URL

from hekla.kube.backoff import backoff
from hekla.kube.connection import Connection, Source, tls_context
from hekla.kube.fence import Fence
from hekla.kube.requests import FENCED, NOT_SENT, TIMEOUT

CONNECT_TIMEOUT: Final = 10.0
DEFAULT_RETRY_AFTER: Final = 1.0
TOKEN_REFRESH: Final = 60.0  # seconds; a pod's token is rotated well before it ends
RELOAD_INTERVAL: Final = 10.0  # seconds between reads of the configuration after a 401
_BUFFER: Final = 2**18

log = logging.getLogger(__name__)


class RequestError(Exception):
    """A request that has no answer."""

    reason: str


class NotSentError(RequestError):
    """It never reached the server."""

    reason = NOT_SENT


class FencedError(RequestError):
    """It was held back since the fence was down."""

    reason = FENCED


class UnansweredError(RequestError):
    """It was sent, wholly or in part: it may have happened, or may still."""

    reason = TIMEOUT


class Answer(NamedTuple):
    """What the server said."""

    status: int
    body: bytes
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is asked of the server at once."""

    concurrency: int = 32
    """Requests under way; streams are not counted."""
    qps: float | None = None
    """Requests a second, with bursts of as many; None leaves it to the server's own 429."""


class Session:
    """Sends requests. Belongs to one event loop."""

    def __init__(
        self,
        connection: Connection,
        source: Source,
        *,
        limits: Limits,
        fence: Fence | None,
        user_agent: str,
    ) -> None:
        self._source = source
        self._fence = fence
        self._user_agent = user_agent
        self._lanes = asyncio.Semaphore(limits.concurrency)
        self._pace = Pace(limits.qps) if limits.qps else None
        self._loaded = -inf
        self._reloading = asyncio.Lock()
        self._retired: aiohttp.ClientSession | None = None
        self._use(connection)
        self._refresher = asyncio.create_task(self._refresh_token())

    def _use(self, connection: Connection) -> None:
        self._connection = connection
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                ssl=tls_context(connection) if connection.secure else True,
                socket_factory=_socket,
                keepalive_timeout=60,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_BUFFER,
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        )
        self._options: dict[str, Any] = {"allow_redirects": False}
        if connection.server_name:
            self._options["server_hostname"] = connection.server_name
        if connection.proxy:
            self._options["proxy"] = connection.proxy
        self._authorize(connection.authorization)

    def _authorize(self, authorization: str | None) -> None:
        headers = CIMultiDict({"Accept": "application/json", "User-Agent": self._user_agent})
        # Compressing costs more than it saves inside a cluster.
        headers["Accept-Encoding"] = "identity"
        # As client-go does: a token is not shown to whoever listens on plain HTTP.
        if authorization is not None and self._connection.secure:
            headers["Authorization"] = authorization
        self._headers = headers

    async def close(self) -> None:
        """Drop all connections."""
        self._refresher.cancel()
        await self._http.close()
        if self._retired is not None:
            await self._retired.close()

    async def send(
        self,
        method: str,
        path: str,
        *,
        deadline: float,
        body: bytes | None = None,
        content_type: str = "application/json",
        fenced: bool = False,
    ) -> Answer:
        """Send a request, again as long as that is safe, and return the answer.

        What never reached the server is sent again until ``deadline`` (monotonic), as is what
        it turned away by 429, when it said to.

        Raises:
            RequestError: there is no answer; the kind of error says what is known.
        """
        attempt = 0
        authorized = False
        while True:
            attempt += 1
            try:
                async with self._lanes:
                    if self._pace is not None:
                        await asyncio.sleep(self._pace.delay(time.monotonic()))
                    answer = await self._once(
                        method,
                        path,
                        deadline=deadline,
                        body=body,
                        content_type=content_type,
                        fenced=fenced,
                    )
            except NotSentError:
                pause = backoff(attempt)
                if time.monotonic() + pause >= deadline:
                    raise
            else:
                if answer.status == 401 and not authorized:
                    authorized = True
                    await self._reload()
                    continue
                if answer.status != 429:
                    return answer
                pause = (
                    DEFAULT_RETRY_AFTER if answer.retry_after is None else answer.retry_after
                )
                if time.monotonic() + pause >= deadline:
                    return answer
            await asyncio.sleep(pause)

    async def _once(
        self,
        method: str,
        path: str,
        *,
        deadline: float,
        body: bytes | None,
        content_type: str,
        fenced: bool,
    ) -> Answer:
        left = deadline - time.monotonic()
        fence = self._fence if fenced else None
        if fence is not None:
            left = min(left, fence.left())
            if left <= 0:
                raise FencedError("the lease is not held")
        if left <= 0:
            raise NotSentError("no time is left")
        headers = self._headers
        data: _Body | None = None
        if body is not None or fence is not None:
            headers = headers.copy()
            headers["Content-Type"] = content_type
            data = _Body(body or b"", fence, content_type=content_type)
        try:
            async with self._http.request(
                method,
                URL(self._connection.server + path, encoded=True),
                data=data,
                headers=headers,
                timeout=aiohttp.ClientTimeout(
                    total=left, sock_connect=CONNECT_TIMEOUT, ceil_threshold=inf
                ),
                **self._options,
            ) as response:
                return Answer(response.status, await response.read(), retry_after(response))
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotSentError(_text(error)) from error
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            if isinstance(error.__cause__, FencedError):
                raise error.__cause__ from error
            if data is not None and not data.begun:
                raise NotSentError(_text(error)) from error
            raise UnansweredError(_text(error)) from error

    @asynccontextmanager
    async def stream(
        self, path: str, *, silence: float
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """GET an answer without an end; ``silence`` is how long it may pause, in seconds.

        Raises:
            RequestError: it could not be opened, or broke.
        """
        try:
            async with self._http.get(
                URL(self._connection.server + path, encoded=True),
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=CONNECT_TIMEOUT, sock_read=silence
                ),
                **self._options,
            ) as response:
                if response.status == 401:
                    await self._reload()
                yield response
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise UnansweredError(_text(error)) from error

    async def _refresh_token(self) -> None:
        while True:
            await asyncio.sleep(TOKEN_REFRESH)
            if self._connection.authorization is None or not self._connection.secure:
                continue
            try:
                self._authorize(await asyncio.to_thread(self._source.authorization))
            except Exception:  # whatever a plugin does, the old token may still be good
                log.exception("token not refreshed")

    async def _reload(self) -> None:
        """Read the configuration again, unless that was just done."""
        async with self._reloading:
            if time.monotonic() - self._loaded < RELOAD_INTERVAL:
                return
            retired, self._retired = self._retired, self._http
            try:
                self._use(await asyncio.to_thread(self._source.load))
            except Exception:  # as above
                log.exception("configuration not reloaded")
                self._retired = retired
                return
            finally:
                self._loaded = time.monotonic()
            if retired is not None:
                await retired.close()


class _Body(BytesPayload):
    """A body that knows whether any of it was written, and that a fence can hold back.

    The fence is looked at as the body is about to be written: the last moment there is.
    """

    def __init__(self, body: bytes, fence: Fence | None, *, content_type: str) -> None:
        super().__init__(body, content_type=content_type)
        self._fence = fence
        self.begun = False

    def _check(self) -> None:
        if self._fence is not None and self._fence.left() <= 0:
            raise FencedError("the lease ended before the request was sent")
        self.begun = True

    async def write(self, writer: Any) -> None:
        self._check()
        await super().write(writer)

    async def write_with_length(self, writer: Any, content_length: int | None) -> None:
        self._check()
        await super().write_with_length(writer, content_length)


class Pace:
    """Spreads requests: at most ``rate`` a second, with bursts of as many."""

    def __init__(self, rate: float) -> None:
        self._interval = 1 / rate
        self._burst = max(1.0, rate) * self._interval
        self._next = float("-inf")

    def delay(self, now: float) -> float:
        """How long the request that asks now has to wait."""
        self._next = max(self._next, now - self._burst) + self._interval
        return max(0.0, self._next - now)


def _socket(address: Any) -> socket.socket:
    """A socket that notices within half a minute that the other side is gone."""
    made = socket.socket(address[0], address[1], address[2])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", 15),
        ("TCP_KEEPINTVL", 5),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", 30_000),
    ):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made


def retry_after(response: aiohttp.ClientResponse) -> float | None:
    """When the server says to come back, in seconds."""
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isdigit() else None


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
