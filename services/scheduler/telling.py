"""Tells the world what was decided besides binds: groups' status, and why pods wait."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import orjson

from hekla.domain import timestamps
from hekla.domain.errors import (
    ConflictError,
    DomainError,
    ExhaustedError,
    PreconditionError,
    UnavailableError,
)
from hekla.kube.client import KubeClient
from hekla.kube.requests import Patch
from hekla.kube.resources import PODS
from services.scheduler.core.objects import GroupReport
from services.scheduler.events import Deposed, Event, Outdated, SeenPod

CHUNK: Final = 1000
"""Reports in one call."""
LONGEST_MESSAGE: Final = 1000
PATCH_TIMEOUT: Final = 5.0

log = logging.getLogger(__name__)

Send = Callable[[int, Sequence[GroupReport]], Sequence[str]]
"""Reports groups for an epoch; returns the uids of those that are gone."""


class Reports:
    """What the controller has not acknowledged yet: of each group, the latest."""

    def __init__(self, send: Send, tell: Callable[[Event], None]) -> None:
        self._send = send
        self._tell = tell
        self._lock = threading.Lock()
        self._epoch: int | None = None
        self._waiting: dict[str, GroupReport] = {}
        self._failed = False
        self.wake = threading.Event()

    def begin(self, epoch: int) -> None:
        """A term begins."""
        with self._lock:
            self._epoch = epoch

    def end(self) -> None:
        """The term is over: what was not acknowledged is the next leader's to find out."""
        with self._lock:
            self._epoch = None
            self._waiting.clear()

    def add(self, reports: Iterable[GroupReport]) -> None:
        """Report groups; an older report of the same group is not sent any more."""
        with self._lock:
            if self._epoch is not None:
                self._waiting.update((report.uid, report) for report in reports)
        self.wake.set()

    def done(self) -> bool:
        """Whether everything was acknowledged."""
        with self._lock:
            return not self._waiting

    def look(self) -> bool:
        """Send what waits; return whether there may be more at once."""
        with self._lock:
            epoch = self._epoch
            chunk = list(self._waiting.values())[:CHUNK]
        if epoch is None or not chunk:
            return False
        try:
            unknown = self._deliver(epoch, chunk)
        except PreconditionError as error:
            self._tell(Deposed(epoch, str(error)))
            return False
        except DomainError as error:
            if not self._failed:
                log.warning("reports held up", extra={"epoch": epoch, "reason": str(error)})
            self._failed = True
            return False
        self._failed = False
        if unknown:
            log.info("groups are gone", extra={"groups": list(unknown)})
        with self._lock:
            for report in chunk:
                if self._waiting.get(report.uid) is report:
                    del self._waiting[report.uid]
        return True

    def _deliver(self, epoch: int, chunk: Sequence[GroupReport]) -> Sequence[str]:
        try:
            return self._send(epoch, chunk)
        except (PreconditionError, UnavailableError, ConflictError, ExhaustedError):
            raise
        except DomainError as error:
            # One that is refused must not hold up the others.
            if len(chunk) == 1:
                log.error("report refused", extra={"group": chunk[0].uid, "reason": str(error)})
                return ()
            return [uid for report in chunk for uid in self._deliver(epoch, [report])]


class _Word(NamedTuple):
    seen: SeenPod
    reason: str
    message: str
    at: datetime


class Conditions:
    """PodScheduled=False and why, on pods that cannot be placed: so many a second."""

    def __init__(
        self, client: KubeClient, tell: Callable[[Event], None], *, batch: int
    ) -> None:
        self._client = client
        self._tell = tell
        self._batch = batch
        self._lock = threading.Lock()
        self._waiting: dict[str, _Word] = {}

    def say(self, seen: SeenPod, reason: str, message: str, at: datetime) -> None:
        """Tell a pod why it waits, unless its status says so already."""
        message = message[:LONGEST_MESSAGE]
        if seen.told != (reason, message):
            with self._lock:
                self._waiting[seen.pod.uid] = _Word(seen, reason, message, at)

    def withdraw(self, pod_uids: Iterable[str]) -> None:
        """These pods wait no more."""
        with self._lock:
            for uid in pod_uids:
                self._waiting.pop(uid, None)

    def end(self) -> None:
        """The term is over."""
        with self._lock:
            self._waiting.clear()

    def look(self) -> bool:
        """Tell some pods; always idle after, so that the rate is kept."""
        with self._lock:
            words = list(self._waiting.values())[: self._batch]
            for word in words:
                del self._waiting[word.seen.pod.uid]
        if not words:
            return False
        try:
            replies = self._client.patch_many(
                [_patch(word) for word in words], timeout=PATCH_TIMEOUT, fenced=True
            )
        except UnavailableError:
            return False  # a session says it again when there is something new
        for word, reply in zip(words, replies, strict=True):
            if reply.status == 409:
                self._tell(Outdated(word.seen.pod.uid, word.reason, word.message))
        return False


def _patch(word: _Word) -> Patch:
    """The pod's conditions with ours; a merge patch replaces the whole list."""
    seen = word.seen
    others: list[Any] = [orjson.loads(text) for text in seen.conditions]
    now = timestamps.to_text(word.at)
    ours = {
        "type": "PodScheduled",
        "status": "False",
        "reason": word.reason,
        "message": word.message,
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    body = {
        "metadata": {"resourceVersion": seen.version, "uid": seen.pod.uid},
        "status": {"conditions": [*others, ours]},
    }
    return Patch(PODS, seen.pod.namespace, seen.pod.name, body, subresource="status")
