"""Answers, whole or bit by bit: JSON, watches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from typing import Any, Final

import orjson

from hekla.local.answers.forms import JSON, Form
from hekla.local.kinds import errors
from hekla.local.serving.routing import Request
from hekla.local.serving.watches import Watcher, Watches, bookmark_line, event_line
from hekla.local.storage.memory import ADDED, Storage
from hekla.local.storage.selection import Selection

_BOOKMARK_INTERVAL: Final = 60.0
_LONGEST_WATCH: Final = 3600
_LONG_TEXT: Final = 256
_LONG_TEXTS: Final = 4096


class ClientGoneError(Exception):
    """The connection is closed."""


class Body:
    """The answer to one request."""

    def __init__(
        self,
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        self._receive = receive
        self._send = send
        self.started = False
        self.warnings: Sequence[str] = ()
        """What goes with the answer as ``Warning`` headers."""

    async def json(self, code: int, value: object) -> None:
        """Answer with ``value``."""
        await self.whole(code, orjson.dumps(value))

    async def whole(
        self,
        code: int,
        body: bytes,
        content_type: str = JSON,
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        """Answer with ``body``."""
        length = (b"content-length", str(len(body)).encode())
        await self._start(code, content_type, length, *headers)
        await self._send({"type": "http.response.body", "body": body})

    async def begin(self, content_type: str = JSON) -> None:
        """Begin an answer that comes bit by bit."""
        await self._start(200, content_type)
        await self._send({"type": "http.response.body", "body": b"", "more_body": True})

    async def write(self, part: bytes) -> None:
        """Send a bit; waits while the client does not read."""
        if part:
            await self._send({"type": "http.response.body", "body": part, "more_body": True})

    async def end(self) -> None:
        """End an answer that came bit by bit."""
        await self._send({"type": "http.response.body", "body": b""})

    async def gone(self) -> None:
        """Return once the client has closed the connection."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _start(self, code: int, content_type: str, *headers: tuple[bytes, bytes]) -> None:
        self.started = True
        await self._send(
            {
                "type": "http.response.start",
                "status": code,
                "headers": [
                    (b"content-type", content_type.encode()),
                    *headers,
                    *[(b"warning", line) for line in _warning_lines(self.warnings)],
                ],
            }
        )


def _warning_lines(texts: Sequence[str]) -> Iterator[bytes]:
    """Headers for ``texts``, each cut if all together are long."""
    cut = _LONG_TEXT if sum(map(len, texts)) > _LONG_TEXTS else _LONG_TEXTS
    left = _LONG_TEXTS
    for text in texts:
        line = "".join(letter if letter.isprintable() else " " for letter in text[:cut])
        left -= len(line)
        if left < 0:
            return
        quoted = line.replace("\\", r"\\").replace('"', r"\"")
        yield f'299 - "{quoted}"'.encode()


async def watch(
    storage: Storage,
    watches: Watches,
    selection: Selection,
    request: Request,
    sent: Body,
    *,
    form: Form,
) -> None:
    """Answer a watch until the client goes, its time is over, or the server stops.

    Raises:
        ApiError: before anything was sent: the parameters make no sense.
    """
    initial = request.flag("sendInitialEvents")
    if initial and request.query.get("resourceVersionMatch") != "NotOlderThan":
        raise errors.ApiError(
            422,
            "Invalid",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        )
    seconds = request.number("timeoutSeconds") or _LONGEST_WATCH
    since = request.number("resourceVersion") or 0
    if since > storage.version:
        raise errors.too_new(since, storage.version)
    whole_state = initial or not since
    try:
        watcher = watches.open(selection, storage.version if whole_state else since, form)
    except errors.ApiError as error:
        await sent.begin(form.content_type)
        await sent.write(event_line("ERROR", orjson.dumps(error.status())))
        await sent.end()
        return
    if whole_state:
        state = [
            event_line(ADDED, form.one(entry))
            for entry in storage.select(selection.kind, selection.namespace)
            if selection.matches(entry)
        ]
        if initial:
            state.append(bookmark_line(form, storage.version, initial_end=True))
        if state:
            watcher.push(b"".join(state))
    gone = asyncio.ensure_future(sent.gone())
    gone.add_done_callback(lambda _: watcher.close())
    try:
        await sent.begin(form.content_type)
        bookmarks = request.flag("allowWatchBookmarks")
        await _stream(watches, watcher, sent, seconds=seconds, bookmarks=bookmarks)
        if not gone.done():
            await sent.end()
    finally:
        gone.cancel()
        watches.leave(watcher)


async def _stream(
    watches: Watches,
    watcher: Watcher,
    sent: Body,
    *,
    seconds: float,
    bookmarks: bool,
) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while (left := end - loop.time()) > 0 and not watcher.closed:
        lines = await watcher.take(min(left, _BOOKMARK_INTERVAL))
        if not lines and bookmarks and not watcher.closed:
            lines = bookmark_line(watcher.form, max(watches.released, watcher.since))
        await sent.write(lines)
    await sent.write(watcher.rest())
