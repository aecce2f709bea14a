"""What commands there are for jobs, and which of them a job can obey."""

from __future__ import annotations

from typing import Final

from hekla.domain.errors import InvalidError, PreconditionError, Violation
from hekla.domain.phases import FINISHED, JobAction, JobPhase
from hekla.domain.trigger import Command
from hekla.store.jobs import StoredJob
from services.controller.core import policies

COMMANDS: Final = tuple(action for action in JobAction if action is not JobAction.SYNC_JOB)
NEED_A_TASK: Final = frozenset(
    {JobAction.RESTART_TASK, JobAction.RESTART_POD, JobAction.RESTART_PARTITION}
)
NEED_AN_INDEX: Final = frozenset({JobAction.RESTART_POD, JobAction.RESTART_PARTITION})


def action_of(text: str) -> JobAction:
    """The action a command names.

    Raises:
        InvalidError: it names none that a command may ask for.
    """
    try:
        action = JobAction(text)
    except ValueError:
        action = JobAction.SYNC_JOB
    if action not in COMMANDS:
        wanted = f"must be one of {', '.join(COMMANDS)}, is {text[:60]!r}"
        raise InvalidError.of([Violation("action", wanted)])
    return action


def require_staying(stored: StoredJob) -> None:
    """Make sure that a job is not on its way out.

    Raises:
        PreconditionError: it is.
    """
    if stored.deleting_at is not None:
        raise PreconditionError(f"job {stored.key} is being deleted")


def check_command(stored: StoredJob, command: Command) -> None:
    """Make sure that a job can do what is asked of it.

    Raises:
        PreconditionError: not any more.
        InvalidError: not as it is asked.
    """
    phase = JobPhase(stored.job.status.state.phase or JobPhase.PENDING)
    require_staying(stored)
    if phase in FINISHED:
        raise PreconditionError(
            f"job {stored.key} is {phase} and stays so; submit it again to run it again"
        )
    if command.action in NEED_A_TASK:
        task = policies.find_task(stored.job.spec, command.task)
        if task is None:
            raise InvalidError.of(
                [Violation("task", f"must be a task of the job, is {command.task!r}")]
            )
        inside = command.index is not None and 0 <= command.index < task.replicas
        if command.action in NEED_AN_INDEX and not inside:
            raise InvalidError.of(
                [
                    Violation(
                        "index",
                        f"must be from 0 to {task.replicas - 1}, is {command.index}",
                    )
                ]
            )
