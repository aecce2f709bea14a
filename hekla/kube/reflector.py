"""LIST, then WATCH for ever: every change arrives, or a full list that makes up for it.

The version after the last event is kept, and a watch that ends, breaks or falls silent is
resumed there. A server that no longer knows the version (410) is listed again. Servers that
can are asked for the list as the beginning of the watch (``sendInitialEvents``), which costs
them less; the others in pages.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
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
STEADY: Final = 1.0  # seconds after which a watch counts as a good one
PATIENCE: Final = 5  # refusals of one version until it is given up

log = logging.getLogger(__name__)

BOOKMARK: Final = "BOOKMARK"

_KNOWN: Final = frozenset({ADDED, MODIFIED, DELETED, BOOKMARK})
_LIST_ENDS: Final = "k8s.io/initial-events-end"
_PASSING: Final = frozenset({401, 403, 404, 429, *range(500, 600)})
"""Refusals that say nothing about how we ask."""

Project = Callable[[dict[str, Any]], Any]


class ExpiredError(Exception):
    """The server no longer has what followed our version."""


class BrokenError(Exception):
    """What came is no event."""


@dataclass(slots=True)
class _FirstList:
    """A full list that is being read."""

    items: list[dict[str, Any]] = field(default_factory=list)
    """Not sent yet."""
    begun: bool = False
    version: str = ""


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
        self._steady = False
        self._streams = True  # until the server refuses to begin a watch with the list
        self._paged = True

    async def run(self) -> None:
        """Deliver for ever."""
        while True:
            error: Exception | None = None
            self._steady = False
            try:
                if self._version is None and not self._streams:
                    await self._list()
                await self._follow()
            except Exception as caught:  # the loop goes on, whatever is wrong
                error = caught
            if self._steady:
                self._failures = 0
                if error is None:
                    continue
            pause = self._learn(error)
            self._failures += 1
            self._tell(error)
            await asyncio.sleep(backoff(self._failures) if pause is None else pause)

    def _learn(self, error: Exception | None) -> float | None:
        """Ask differently after what went wrong; how long to wait if that is settled."""
        listing = self._version is None
        match error:
            case None | RequestError():
                pass
            case ExpiredError():
                self._version = None
                return None if self._failures else 0.0
            case RestartedError():
                self._paged = False
            case BrokenError() | TimeoutError():
                self._streams = self._streams and not listing
            case RefusedError(answer=answer):
                if listing and self._streams and answer.status not in _PASSING:
                    self._streams = False
                    return 0.0
                if self._failures >= PATIENCE:
                    self._version = None
                return answer.retry_after
            case _:
                log.error("watch failed", exc_info=error, extra={"path": self._watch.path})
                self._version = None
        return None

    def _tell(self, error: Exception | None) -> None:
        if self._failures in {1, 2, 4, 8} or self._failures % 16 == 0:
            reason = "ended at once" if error is None else f"{type(error).__name__} {error}"
            log.info(
                "watch interrupted",
                extra={"path": self._watch.path, "reason": reason, "failures": self._failures},
            )

    async def _list(self) -> None:
        """Read the list in pages."""
        first = _FirstList()
        reading = pages(
            self._session,
            self._watch.path,
            self._watch.query,
            deadline=time.monotonic() + LIST_TIMEOUT,
            size=PAGE if self._paged else 0,
        )
        async for page in reading:
            first.version = page.resource_version
            await self._send_page(first, page.items, page.body)
        await self._listed(first)
        self._paged = True

    async def _send_page(
        self, first: _FirstList, items: list[dict[str, Any]], body: bytes | None = None
    ) -> None:
        content: Any
        if self._project is not None:
            content = list(self._projected(items))
            length = len(content)
        else:
            content = orjson.dumps({"items": items}) if body is None else body
            length = len(items)
        message = Page(self._number, content, length, first=not first.begun)
        first.begun = True
        await self._outbox.send(message, counted=False)

    async def _listed(self, first: _FirstList) -> None:
        if not first.begun:
            await self._send_page(first, [])
        await self._outbox.send(Relisted(self._number))
        self._version = first.version

    async def _follow(self) -> None:
        """Watch until the server ends it, from the list on if there is none yet."""
        first = _FirstList() if self._version is None else None
        span = random.randint(*WATCH_SPAN)  # noqa: S311 - no secret
        query = [
            *self._watch.query,
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", str(span)),
        ]
        if first is None:
            query.append(("resourceVersion", self._version or ""))
        else:
            query += [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]
        path = path_with(self._watch.path, query)
        async with (
            asyncio.timeout(LIST_TIMEOUT if first else None) as patience,
            self._session.stream(path, silence=span + SILENCE) as response,
        ):
            if response.status != 200:
                answer = Answer(response.status, await response.read(), retry_after(response))
                raise ExpiredError if response.status == 410 else RefusedError(answer)
            opened = time.monotonic()
            rest = b""
            try:
                async for chunk in response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    if first is not None:
                        lines = await self._begin(first, lines)
                        if self._version is None:
                            continue
                        first = None
                        patience.reschedule(None)
                    if lines:
                        await self._deliver(lines)
            finally:
                self._steady = time.monotonic() - opened >= STEADY

    async def _begin(self, first: _FirstList, lines: list[bytes]) -> list[bytes]:
        """Take what is of the list from ``lines``; return the rest."""
        for position, line in enumerate(lines):
            if not line:
                continue
            kind, item, version = _event(line)
            if kind == ADDED:
                first.items.append(item)
            elif kind != BOOKMARK:
                raise BrokenError(f"{kind} inside a list")
            elif (item["metadata"].get("annotations") or {}).get(_LIST_ENDS) == "true":
                if first.items:
                    await self._send_page(first, first.items)
                first.version = version
                await self._listed(first)
                return lines[position + 1 :]
        if len(first.items) >= PAGE:
            await self._send_page(first, first.items)
            first.items = []
        return []

    async def _deliver(self, lines: Iterable[bytes]) -> None:
        items: list[Any] = []
        version = self._version
        try:
            for line in lines:
                if not line:
                    continue
                kind, item, version = _event(line)
                if kind == BOOKMARK:
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
