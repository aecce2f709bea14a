"""Tells the world what was decided besides binds: groups' status, and why pods wait."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import chain, islice
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
PACE: Final = 20
"""Reports a second that nobody acts on, or so many at once; where there are more, they rest."""
LONGEST_REST: Final = timedelta(seconds=5)
LONGEST_MESSAGE: Final = 1000
PATCH_TIMEOUT: Final = 5.0

log = logging.getLogger(__name__)

Send = Callable[[int, Sequence[GroupReport]], Sequence[str]]
"""Reports groups for an epoch; returns the uids of those that are gone."""


class Reports:
    """What the controller has not acknowledged yet: of each group, the latest.

    What nobody acts on rests where there is much of it: then most is overtaken by what comes
    next, or by the end of its group, and each report sent is a version of the group for
    everybody who watches it.
    """

    def __init__(self, send: Send, tell: Callable[[Event], None]) -> None:
        self._send = send
        self._tell = tell
        self._lock = threading.Lock()
        self._epoch: int | None = None
        self._pressing: dict[str, GroupReport] = {}
        self._resting: dict[str, GroupReport] = {}
        self._paid_at = 0.0
        """When those that were sent are made up for."""
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
            self._pressing.clear()
            self._resting.clear()

    def add(self, reports: Iterable[GroupReport]) -> None:
        """Report groups; an older report of the same group is not sent any more."""
        with self._lock:
            if self._epoch is None:
                return
            for report in reports:
                if report.may_rest and report.uid not in self._pressing:
                    self._resting[report.uid] = report
                else:
                    self._resting.pop(report.uid, None)
                    self._pressing[report.uid] = report
            due = bool(self._due())
        if due:
            self.wake.set()

    def withdraw(self, uids: Iterable[str]) -> None:
        """These groups are gone."""
        with self._lock:
            for uid in uids:
                self._pressing.pop(uid, None)
                self._resting.pop(uid, None)

    def hurry(self) -> None:
        """Let nothing rest that waits now."""
        with self._lock:
            self._pressing |= self._resting
            self._resting.clear()
        self.wake.set()

    def done(self) -> bool:
        """Whether everything was acknowledged."""
        with self._lock:
            return not (self._pressing or self._resting)

    def look(self) -> bool:
        """Send what is due; return whether there may be more at once."""
        with self._lock:
            epoch = self._epoch
            chunk = self._due()
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
            self._acknowledged(chunk)
        return True

    def _due(self) -> Sequence[GroupReport]:
        reports: Iterable[GroupReport] = self._pressing.values()
        if time.monotonic() >= self._paid_at - 1:
            reports = chain(reports, self._resting.values())
        return list(islice(reports, CHUNK))

    def _acknowledged(self, chunk: Iterable[GroupReport]) -> None:
        rested = 0
        for report in chunk:
            if self._pressing.get(report.uid) is report:
                del self._pressing[report.uid]
            elif report.may_rest:
                rested += 1
                if self._resting.get(report.uid) is report:
                    del self._resting[report.uid]
        if rested:
            now, longest = time.monotonic(), LONGEST_REST.total_seconds()
            self._paid_at = min(max(self._paid_at, now) + rested / PACE, now + 1 + longest)

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
