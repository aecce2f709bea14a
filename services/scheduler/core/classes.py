"""Classes of pods that placement cannot tell apart.

A class is the projection of a pod on what the enabled plugins declare they read. Work is
done once a class, not once a pod: that is where the speed comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final

from services.scheduler.core.nodes import LARGEST, PODS_COLUMN, UNFITTING
from services.scheduler.core.objects import Labels, Pod, PodSpec

_CACHED: Final = 512
"""Classes of which the placement keeps what it worked out."""

ALWAYS_READ: Final = ("features", "priority", "priority_class", "request")
"""Read by the core itself: accounting, and the order of tasks."""


class PodClass:
    """One class: what its pods have in common, and how many there are."""

    __slots__ = ("cache", "columns", "key", "labels", "missing", "pods", "priority", "spec")

    def __init__(self, key: object, spec: PodSpec, labels: Labels) -> None:
        self.key = key
        self.spec = spec
        """The pod's spec; fields that no plugin reads have their defaults."""
        self.labels = labels
        """The pod's labels that a plugin reads."""
        self.pods = 0
        """How many pods of the class are known; a class without pods is dropped."""
        self.priority = 0
        """The value of its priority, or of its priority class."""
        self.columns: tuple[tuple[int, int], ...] = ()
        """(column, amount) for each resource it takes, ``pods`` included."""
        self.missing: tuple[str, ...] = ()
        """Resources it asks for that no node has ever had."""
        self.cache: Any = None
        """Whatever the placement keeps of it; see ``placement.Candidates``."""

    @property
    def best_effort(self) -> bool:
        """Whether its pods ask for nothing."""
        return not self.spec.request

    def measure(self, columns: Mapping[str, int]) -> None:
        """Bring the request into columns."""
        known = [(PODS_COLUMN, 1)]
        missing = []
        for name, amount in self.spec.request:
            column = columns.get(name)
            if column is None:
                missing.append(name)
            else:
                known.append((column, amount if amount <= LARGEST else UNFITTING))
        self.columns = tuple(known)
        self.missing = tuple(missing)
        self.cache = None


class ClassTable:
    """Every class that has a pod."""

    def __init__(self) -> None:
        self._classes: dict[object, PodClass] = {}
        self._fields: tuple[str, ...] = ()
        self._labels: tuple[str, ...] = ()
        self._project = attrgetter(*ALWAYS_READ)
        self._cached: dict[PodClass, None] = {}
        self.read((), ())

    def __iter__(self) -> Iterator[PodClass]:
        return iter(self._classes.values())

    def __len__(self) -> int:
        return len(self._classes)

    def read(self, fields: Iterable[str], labels: Iterable[str]) -> bool:
        """Say which fields of ``PodSpec`` and which labels plugins read.

        Returns:
            Whether that changed; then every pod must be classed again.
        """
        wanted = tuple(sorted({*ALWAYS_READ, *fields}))
        keys = tuple(sorted(set(labels)))
        if (wanted, keys) == (self._fields, self._labels):
            return False
        self._fields, self._labels = wanted, keys
        self._project = attrgetter(*wanted)
        self._classes = {}
        self._cached = {}
        return True

    def join(self, pod: Pod) -> tuple[PodClass, bool]:
        """Count a pod to its class.

        Returns:
            The class, and whether it is new.
        """
        key: object = self._project(pod.spec)
        if self._labels:
            key = (key, self._labels_of(pod))
        found = self._classes.get(key)
        if found is None:
            values = {name: getattr(pod.spec, name) for name in self._fields}
            found = PodClass(key, PodSpec(**values), self._labels_of(pod))
            self._classes[key] = found
            found.pods = 1
            return found, True
        found.pods += 1
        return found, False

    def leave(self, klass: PodClass) -> None:
        """Count a pod out of its class."""
        klass.pods -= 1
        if klass.pods == 0:
            del self._classes[klass.key]
            self._cached.pop(klass, None)

    def keep(self, klass: PodClass, cache: object) -> None:
        """Keep what was worked out of a class, at the cost of the class longest kept."""
        self._cached.pop(klass, None)
        if len(self._cached) >= _CACHED:
            oldest = next(iter(self._cached))
            oldest.cache = None
            del self._cached[oldest]
        klass.cache = cache
        self._cached[klass] = None

    def _labels_of(self, pod: Pod) -> Labels:
        return tuple((key, pod.labels[key]) for key in self._labels if key in pod.labels)
