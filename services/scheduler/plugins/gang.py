"""All or nothing: a job's minimum of pods starts together, or none of it does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain

from services.scheduler.arguments import Arguments
from services.scheduler.core.groups import GroupState, PodState, Refusal


class Gang:
    """Keeps jobs that cannot start together from starting at all."""

    name = "gang"

    def __init__(self, arguments: Arguments) -> None:
        del arguments  # it has none

    def job_valid(self, group: GroupState) -> Refusal | None:
        """Enough pods, of each task too, must be there or may yet start."""
        for task, least in _task_minimum(group):
            if group.task_valid(task) < least:
                text = "Not enough valid pods of each task for gang-scheduling"
                return Refusal("NotEnoughPodsOfTask", text)
        valid, least = group.valid_members, group.group.min_member
        if valid < least:
            text = f"Not enough valid tasks for gang-scheduling, valid: {valid}, min: {least}"
            return Refusal("NotEnoughTasks", text)
        return None

    def job_ready(self, group: GroupState) -> bool:
        """The minimum is bound, running, or has succeeded, that of each task too."""
        if group.ready_members < group.group.min_member:
            return False
        return all(group.task_ready(task) >= least for task, least in _task_minimum(group))

    def job_minimum(
        self, group: GroupState, in_order: Callable[[Iterable[PodState]], list[PodState]]
    ) -> list[PodState]:
        """What tasks lack of their own minimum, then whoever comes first."""
        lacking = group.group.min_member - group.ready_members
        by_task = {
            task: least - group.task_ready(task)
            for task, least in _task_minimum(group)
            if least > group.task_ready(task)
        }
        if any(short > group.task_pending(task) for task, short in by_task.items()):
            return []
        pending = list(chain.from_iterable(it.values() for it in group.pending.values()))
        if lacking >= len(pending):
            return pending if lacking == len(pending) else []
        chosen: list[PodState] = []
        others: list[PodState] = []
        for state in in_order(pending):
            task = state.pod.task
            if by_task.get(task, 0) > 0:
                by_task[task] -= 1
                chosen.append(state)
            else:
                others.append(state)
        return chosen + others[: max(0, lacking - len(chosen))]

    def job_order(self, group: GroupState) -> int:
        """Jobs whose gang is not in place go before those whose is."""
        return int(self.job_ready(group))


def _task_minimum(group: GroupState) -> tuple[tuple[str, int], ...]:
    """Each task's own minimum; none counts where the job's is less than their sum."""
    tasks = group.group.min_task_member
    if tasks and group.group.min_member < sum(least for _, least in tasks):
        return ()
    return tasks
