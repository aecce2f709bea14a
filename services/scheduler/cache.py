"""The world as events tell it, kept for sessions. Belongs to the scheduling thread."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from hekla.store.binds import BindRecord
from hekla.telemetry import metrics
from services.scheduler.core.cluster import Cluster
from services.scheduler.core.objects import Group, Node, Pod, PodSpec, PriorityClass, Queue
from services.scheduler.events import GONE, Batch, Full, Kind, SeenPod

STEP: Final = 500
"""Objects applied between two signs of life."""

WATCH_LAG: Final = timedelta(minutes=5)
"""What Kubernetes did so long ago, every watch has told of, or begun anew since."""

log = logging.getLogger(__name__)

Object = Node | SeenPod | PriorityClass | Group | Queue


class Cache:
    """Applies events to a cluster."""

    def __init__(self, scheduler_name: str, move: Callable[[], None]) -> None:
        self.cluster = Cluster()
        self.unplaced: dict[str, SeenPod] = {}
        """Our pods that no event has shown on a node, by uid."""
        self._scheduler_name = scheduler_name
        self._move = move
        self._keys: dict[Kind, set[str]] = {kind: set() for kind in Kind}
        self._filled: set[Kind] = set()
        self._classes: dict[str, PriorityClass] = {}
        self._expected: set[str] = set()
        """Pods known by a recorded placement only, by uid."""
        self._ungrouped: set[str] = set()
        self._gone: dict[str, float] = {}
        """When events told that a pod is gone, by uid, the longest ago first."""

    def missing(self) -> Sequence[Kind]:
        """Kinds of which not even the first full list has come."""
        return [kind for kind in Kind if kind not in self._filled]

    def size(self, kind: Kind) -> int:
        """How many objects of a kind there are."""
        return len(self._keys[kind])

    @property
    def ungrouped(self) -> int:
        """How many of our pods wait because they belong to no group."""
        return len(self._ungrouped)

    def apply(self, event: Batch | Full) -> None:
        """Take over what an event says; an object that makes no sense is left out."""
        keys = self._keys[event.kind]
        if isinstance(event, Full):
            vanished = set(keys)
            for place, found in enumerate(event.objects):
                vanished.discard(self._guarded(self._take, event.kind, found))
                self._live(place)
            for key in vanished:
                self._drop(event.kind, key)
            self._filled.add(event.kind)
        else:
            for place, (type_, found) in enumerate(event.changes):
                act = self._forget if type_ == GONE else self._take
                self._guarded(act, event.kind, found)
                self._live(place)
        metrics.cluster_nodes.set(self.size(Kind.NODE))
        metrics.cluster_pods.set(self.size(Kind.POD))
        metrics.pods_without_group.set(self.ungrouped)

    def expect(self, record: BindRecord) -> bool:
        """Count a recorded placement as used until an event confirms it.

        Returns:
            False where events have told already where the pod is, or that it is gone.
        """
        state = self.cluster.pods.get(record.pod_uid)
        if record.pod_uid in self._gone or (state is not None and state.pod.node):
            return False
        if state is None:
            spec = PodSpec.of(record.request)
            self.cluster.upsert_pod(
                Pod(record.pod_uid, record.namespace, record.pod_name, spec)
            )
            self._expected.add(record.pod_uid)
        self.cluster.assume(record.pod_uid, record.node)
        return True

    def give_up(self, pod_uid: str) -> None:
        """A pod is not where we wanted it."""
        self.cluster.forget(pod_uid)
        if pod_uid in self._expected:
            self._expected.discard(pod_uid)
            self.cluster.remove_pod(pod_uid)

    def follow(self) -> None:
        """Believe nothing but events again."""
        self.cluster.follow()
        for uid in list(self._expected):
            self.give_up(uid)

    def rebuild(self) -> None:
        """Make the cluster anew out of what events told: a fault of ours may have bent it."""
        old, self.cluster = self.cluster, Cluster()
        for priority_class in self._classes.values():
            self.cluster.upsert_priority_class(priority_class)
        for node in old.nodes.nodes:
            if node is not None:
                self.cluster.upsert_node(node)
        for queue in old.queues:
            if queue.queue is not None:
                self.cluster.upsert_queue(queue.queue)
        for group in old.groups.values():
            self.cluster.upsert_group(group.group)
        for uid, state in old.pods.items():
            if uid not in self._expected:
                self.cluster.upsert_pod(state.pod)
        self._expected.clear()

    def _live(self, place: int) -> None:
        if place % STEP == 0:
            self._move()

    def _guarded(self, act: Callable[[Kind, Any], str], kind: Kind, found: Any) -> str:
        try:
            return act(kind, found)
        except Exception:  # per-item guard: one odd object must not stop the others
            log.exception("object left out", extra={"kind": kind, "object": repr(found)})
            return _key(found)

    def _take(self, kind: Kind, found: Object) -> str:
        match found:
            case SeenPod():
                self._take_pod(found)
            case Node():
                self.cluster.upsert_node(found)
            case PriorityClass():
                self._classes[found.name] = found
                self.cluster.upsert_priority_class(found)
            case Group():
                self.cluster.upsert_group(found)
            case Queue():
                self.cluster.upsert_queue(found)
        key = _key(found)
        self._keys[kind].add(key)
        return key

    def _take_pod(self, seen: SeenPod) -> None:
        pod = seen.pod
        if seen.scheduler != self._scheduler_name:
            pod = replace(pod, ours=False)
        elif pod.node:
            self.unplaced.pop(pod.uid, None)
            self._ungrouped.discard(pod.uid)
        else:
            self.unplaced[pod.uid] = seen
            if not pod.group and pod.uid not in self._ungrouped:
                self._ungrouped.add(pod.uid)
                log.info(
                    "pod belongs to no group and waits",
                    extra={"pod": f"{pod.namespace}/{pod.name}"},
                )
        self._expected.discard(pod.uid)
        self.cluster.upsert_pod(pod)

    def _forget(self, kind: Kind, found: Object) -> str:
        key = _key(found)
        self._drop(kind, key)
        return key

    def _drop(self, kind: Kind, key: str) -> None:
        self._keys[kind].discard(key)
        match kind:
            case Kind.POD:
                self._remember_gone(key)
                self.unplaced.pop(key, None)
                self._ungrouped.discard(key)
                self._expected.discard(key)
                self.cluster.remove_pod(key)
            case Kind.NODE:
                self.cluster.remove_node(key)
            case Kind.PRIORITY_CLASS:
                self._classes.pop(key, None)
                self.cluster.remove_priority_class(key)
            case Kind.GROUP:
                self.cluster.remove_group(key)
            case Kind.QUEUE:
                self.cluster.remove_queue(key)

    def _remember_gone(self, uid: str) -> None:
        now = time.monotonic()
        self._gone[uid] = now
        before = now - WATCH_LAG.total_seconds()
        while (oldest := next(iter(self._gone))) and self._gone[oldest] < before:
            del self._gone[oldest]


def _key(found: Object) -> str:
    match found:
        case SeenPod():
            return found.pod.uid
        case Group():
            return found.uid
        case _:
            return found.name
