"""The world as files have it: what a world file says exists, and the objects in question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from hekla.api.fields import Model
from hekla.api.meta import ObjectMeta
from hekla.api.queue import Queue, QueueSpec, QueueStatus
from hekla.domain import names, resources
from hekla.domain.errors import InvalidError
from hekla.domain.phases import QueueState
from hekla.domain.resources import Resources
from services.webhook.rules.defaults import DEFAULT_NAMESPACE, HIERARCHY
from services.webhook.rules.pod import Pod

Identity = tuple[str, str, str]
"""Kind, namespace and name."""


def identity(obj: Model | Pod) -> Identity:
    """What tells ``obj`` from others."""
    if isinstance(obj, Pod):
        metadata = obj.raw.get("metadata")
        metadata = metadata if isinstance(metadata, Mapping) else {}
        namespace = metadata.get("namespace") or DEFAULT_NAMESPACE
        return ("Pod", str(namespace), str(metadata.get("name") or ""))
    meta: ObjectMeta = getattr(obj, "metadata")  # noqa: B009 - of every kind
    kind = type(obj).__name__
    namespace = "" if kind in _WITHOUT_NAMESPACE else meta.namespace or DEFAULT_NAMESPACE
    return (kind, namespace, meta.name)


_WITHOUT_NAMESPACE: Final = frozenset({"Queue", "HyperNode", "Numatopology"})


class FileWorld:
    """The objects of files. What would have to be known and is not goes into ``unchecked``."""

    def __init__(self, *, complete: bool) -> None:
        self._complete = complete
        """Whether a queue that is not there does not exist, or only is not known."""
        self._objects: dict[Identity, Model | Pod] = {}
        self._children: dict[str, set[str]] = {}
        self._nodes: dict[tuple[tuple[str, int], ...], Resources] = {}
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self.unchecked: dict[str, None] = {}
        for name, parent in ((names.ROOT_QUEUE, ""), (names.DEFAULT_QUEUE, names.ROOT_QUEUE)):
            self.add(
                Queue(
                    metadata=ObjectMeta(name=name),
                    spec=QueueSpec(parent=parent or None),
                    status=QueueStatus(state=QueueState.OPEN),
                )
            )

    def add(self, obj: Model | Pod) -> None:
        """Let ``obj`` exist, in place of one of its name."""
        key = identity(obj)
        before = self._objects.get(key)
        if isinstance(before, Queue):
            self._children.get(_parent(before), set()).discard(key[2])
        self._objects[key] = obj
        if isinstance(obj, Queue) and key[2] != names.ROOT_QUEUE:
            self._children.setdefault(_parent(obj), set()).add(key[2])

    def add_foreign(self, raw: Mapping[str, Any]) -> bool:
        """Let a node or a namespace exist; whether ``raw`` is one."""
        kind, metadata = raw.get("kind"), raw.get("metadata") or {}
        if raw.get("apiVersion") != "v1" or not isinstance(metadata, Mapping):
            return False
        if kind == "Namespace":
            self._namespaces[str(metadata.get("name"))] = metadata.get("annotations") or {}
        elif kind == "Node":
            status = raw.get("status") or {}
            try:
                found = resources.parse_list(status.get("allocatable") or {})
            except (InvalidError, AttributeError):
                return False
            self._nodes[tuple(sorted(found.items()))] = found
        return kind in {"Namespace", "Node"}

    def get(self, key: Identity) -> Model | Pod | None:
        """The object of that kind and name, if there is one."""
        return self._objects.get(key)

    def queue(self, name: str) -> Queue | None:
        """The queue of that name; an open one if it is not known."""
        found = self._objects.get(("Queue", "", name))
        if isinstance(found, Queue):
            return found
        if self._complete:
            return None
        self.unchecked[f"whether queue {name} exists, and what it takes"] = None
        return Queue(metadata=ObjectMeta(name=name), status=QueueStatus(state=QueueState.OPEN))

    def child_queues(self, name: str) -> Sequence[str]:
        """Names of the queues directly below ``name``."""
        if not self._complete and name not in self._children:
            self.unchecked[f"whether queues stand below {name}"] = None
        return sorted(self._children.get(name, ()))

    def staying_queues(self, name: str) -> Sequence[str]:
        """Names of the queues directly below ``name``: none of them is on its way out."""
        return self.child_queues(name)

    def running_pods(self, queue: str) -> int:
        """How many pods run in a queue, as its status says."""
        found = self._objects.get(("Queue", "", queue))
        allocated = found.status.allocated if isinstance(found, Queue) else None
        try:
            return resources.parse_list(allocated or {}).get(resources.PODS, 0)
        except InvalidError:
            return 0

    def hierarchies(self) -> Mapping[str, str]:
        """Queues that have the annotation ``volcano.sh/hierarchy``, with its value."""
        if not self._complete:
            self.unchecked[f"the {HIERARCHY} of other queues"] = None
        found = {}
        for (kind, _, name), obj in self._objects.items():
            if kind == "Queue" and isinstance(obj, Queue):
                annotations = obj.metadata.annotations or {}
                if HIERARCHY in annotations:
                    found[name] = annotations[HIERARCHY]
        return found

    def namespace_annotations(self, name: str) -> Mapping[str, str]:
        """The annotations of a namespace; none if it is not known."""
        if name not in self._namespaces and not self._complete:
            self.unchecked[f"the queue that namespace {name} names"] = None
        return self._namespaces.get(name, {})

    def nodes(self) -> Iterable[Resources]:
        """What the known nodes have for pods."""
        if not self._nodes:
            self.unchecked["whether some node has room for a pod"] = None
        return list(self._nodes.values())


def _parent(queue: Queue) -> str:
    return queue.spec.parent or names.ROOT_QUEUE
