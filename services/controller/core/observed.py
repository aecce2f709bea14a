"""What a pass knows of a job, and what it decides: the input and the output of ``plan``.

Both are plain data, so that a pass can be written down and made again elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from hekla.api.job import Job
from hekla.api.pod_group import PodGroupCondition, PodGroupSpec
from hekla.domain.attempt import Ended, Kill, Slot, Span
from hekla.domain.phases import JobPhase, PodGroupPhase
from hekla.domain.trigger import Command, Trigger, Waiting, Watched


@dataclass(frozen=True, slots=True)
class Counters:
    """What is counted of a job over all its runs."""

    evictions: int = 0
    """Restarts because pods were evicted."""
    resumes: int = 0
    generation: int = 1
    """The generation of the spec that the last pass saw."""
    groups: int = 0
    """How many pod groups the job has had."""


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """The newest attempts of one task's indices, by where they stand."""

    planned: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    unknown: int = 0
    terminating: int = 0
    """Pods on their way out, of earlier runs too."""

    stale: int = 0
    """Pods that ended and are not wanted, and that nobody else will remove."""

    @property
    def live(self) -> int:
        """Pods that have not ended."""
        return self.planned + self.pending + self.running + self.unknown + self.terminating

    @property
    def placed(self) -> int:
        """Indices that have what they want for now."""
        return (
            self.planned
            + self.pending
            + self.running
            + self.succeeded
            + self.failed
            + self.unknown
        )


@dataclass(frozen=True, slots=True)
class Group:
    """The job's pod group as it is."""

    uid: UUID
    phase: PodGroupPhase
    spec: PodGroupSpec
    conditions: Sequence[PodGroupCondition] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """A job, its pods in numbers, and what waits to be considered."""

    uid: UUID
    job: Job
    created_at: datetime
    counters: Counters = Counters()
    started_at: datetime | None = None
    finished_at: datetime | None = None
    deleting: bool = False
    counts: Mapping[str, TaskCounts] = field(default_factory=dict)
    present: int = 0
    """Pods that are there, or may be."""
    restarts: Mapping[str, int] = field(default_factory=dict)
    """How often containers of a task's live pods were started again."""
    unseen: Mapping[str, int] = field(default_factory=dict)
    """Successes of each task whose pods the job's present group does not count."""
    ended: Sequence[Ended] = ()
    """Outcomes that policies have not seen, oldest first."""
    missing: Sequence[Slot] = ()
    """Indices that want an attempt and can have one, as many as one slice takes."""
    commands: Sequence[Command] = ()
    triggers: Sequence[Watched] = ()
    waiting: Sequence[Waiting] = ()
    group: Group | None = None
    wait: Mapping[str, str] | None = None
    """Why the last act could not be done."""
    retry_at: datetime | None = None
    """When an index whose pod a kubelet refused may have another."""

    @property
    def phase(self) -> JobPhase:
        """Where the job stands."""
        return JobPhase(self.job.status.state.phase or JobPhase.PENDING)

    @property
    def others(self) -> int:
        """Pods that are there, and are neither to run nor running."""
        return self.present - sum(one.live - one.terminating for one in self.counts.values())

    @property
    def version(self) -> int:
        """Raised by every restart and resume of the whole job."""
        return self.job.status.version


class Weight(StrEnum):
    """How an event is shown."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class Note:
    """Something that happened to the job, for people."""

    reason: str
    message: str
    weight: Weight = Weight.NORMAL


class GroupStep(StrEnum):
    """What is done to the job's pod group."""

    KEEP = "keep"
    ENSURE = "ensure"
    """Make it if it is missing, else give it the spec."""
    RENEW = "renew"
    """A new one takes its place, which waits to be admitted again."""
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Reset:
    """Events of a task, and of its pods at ``indices`` (all, if None), may happen again."""

    task: str
    indices: Span | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What is written in one transaction, and then acted on."""

    phase: JobPhase
    version: int
    retry_count: int
    counters: Counters
    reason: str = ""
    message: str = ""
    kills: Sequence[Kill] = ()
    slots: Sequence[Slot] = ()
    group: GroupStep = GroupStep.KEEP
    group_spec: PodGroupSpec | None = None
    handled: Sequence[UUID] = ()
    commands: Sequence[int] = ()
    """Those that are done with."""
    triggers: Sequence[Trigger] = ()
    resets: Sequence[Reset] = ()
    carry: bool = False
    """Tasks' fired triggers hold for the new version too."""
    cancel_timers: bool = False
    notes: Sequence[Note] = ()
    event: str = ""
    """The event by which a policy asked for the action; empty without one."""
    action: str = ""
    due_at: datetime | None = None
    """When time alone asks for another pass."""
    again: bool = False
    """There is more to do at once."""
    expire: bool = False
    """Its time after the end is over: it is to be deleted."""
    retire: bool = False
    """The job is done with: it moves to history."""
