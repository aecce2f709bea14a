"""Writes what Kubernetes shows of our pods into their attempts.

Every replica has one observer; they write the same things, and the rows take each once. A
pod's finalizer is removed only when its outcome is committed, so that no end goes unseen. A
pod that comes after its attempt was over is deleted; one that nobody here knows is left.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Final
from uuid import UUID

from hekla.domain import names
from hekla.domain.attempt import PodSeen
from hekla.domain.errors import ConflictError, DomainError, UnavailableError
from hekla.kube.client import KubeClient
from hekla.kube.events import DELETED, RELISTED, WatchEvent
from hekla.kube.requests import Deletion, Patch
from hekla.kube.resources import PODS
from hekla.kube.subscription import Subscription
from hekla.store import observations
from hekla.store.database import Database, now
from hekla.store.observations import Unseen, Verdict

log = logging.getLogger(__name__)

CHUNK: Final = 500
ANY_VERSION: Final = 2**62
FIRST_UID: Final = UUID(int=0)
SETTLED: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT})
RETRY_SECONDS: Final = 0.5
RESTS: Final = 9
"""How many times as long as writing pods down took nothing is written."""
LONGEST_REST_SECONDS: Final = 0.1


class Observer:
    """Watches pods; one a process."""

    def __init__(self, database: Database, kube: KubeClient) -> None:
        self._database = database
        self._kube = kube
        self._stop = threading.Event()
        self._listed = threading.Event()
        self._ended = threading.Event()
        self._subscription: Subscription | None = None
        self._owed: dict[str, PodSeen] = {}
        self._owed_lock = threading.Lock()
        self.owing = threading.Event()
        """Set when there are finalizers to remove."""

    def problem(self) -> str | None:
        """Why pods are not seen yet, or not any more, or None: a readiness check."""
        if self._ended.is_set() and not self._stop.is_set():
            return "pods are not seen any more; the log says why"
        return None if self._listed.is_set() else "pods were not listed yet"

    def run(self) -> None:
        """Observe until stopped; a batch that cannot be written is tried until it is."""
        try:
            self._observe()
        finally:
            self._ended.set()

    def _observe(self) -> None:
        self._subscription = self._kube.watch(
            PODS, label_selector=names.JOB_UID, project="services.controller.pod_seen:project"
        )
        for batch in _gathered(self._subscription):
            began = time.monotonic()
            while not self._stop.is_set():
                try:
                    self.take(batch)
                    break
                except (UnavailableError, ConflictError) as error:
                    log.warning("pods were not recorded; trying again", exc_info=error)
                    self._stop.wait(RETRY_SECONDS)
            # News gather meanwhile: a transaction costs much the same for one pod and for ten.
            rest = min(RESTS * (time.monotonic() - began), LONGEST_REST_SECONDS)
            if self._stop.wait(0 if len(batch) >= CHUNK else rest):
                return

    def stop(self) -> None:
        """End :meth:`run`."""
        self._stop.set()
        if self._subscription is not None:
            self._subscription.close()

    def take(self, batch: Sequence[WatchEvent]) -> None:
        """Write down one batch of a watch, and do what follows from it.

        Raises:
            UnavailableError, ConflictError: it was not written; try again.
        """
        if batch and batch[0].type == RELISTED:
            self._take_all(batch[0].object)
            return
        self._write(_seen(event) for event in batch)

    def _take_all(self, pods: Iterable[PodSeen]) -> None:
        self._find_lost([pod.pod_uid for pod in self._write(pods)])
        self._listed.set()

    def _write(self, pods: Iterable[PodSeen]) -> Sequence[PodSeen]:
        written: list[PodSeen] = []
        for chunk in _chunks(pods):
            self._write_some(chunk)
            written.extend(chunk)
        return written

    def _write_some(self, pods: Sequence[PodSeen]) -> None:
        """Write pods down; one that cannot be written holds up no other."""
        try:
            with self._database.transaction() as session:
                verdict = observations.observe(session, pods)
        except DomainError:
            raise
        except Exception:  # one item of a batch: others do not wait for it
            if len(pods) == 1:
                log.exception("pod cannot be recorded", extra={"pods": _names(pods)})
                return
            half = len(pods) // 2
            self._write_some(pods[:half])
            self._write_some(pods[half:])
        else:
            self._enforce(verdict)

    def _enforce(self, verdict: Verdict) -> None:
        with self._owed_lock:
            self._owed.update({pod.pod_uid: pod for pod in verdict.release})
            self._owed.update({pod.pod_uid: pod for pod in verdict.late if pod.finalizer})
        self.owing.set()
        if verdict.late:
            # One that changed since comes again, and may have been let go of.
            self._kube.delete_many(
                Deletion(
                    PODS, pod.namespace, pod.name, pod.pod_uid, version=pod.resource_version
                )
                for pod in verdict.late
                if not pod.terminating
            )
            log.info("late pods deleted", extra={"pods": _names(verdict.late)})
        if verdict.strange:
            log.warning("pods of unknown jobs", extra={"pods": _names(verdict.strange)})

    def release_once(self) -> bool:
        """Remove finalizers of pods whose outcome is recorded; whether any are left."""
        with self._owed_lock:
            pods = list(itertools.islice(self._owed.values(), CHUNK))
        if not pods:
            return False
        replies = self._kube.patch_many(_without_finalizer(pod) for pod in pods)
        refused = 0
        with self._owed_lock:
            for pod, reply in zip(pods, replies, strict=True):
                # A pod that changed meanwhile comes again, as a newer one.
                settled = reply.ok or reply.status in SETTLED
                refused += not settled
                if settled and self._owed.get(pod.pod_uid) is pod:
                    del self._owed[pod.pod_uid]
        if refused:
            log.warning("finalizers could not be removed yet", extra={"count": refused})
        return not refused

    def _find_lost(self, listed: Sequence[str]) -> None:
        """Ask after every pod that should have been in the list; some are gone unseen."""
        after = FIRST_UID
        while not self._stop.is_set():
            with self._database.transaction() as session:
                missing = observations.unseen(
                    session, listed, before=ANY_VERSION, after=after, limit=CHUNK
                )
            if not missing:
                return
            gone = [one.uid for one in missing if self._is_gone(one)]
            if gone:
                with self._database.transaction() as session:
                    observations.lost(session, gone, at=now(session))
                log.info("pods were lost", extra={"count": len(gone)})
            after = missing[-1].uid

    def _is_gone(self, one: Unseen) -> bool:
        reply = self._kube.get(PODS, one.namespace, one.pod_name)
        if reply.status == HTTPStatus.NOT_FOUND:
            return True
        return (
            reply.ok
            and reply.object is not None
            and reply.object["metadata"]["uid"] != one.pod_uid
        )


def _gathered(subscription: Subscription) -> Iterator[list[WatchEvent]]:
    """Batches of a watch, those that wait together as one; a full list by itself."""
    following: list[WatchEvent] = []
    while batch := following or subscription.take(None):
        following = []
        while not following and subscription.waiting and batch[0].type != RELISTED:
            more = subscription.take(0)
            if more and more[0].type == RELISTED:
                following = more
            else:
                batch += more
        yield batch


def _seen(event: WatchEvent) -> PodSeen:
    pod: PodSeen = event.object
    return replace(pod, gone=True) if event.type == DELETED else pod


def _chunks(pods: Iterable[PodSeen]) -> Iterable[list[PodSeen]]:
    rest = iter(pods)
    while chunk := list(itertools.islice(rest, CHUNK)):
        yield chunk


def _without_finalizer(pod: PodSeen) -> Patch:
    # The list is small and ours: what others hold is kept by naming the version read.
    body = {
        "metadata": {
            "uid": pod.pod_uid,
            "resourceVersion": str(pod.resource_version),
            "finalizers": [one for one in pod.finalizers if one != names.OUTCOME_FINALIZER],
        }
    }
    return Patch(PODS, pod.namespace, pod.name, body)


def _names(pods: Sequence[PodSeen]) -> list[str]:
    return [f"{pod.namespace}/{pod.name}" for pod in pods[:20]]
