"""The values of priority classes."""

from __future__ import annotations

from services.scheduler.core.classes import PodClass
from services.scheduler.core.objects import PriorityClass


class Priorities:
    """Every known priority class."""

    def __init__(self) -> None:
        self._classes: dict[str, PriorityClass] = {}

    def upsert(self, priority_class: PriorityClass) -> None:
        """A priority class is there, or changed."""
        self._classes[priority_class.name] = priority_class

    def remove(self, name: str) -> None:
        """A priority class is gone."""
        self._classes.pop(name, None)

    def value(self, name: str) -> int:
        """The value of a class; of the default where there is none of that name."""
        found = self._classes.get(name)
        if found is not None:
            return found.value
        defaults = [it.value for it in self._classes.values() if it.global_default]
        return max(defaults, default=0)

    def of_pods(self, klass: PodClass) -> int:
        """The priority of a class of pods."""
        asked = klass.spec.priority
        return self.value(klass.spec.priority_class) if asked is None else asked
