"""Namespaces that are being deleted end the jobs in them, with a reason.

What the cluster has there goes by itself; jobs of the first door may have nothing there yet.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

from hekla.kube.client import KubeClient
from hekla.kube.events import DELETED, RELISTED, WatchEvent
from hekla.kube.resources import NAMESPACES
from hekla.lifecycle import repeating
from hekla.store import mirrored
from hekla.store.database import Database
from services.controller.mirror.jobs import Hold, held

log = logging.getLogger(__name__)

LOOK_EVERY: Final = timedelta(seconds=1)
CHUNK: Final = 100
"""Jobs ended in one transaction."""


class Namespaces:
    """Which are on their way out."""

    def __init__(self, database: Database, hold: Hold) -> None:
        self._database = database
        self._hold = hold
        self._lock = threading.Lock()
        self._leaving: dict[str, bool] = {}
        """Those that are left, and whether they are gone by now: then one look more is due."""
        self.changed = threading.Event()

    def take(self, batch: Sequence[WatchEvent]) -> None:
        """Take in one batch of a watch."""
        if batch and batch[0].type == RELISTED:
            listed = batch[0].object
            there = {one["metadata"]["name"] for one in listed}
            with self._lock:
                gone = dict.fromkeys(self._leaving.keys() - there, True)  # unseen
                self._leaving = gone | dict.fromkeys(_leaving(listed), False)
        else:
            with self._lock:
                for event in batch:
                    name = event.object["metadata"]["name"]
                    if event.type == DELETED:
                        self._leaving[name] = True
                    elif list(_leaving([event.object])):
                        self._leaving[name] = False
                    else:
                        self._leaving.pop(name, None)
        self.changed.set()

    def end_once(self) -> bool:
        """End jobs that are in a namespace that leaves, or that came into it since."""
        with self._lock:
            leaving = dict(self._leaving)
        ended = 0
        for name, gone in leaving.items():
            with self._database.transaction() as session:
                held(self._hold, session)
                uids = mirrored.end_in_namespace(session, name, limit=CHUNK)
                left = bool(uids) or mirrored.is_in_namespace(session, name)
            if uids:
                log.info("namespace is deleted, and jobs with it", extra={"namespace": name})
            elif gone and not left:
                with self._lock:
                    if self._leaving.get(name):
                        del self._leaving[name]
            ended += len(uids)
        return ended > 0

    @contextmanager
    def running(self, kube: KubeClient) -> Iterator[None]:
        """Watch, and end jobs, until the block ends."""
        subscription = kube.watch(NAMESPACES)

        def watch() -> None:
            for batch in subscription:
                self.take(batch)

        thread = threading.Thread(target=watch, name="namespaces", daemon=True)
        thread.start()
        try:
            with repeating("namespaces", self.end_once, idle=LOOK_EVERY, wake=self.changed):
                yield
        finally:
            subscription.close()
            thread.join(timeout=10)


def _leaving(namespaces: Iterable[Any]) -> Iterator[str]:
    for one in namespaces:
        if one["metadata"].get("deletionTimestamp"):
            yield one["metadata"]["name"]
