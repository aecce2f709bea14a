"""The steps of a job's way, as the demo shows them."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

from hekla.api.job import Job
from hekla.api.pod_group import PodGroup
from hekla.client import Change, Client
from hekla.domain.errors import DomainError
from hekla.domain.phases import JobPhase, PodGroupPhase

News = Job | PodGroup | DomainError

STEPS: Final = {
    "admitted": "the webhook has filled in defaults, the controller has stored it",
    "queued": "its pod group waits in the queue",
    "Inqueue": "the scheduler lets the group in: its pods may be made",
    "scheduled": "its pods have nodes",
    "Running": "as many of its pods run as are to run together",
    "Completed": "it is done",
}
ORDER: Final = tuple(STEPS)


class Steps:
    """Turns changes of a job and its group into steps.

    Job and group come by two watches, so one may be ahead of the other: a step is shown once
    all before it are known.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._begun = time.monotonic()
        self._known: dict[str, str] = {}
        self._shown = 0
        self.last_at = self._begun
        """When a step was last shown."""

    @property
    def over(self) -> bool:
        """Whether the last step was shown."""
        return self._shown == len(ORDER)

    @property
    def last(self) -> str:
        """The last step that was shown."""
        return ORDER[self._shown - 1] if self._shown else "nothing"

    def take(self, found: Job | PodGroup) -> None:
        """Show what is new in ``found``."""
        if isinstance(found, Job):
            self._job(found)
        elif found.metadata.name.startswith(f"{self._name}-"):
            self._group(found)
        while not self.over and ORDER[self._shown] in self._known:
            self._show(ORDER[self._shown])

    def _show(self, step: str) -> None:
        self._shown += 1
        self.last_at = time.monotonic()
        more = f" ({self._known[step]})" if self._known[step] else ""
        after = self.last_at - self._begun
        click.echo(f"  {after:5.1f} s  {self._name:6} {step:10} {STEPS[step]}{more}")

    def _job(self, job: Job) -> None:
        self._knows("admitted", f"a gang of {job.spec.min_available}")
        past = [condition.status for condition in job.status.conditions or ()]
        for phase in (JobPhase.RUNNING, JobPhase.COMPLETED):
            if phase in past:
                self._knows(phase, "")

    def _group(self, group: PodGroup) -> None:
        self._knows("queued", f"queue {group.spec.queue}")
        phases = (PodGroupPhase.INQUEUE, PodGroupPhase.RUNNING, PodGroupPhase.COMPLETED)
        if group.status.phase in phases:
            self._knows("Inqueue", "")
        if group.status.phase in phases[1:]:
            self._knows("scheduled", "")

    def _knows(self, step: str, detail: str) -> None:
        self._known.setdefault(step, detail)


@contextmanager
def changes_of(client: Client, name: str) -> Iterator[queue.Queue[News]]:
    """What becomes of a job and of pod groups, from two watches."""
    found: queue.Queue[News] = queue.Queue()

    def pump(watch: Iterator[Change[Job]] | Iterator[Change[PodGroup]]) -> None:
        try:
            for change in watch:
                if change.object is not None:
                    found.put(change.object)
        except DomainError as error:
            found.put(error)

    for watch in (
        client.jobs.watch("default", name),
        client.pod_groups.watch("default"),
    ):
        threading.Thread(target=pump, args=(watch,), daemon=True).start()
    yield found
