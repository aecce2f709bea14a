"""What a pass over a flow knows, and what it decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from hekla.api.job import Job
from hekla.api.job_flow import Flow, JobFlow, JobFlowStatus
from hekla.api.job_template import JobTemplate
from hekla.domain.names import flow_job_name
from hekla.domain.phases import FlowPhase, JobPhase
from services.flow.core.sighting import Sighting


class Wait(NamedTuple):
    """Why something is not done yet."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Step:
    """A step, and what is known of its job."""

    spec: Flow
    planned: bool = False
    """A job was written down that the controller is to be asked for."""
    job_uid: UUID | None = None
    """The job was made."""
    seen: Sighting | None = None
    gone: bool = False
    """The job does not exist any more."""
    refused: Wait | None = None
    """Why the job could not be made when that was last tried."""

    @property
    def name(self) -> str:
        """Its name, which is its template's."""
        return self.spec.name

    @property
    def targets(self) -> Sequence[str]:
        """Names of the steps that must come first."""
        depends = self.spec.depends_on
        return (depends.targets or ()) if depends is not None else ()

    @property
    def phase(self) -> str:
        """The phase its job was last seen in; empty before it was."""
        return (self.seen.status.state or "") if self.seen is not None else ""

    @property
    def completed(self) -> bool:
        """Whether its job ended well, whatever became of the job since."""
        return self.phase == JobPhase.COMPLETED

    @property
    def lost(self) -> bool:
        """Whether its job was deleted before it had ended."""
        ends = (JobPhase.COMPLETED, JobPhase.FAILED, JobPhase.TERMINATED)
        return self.gone and self.phase not in ends


@dataclass(frozen=True, slots=True)
class Observed:
    """A flow, and all that deciding about it takes."""

    flow: JobFlow
    steps: Sequence[Step]
    templates: Mapping[str, JobTemplate]
    """Those that steps name and that exist."""
    deleting: bool = False
    held: bool = False
    """It is to go, and its custom resource is still there: alone that would be taken for a new
    flow."""
    finished_at: datetime | None = None

    @property
    def phase(self) -> FlowPhase:
        """Where the flow stands."""
        return FlowPhase(self.flow.status.state.phase or FlowPhase.PENDING)

    def job_name(self, step: str) -> str:
        """The name of a step's job."""
        return flow_job_name(self.flow.metadata.name, step)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done."""

    status: JobFlowStatus
    finished_at: datetime | None
    create: Mapping[str, Job]
    """Jobs to write down, by step; then they are made."""
    making: bool = False
    """Jobs that are written down are to be made; else it is found out whether they were."""
    remove: Sequence[str] = ()
    """Steps whose jobs are to go."""
    retire: bool = False
    """Nothing is left of the flow but what is remembered."""

    @property
    def phase(self) -> FlowPhase:
        """Where the flow stands now."""
        return FlowPhase(self.status.state.phase or FlowPhase.PENDING)
