"""The agents of all nodes: take in bound pods, run them, report, and see deletions through.

One object serves every node, since they differ only in name. What running means is the
runtime's (``hekla.local.runtimes``): processes, or pretence.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from hekla.domain import resources, timestamps
from hekla.local.kinds import errors, metadata
from hekla.local.kinds.registry import NODES, PODS, Object
from hekla.local.nodes import pod_status
from hekla.local.nodes.addresses import Addresses
from hekla.local.rules.pods import FINISHED
from hekla.local.storage.journal import JournalError
from hekla.local.storage.memory import DELETED, Change, Entry, Storage
from hekla.local.tasks import Tasks
from hekla.local.verbs.deletions import Deletion
from hekla.local.verbs.objects import Objects

DEADLINE: Final = (
    "DeadlineExceeded",
    "Pod was active on the node longer than the specified deadline",
)
RETRY: Final = 1.0
"""Seconds between tries while the store cannot be written."""

_DEADLINE_FIELD: Final = b'"activeDeadlineSeconds"'

log = logging.getLogger(__name__)


class PodRef(NamedTuple):
    """One pod, not its successor of the same name."""

    namespace: str
    name: str
    uid: str


class Report(NamedTuple):
    """What a runtime has to say about a pod."""

    pod: PodRef
    containers: Mapping[str, pod_status.Container]
    final: bool = False
    """Whether nothing of it runs any more, nor will."""


class Runtime(Protocol):
    """Runs the containers of admitted pods, and reports to the kubelet."""

    def begin(self, known: Collection[str]) -> None:
        """Clean up after pods whose uid is not known any more."""

    def start(self, ref: PodRef, pod: Object, ip: str) -> None:
        """Run the pod, or take over what of it runs already."""

    def stop(self, ref: PodRef, seconds: float) -> None:
        """End the pod's containers, by force after ``seconds``; told again, if sooner."""

    def forget(self, ref: PodRef) -> None:
        """The object is gone: end what runs at once, and leave nothing behind."""


@dataclass(slots=True)
class _Held:
    """A pod that is on a node."""

    ref: PodRef
    node: str
    request: dict[str, int]
    ip: str
    grace: int | None = None
    """The grace period of its deletion, once it is deleted."""
    seconds: int | None = None
    """How long it may be active."""
    timer: asyncio.TimerHandle | None = None
    """Goes off when that is over."""
    verdict: tuple[str, str] | None = None
    """Why it fails, whatever its containers say: reason and message."""
    over: bool = False


@dataclass(slots=True)
class _Node:
    """What one node has, as of a version of its object, and what its pods take."""

    version: int = -1
    labels: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)


class Kubelet:
    """The agents of the nodes ``names``."""

    def __init__(
        self,
        storage: Storage,
        objects: Objects,
        names: Collection[str],
        *,
        now: Callable[[], datetime],
    ) -> None:
        self._storage = storage
        self._objects = objects
        self._now = now
        self._nodes = {name: _Node() for name in names}
        self._pods: dict[str, _Held] = {}
        self._addresses = Addresses()
        self._runtime: Runtime
        self.tasks = Tasks()

    def begin(self, runtime: Runtime) -> None:
        """Take over the pods there are, then those that come."""
        self._runtime = runtime
        entries = list(self._storage.select(PODS))
        for entry in entries:
            self._addresses.reserve(entry.field("status.podIP"))
            self._see_lost_node(entry)
        runtime.begin({entry.uid for entry in entries if self._ours(entry)})
        # Pods that were taken before come first: what they use is used.
        for entry in sorted(entries, key=lambda entry: entry.field("status.podIP") == ""):
            self._see(entry)
        self._storage.listen(self._hear)

    def allocatable(self, node: str) -> Mapping[str, int]:
        """What a node has for pods."""
        return self._node(node).allocatable

    async def report(self, reports: Sequence[Report]) -> None:
        """Write what a runtime says; returns when it lasts, and deletes what is over."""
        while True:
            for report in reports:
                self._write(report)
            try:
                await self._storage.settled()
            except JournalError as error:
                log.warning("status not written", extra={"error": str(error)})
                await asyncio.sleep(RETRY)
            else:
                return

    def _hear(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if change.entry.kind is not PODS:
                continue
            try:
                if change.type == DELETED:
                    self._drop(change.entry)
                else:
                    self._see(change.entry)
            except Exception:  # one odd pod must not hide the next
                log.exception("pod failed", extra={"pod": change.entry.name})

    def _see(self, entry: Entry) -> None:
        held = self._pods.get(entry.uid)
        if held is None:
            node = entry.field("spec.nodeName")
            if node in self._nodes:
                self._take_in(entry, node)
            elif entry.deleting:  # nobody else would see it through
                self.tasks.spawn(self._delete(_ref(entry)), name=f"delete {entry.name}")
        elif not held.over:
            if entry.deleting:
                self._see_deletion(held, entry.object())
            if held.seconds is not None or _DEADLINE_FIELD in entry.raw:
                self._see_deadline(held, entry.object())

    def _ours(self, entry: Entry) -> bool:
        return entry.field("spec.nodeName") in self._nodes

    def _see_lost_node(self, entry: Entry) -> None:
        node = entry.field("spec.nodeName")
        if node in self._nodes or not entry.field("status.podIP"):
            return
        if self._storage.latest(NODES, "", node) is None and not _finished(entry):
            why = ("NodeLost", f"the node {node} is no more")
            self.tasks.spawn(self._reject(_ref(entry), *why), name=f"end {entry.name}")

    def _take_in(self, entry: Entry, node: str) -> None:
        ref = _ref(entry)
        pod = entry.object()
        if _finished(entry):
            if entry.deleting:
                self.tasks.spawn(self._delete(ref), name=f"delete {ref.name}")
            return
        request = resources.pod_request(pod) | {resources.PODS: 1}
        ip = entry.field("status.podIP")
        if not ip:
            refusal = self._refusal(pod, node, request)
            if refusal is not None:
                self.tasks.spawn(self._reject(ref, *refusal), name=f"reject {ref.name}")
                return
        held = _Held(ref, node, request, ip or self._addresses.take())
        self._pods[entry.uid] = held
        self._nodes[node].used = resources.add(self._nodes[node].used, request)
        self._runtime.start(ref, pod, held.ip)
        if entry.deleting:
            self._see_deletion(held, pod)
        self._see_deadline(held, pod)

    def _refusal(
        self, pod: Object, name: str, request: Mapping[str, int]
    ) -> tuple[str, str] | None:
        """Why the node does not take the pod, as reason and message."""
        node = self._node(name)
        selector = pod["spec"].get("nodeSelector") or {}
        if any(node.labels.get(key) != value for key, value in selector.items()):
            return "NodeAffinity", "Pod was rejected: Predicate NodeAffinity failed"
        for resource, amount in request.items():
            used = node.used.get(resource, 0)
            has = node.allocatable.get(resource, 0)
            if amount and used + amount > has:
                return f"OutOf{resource}", (
                    f"Pod was rejected: Node didn't have enough resource: {resource}, "
                    f"requested: {amount}, used: {used}, capacity: {has}"
                )
        return None

    def _node(self, name: str) -> _Node:
        node = self._nodes[name]
        entry = self._storage.get(NODES, "", name)
        if entry is not None and entry.version != node.version:
            listed = entry.object().get("status", {}).get("allocatable", {})
            node.version = entry.version
            node.labels = entry.labels
            node.allocatable = resources.parse_list(listed)
        return node

    def _see_deletion(self, held: _Held, pod: Object) -> None:
        grace = pod["metadata"].get("deletionGracePeriodSeconds", 0)
        if held.grace is not None and grace >= held.grace:
            return
        first = held.grace is None
        held.grace = grace
        deadline = metadata.deadline(pod["metadata"])
        assert deadline is not None
        left = (deadline - self._now()).total_seconds()
        # The deadline is cut to seconds, so a deletion that is new has its whole time.
        fresh = first and left > grace - 1.5
        self._runtime.stop(held.ref, grace if fresh else max(left, 0.0))

    def _see_deadline(self, held: _Held, pod: Object) -> None:
        seconds = pod["spec"].get("activeDeadlineSeconds")
        if seconds == held.seconds or held.verdict is not None:
            return
        held.seconds = seconds
        if held.timer is not None:
            held.timer.cancel()
            held.timer = None
        if seconds is None:
            return
        since = pod.get("status", {}).get("startTime")
        passed = 0.0
        if since:  # it is cut to seconds, and a pod gets its whole time
            passed = max((self._now() - timestamps.from_text(since)).total_seconds() - 1, 0.0)
        grace = pod["spec"]["terminationGracePeriodSeconds"]
        loop = asyncio.get_running_loop()
        held.timer = loop.call_later(max(seconds - passed, 0.0), self._expire, held, grace)

    def _expire(self, held: _Held, grace: int) -> None:
        held.verdict = DEADLINE
        if held.grace is None:  # else it is ending already
            self._runtime.stop(held.ref, grace)

    def _write(self, report: Report) -> None:
        ref = report.pod
        held = self._pods.get(ref.uid)
        entry = self._storage.latest(PODS, ref.namespace, ref.name)
        if entry is None or entry.uid != ref.uid or held is None:
            return
        if not _finished(entry):
            pod = entry.object()
            status = pod_status.build(
                pod, report.containers, ip=held.ip, now=self._now(), final=report.final
            )
            if held.verdict is not None and status["phase"] in FINISHED:
                status |= pod_status.verdict(*held.verdict)
            self._objects.write_status(
                PODS, ref.namespace, ref.name, uid=ref.uid, status=status
            )
        if report.final:
            self._release(held)
            if entry.deleting:
                self._remove(ref)

    async def _reject(self, ref: PodRef, reason: str, message: str) -> None:
        while True:
            entry = self._storage.latest(PODS, ref.namespace, ref.name)
            if entry is None or entry.uid != ref.uid:
                return
            status = pod_status.rejected(entry.object(), reason, message, now=self._now())
            self._objects.write_status(
                PODS, ref.namespace, ref.name, uid=ref.uid, status=status
            )
            if entry.deleting:
                self._remove(ref)
            try:
                await self._storage.settled()
            except JournalError:
                await asyncio.sleep(RETRY)
            else:
                return

    async def _delete(self, ref: PodRef) -> None:
        self._remove(ref)
        await self._storage.settled()

    def _remove(self, ref: PodRef) -> None:
        try:
            self._objects.delete(PODS, ref.namespace, ref.name, Deletion(0, ref.uid))
        except errors.ApiError as error:
            if error.code not in {404, 409}:
                raise

    def _release(self, held: _Held) -> None:
        """Free what the pod took of its node; its address stays its own until it is gone."""
        if held.timer is not None:
            held.timer.cancel()
        if not held.over:
            held.over = True
            used = self._nodes[held.node].used
            for resource, amount in held.request.items():
                used[resource] = used.get(resource, 0) - amount

    def _drop(self, entry: Entry) -> None:
        held = self._pods.pop(entry.uid, None)
        if held is not None:
            self._release(held)
            self._addresses.give_back(held.ip)
        if self._ours(entry):
            self._runtime.forget(_ref(entry))


def _ref(entry: Entry) -> PodRef:
    return PodRef(entry.namespace, entry.name, entry.uid)


def _finished(entry: Entry) -> bool:
    return entry.field("status.phase") in FINISHED
