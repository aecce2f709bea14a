"""A scripted API server over a real socket.

It keeps objects in memory under one resource version (``kube_objects``), serves lists in pages
and watches with resume and 410, and does to the next matching requests what a test said by
``on``: answers something else, stalls, hangs up before or after the effect.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
from aiohttp import web

from tests.support.certificates import Pair
from tests.support.kube_objects import Objects, RefusedError, Request, where


@dataclass(slots=True)
class Script:
    """What happens to the next ``times`` requests that match."""

    matches: Callable[[Request], bool]
    times: int = 1
    status: int | None = None
    """Answer this in place of what would be answered."""
    reason: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    effect: bool | None = None
    """Whether the request has its effect; None: if ``status`` does not say otherwise."""
    stall: float = 0.0
    """Seconds that the answer takes, after the effect."""
    hang_up: bool = False
    """Close the connection in place of an answer."""


class KubeServer(Objects):
    """Runs in a thread of its own until the end of the ``with`` block."""

    def __init__(
        self,
        *,
        tls: Pair | None = None,
        ca: Path | None = None,
        client_ca: Path | None = None,
        port: int = 0,
    ) -> None:
        super().__init__()
        self._tls = tls
        self._ca = ca
        self._client_ca = client_ca
        self.port = port
        self.most_at_once = 0
        """The most requests that were under way together, watches left out."""
        self._at_once = 0
        self.requests: list[Request] = []
        self.logs: dict[str, list[bytes]] = {}
        """Pieces by pod name."""
        self.token: str | None = None
        """The only bearer token let in, if there is one."""
        self.bookmark_every: float | None = None
        self.begins_watches_with_lists = False
        self.ignores_how_watches_begin = False
        self._scripts: list[Script] = []
        self._watchers: set[asyncio.Transport] = set()
        self._transports: set[asyncio.Transport] = set()

    # For tests, from any thread.

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def kubeconfig(
        self,
        folder: Path,
        *,
        user: dict[str, Any] | None = None,
        cluster: dict[str, Any] | None = None,
    ) -> str:
        """Write a file that leads here, and return its path."""
        if cluster is None:
            cluster = {"certificate-authority": str(self._ca)} if self._ca else {}
        elif "tls-server-name" in cluster:
            cluster = cluster | {"certificate-authority": str(self._ca)}
        cluster = cluster | {"server": self.url}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": user or {}}],
        }
        path = folder / "kubeconfig"
        path.write_bytes(orjson.dumps(content))
        return str(path)

    def on(
        self,
        method: str,
        part: str = "",
        *,
        only: Callable[[Request], bool] = lambda _: True,
        **what: Any,
    ) -> None:
        """Script the next requests by ``method`` with ``part`` in their path."""
        with self.lock:
            self._scripts.append(
                Script(
                    lambda asked: asked.method == method and part in asked.path and only(asked),
                    **what,
                )
            )

    def seen(self, method: str, part: str = "", *, watch: bool = False) -> list[Request]:
        """The requests so far; watches only if asked for."""
        with self.lock:
            return [
                request
                for request in self.requests
                if request.method == method
                and part in request.path
                and ("watch" in request.query) == watch
            ]

    def say(self, line: bytes) -> None:
        """Send something to the watches of now, whatever it is."""

        def write() -> None:
            for transport in self._watchers:
                transport.write(b"%x\r\n%s\r\n" % (len(line), line))

        self._loop.call_soon_threadsafe(write)

    def cut_watches(self) -> None:
        """Cut the connections of the watches of now."""
        self._loop.call_soon_threadsafe(self._abort, self._watchers)

    def cut_all(self) -> None:
        """Cut every connection of now."""
        self._loop.call_soon_threadsafe(self._abort, self._transports)

    @property
    def watching(self) -> int:
        """How many watches there are."""
        return len(self._watchers)

    def told(self) -> None:
        if hasattr(self, "_changed"):
            self._loop.call_soon_threadsafe(self._changed.set)

    # Life.

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=[ready], daemon=True)
        self._thread.start()
        assert ready.wait(10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(10)

    def _run(self, ready: threading.Event) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve(ready))

    async def _serve(self, ready: threading.Event) -> None:
        self._stopping = asyncio.Event()
        self._changed = asyncio.Event()
        runner = web.ServerRunner(
            web.Server(self._handle, access_log=None, handler_cancellation=True),
            shutdown_timeout=0.1,
        )
        await runner.setup()
        context = None
        if self._tls:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(self._tls.certificate, self._tls.key)
            if self._client_ca:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(self._client_ca)
        await web.TCPSite(runner, "127.0.0.1", self.port, ssl_context=context).start()
        self.port = runner.addresses[0][1]
        ready.set()
        await self._stopping.wait()
        self._abort(self._transports)
        await runner.cleanup()

    def _abort(self, transports: set[asyncio.Transport]) -> None:
        for transport in list(transports):
            if not transport.is_closing():  # Python 3.11.2 fails on a TLS transport that is
                transport.abort()

    # Serving, in the loop.

    async def _handle(self, asked: web.BaseRequest) -> web.StreamResponse:
        assert asked.transport is not None
        self._transports.add(asked.transport)
        body = await asked.read()
        request = Request(
            method=asked.method,
            path=asked.path,
            query=dict(asked.query),
            headers=dict(asked.headers),
            body=orjson.loads(body) if body else None,
        )
        with self.lock:
            self.requests.append(request)
            script = self._scripted(request)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return await self._answer(asked, request, script)
        except RefusedError as refused:
            return _json(refused.status, _status(refused), script.headers)
        finally:
            self._at_once -= 1

    async def _answer(
        self, asked: web.BaseRequest, request: Request, script: Script
    ) -> web.StreamResponse:
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            raise RefusedError(401, "Unauthorized")
        if script.status is None and "watch" in request.query:
            return await self._watch(asked, request)
        if script.status is None and request.path.endswith("/log"):
            return await self._log(asked, request)
        status, answer = 503, b""
        if script.effect or (script.effect is None and script.status is None):
            with self.lock:
                status, answer = self.answer(request)
        if script.stall:
            await asyncio.sleep(script.stall)
        if script.hang_up:
            assert asked.transport is not None
            asked.transport.abort()
        if script.status is not None:
            raise RefusedError(script.status, script.reason, "scripted")
        return _json(status, answer, script.headers)

    def _scripted(self, request: Request) -> Script:
        for script in self._scripts:
            if script.matches(request):
                script.times -= 1
                if not script.times:
                    self._scripts.remove(script)
                return script
        return Script(lambda _: True)

    async def _watch(self, asked: web.BaseRequest, request: Request) -> web.StreamResponse:
        place, sent = where(request.path), int(request.query.get("resourceVersion") or 0)
        transport = asked.transport
        assert transport is not None
        begins = "sendInitialEvents" in request.query
        if begins and self.ignores_how_watches_begin:
            begins, sent = False, self.version
        if begins and not self.begins_watches_with_lists:
            raise RefusedError(422, "Invalid", "sendInitialEvents is forbidden")
        answer = web.StreamResponse(headers={"Content-Type": "application/json"})
        await answer.prepare(asked)
        self._watchers.add(transport)
        try:
            self._at_once -= 1
            if begins:
                with self.lock:
                    sent, lines = self.version, list(self.first_events(place))
                await answer.write(b"".join(lines))
            while True:
                with self.lock:
                    if sent < self.compacted:
                        expired = {
                            "type": "ERROR",
                            "object": {"code": 410, "reason": "Expired"},
                        }
                        await answer.write(orjson.dumps(expired) + b"\n")
                        return answer
                    lines = list(self.since(sent, place))
                    sent = self.version
                    self._changed.clear()
                if lines:
                    await answer.write(b"".join(reversed(lines)))
                try:
                    await asyncio.wait_for(self._changed.wait(), self.bookmark_every)
                except TimeoutError:
                    mark = {"metadata": {"resourceVersion": str(sent)}}
                    await answer.write(
                        orjson.dumps({"type": "BOOKMARK", "object": mark}) + b"\n"
                    )
        finally:
            self._at_once += 1
            self._watchers.discard(transport)

    async def _log(self, asked: web.BaseRequest, request: Request) -> web.StreamResponse:
        name = where(request.path).name or ""
        if name not in self.logs:
            raise RefusedError(404, "NotFound", f"pods {name!r} not found")
        answer = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await answer.prepare(asked)
        for piece in self.logs[name]:
            await answer.write(piece)
        if request.query.get("follow"):
            await self._stopping.wait()
        return answer


def _json(status: int, body: bytes, headers: dict[str, str]) -> web.Response:
    return web.Response(
        status=status, body=body, content_type="application/json", headers=headers
    )


def _status(refused: RefusedError) -> bytes:
    return orjson.dumps(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": refused.status,
            "reason": refused.reason,
            "message": str(refused),
        }
    )
