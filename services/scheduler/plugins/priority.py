"""Higher priority first: jobs by their group's class, pods by their own."""

from __future__ import annotations

from services.scheduler.arguments import Arguments
from services.scheduler.core.classes import PodClass
from services.scheduler.core.groups import GroupState


class Priority:
    """Orders by the value of priority classes."""

    name = "priority"
    reads = ("priority", "priority_class")

    def __init__(self, arguments: Arguments) -> None:
        del arguments  # it has none

    def job_order(self, group: GroupState) -> int:
        """Higher first."""
        return -group.priority

    def task_order(self, klass: PodClass) -> int:
        """Higher first."""
        return -klass.priority
