"""LIST, then WATCH for ever: every change arrives, or a full list that makes up for it.

The version after the last event is kept, and a watch that ends, breaks or falls silent is
resumed there. A server that no longer knows the version (410) is listed again.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, Final

import orjson

from hekla.kube.backoff import backoff
from hekla.kube.events import ADDED, DELETED, MODIFIED
from hekla.kube.listing import PAGE, RefusedError, RestartedError, pages, path_with
from hekla.kube.outbox import Outbox
from hekla.kube.session import Answer, RequestError, Session, retry_after
from hekla.kube.wire import Page, Relisted, Watch

LIST_TIMEOUT: Final = 120.0  # seconds for a full list
WATCH_SPAN: Final = (240, 360)  # seconds until the server ends a watch, not all at once
SILENCE: Final = 30.0  # seconds that a watch may outlive its span
PATIENCE: Final = 5  # refusals of one version until it is given up

log = logging.getLogger(__name__)

_KNOWN: Final = frozenset({ADDED, MODIFIED, DELETED, "BOOKMARK"})

Project = Callable[[dict[str, Any]], Any]


class ExpiredError(Exception):
    """The server no longer has what followed our version."""


class BrokenError(Exception):
    """What came is no event."""


class Reflector:
    """Feeds one subscription."""

    def __init__(self, session: Session, number: int, watch: Watch, outbox: Outbox) -> None:
        self._session = session
        self._number = number
        self._watch = watch
        self._outbox = outbox
        self._project = load(watch.project) if watch.project else None
        self._version: str | None = None
        self._failures = 0
        self._paged = True

    async def run(self) -> None:
        """Deliver for ever."""
        while True:
            pause: float | None = None
            began = time.monotonic()
            try:
                if self._version is None:
                    await self._list()
                await self._follow()
                if time.monotonic() - began >= 1:
                    self._failures = 0
                    continue
                reason = "ended at once"
            except ExpiredError:
                self._version = None
                reason = "expired"
                if not self._failures:
                    pause = 0.0
            except RestartedError:
                self._paged = False
                reason = "list restarted"
            except RefusedError as error:
                reason = str(error)
                pause = error.answer.retry_after
                if self._failures >= PATIENCE:
                    self._version = None
            except (RequestError, BrokenError) as error:
                reason = str(error)
            except Exception as error:  # the loop goes on, whatever is wrong with us
                log.exception("watch failed", extra={"path": self._watch.path})
                self._version = None
                reason = repr(error)
            self._failures += 1
            self._tell(reason)
            await asyncio.sleep(backoff(self._failures) if pause is None else pause)

    def _tell(self, reason: str) -> None:
        if self._failures in {1, 2, 4, 8} or self._failures % 16 == 0:
            log.info(
                "watch interrupted",
                extra={"path": self._watch.path, "reason": reason, "failures": self._failures},
            )

    async def _list(self) -> None:
        version = ""
        first = True
        reading = pages(
            self._session,
            self._watch.path,
            self._watch.query,
            deadline=time.monotonic() + LIST_TIMEOUT,
            size=PAGE if self._paged else 0,
        )
        async for page in reading:
            version = page.resource_version
            content: Any = page.body
            count = len(page.items)
            if self._project is not None:
                content = list(self._projected(page.items))
                count = len(content)
            await self._outbox.send(
                Page(self._number, content, count, first=first), counted=False
            )
            first = False
        await self._outbox.send(Relisted(self._number))
        self._version = version
        self._paged = True

    async def _follow(self) -> None:
        span = random.randint(*WATCH_SPAN)  # noqa: S311 - no secret
        query = [
            *self._watch.query,
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", self._version or ""),
            ("timeoutSeconds", str(span)),
        ]
        path = path_with(self._watch.path, query)
        async with self._session.stream(path, silence=span + SILENCE) as response:
            if response.status != 200:
                answer = Answer(response.status, await response.read(), retry_after(response))
                raise ExpiredError if response.status == 410 else RefusedError(answer)
            rest = b""
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                if lines:
                    await self._deliver(lines)

    async def _deliver(self, lines: Iterable[bytes]) -> None:
        items: list[Any] = []
        version = self._version
        try:
            for line in lines:
                if not line:
                    continue
                kind, item, version = _event(line)
                if kind == "BOOKMARK":
                    continue
                if self._project is None:
                    items.append(line)
                else:
                    items.extend((kind, small) for small in self._projected([item]))
        finally:
            # What came before a bad line counts: the watch is resumed behind it.
            if version != self._version:
                if items:
                    await self._outbox.put(items)
                self._version = version
                self._failures = 0

    def _projected(self, items: Iterable[dict[str, Any]]) -> Iterable[Any]:
        """What the projection makes of ``items``; None, or one it cannot take, is left out."""
        assert self._project is not None
        for item in items:
            try:
                small = self._project(item)
            except Exception:  # per-item guard: one odd object must not end the watch
                metadata = item.get("metadata") or {}
                where = f"{metadata.get('namespace')}/{metadata.get('name')}"
                log.exception(
                    "object left out", extra={"path": self._watch.path, "object": where}
                )
            else:
                if small is not None:
                    yield small


def _event(line: bytes) -> tuple[str, dict[str, Any], str]:
    """The type, the object and its version."""
    try:
        event = orjson.loads(line)
        kind, item = event["type"], event["object"]
        if kind in _KNOWN:
            return kind, item, item["metadata"]["resourceVersion"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise BrokenError(f"{error!r} in {line[:200]!r}") from error
    if item.get("code") == 410:
        raise ExpiredError
    raise BrokenError(f"{kind}: {item.get('message')}")


def load(name: str) -> Project:
    """The function that ``module:function`` names."""
    module, _, function = name.partition(":")
    found: Project = getattr(import_module(module), function)
    return found
