"""What a flow remembers of a step's job, also when the job is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hekla.api.fields import Model
from hekla.api.job import Job, JobStatus
from hekla.api.job_flow import (
    FlowCondition,
    FlowJobStatus,
    JobFlowStatus,
    JobRunningHistory,
)
from hekla.domain.phases import FINISHED

MOST_HISTORIES: Final = 50
"""The newest are kept."""


class Sighting(Model):
    """A job as it was last seen, in the words of a flow's status."""

    status: FlowJobStatus
    condition: FlowCondition
    deleting: bool = False
    """Its removal was asked for already."""


def sighting(job: Job, before: Sighting | None) -> Sighting:
    """What there is to remember of ``job``. Equal input gives an equal answer."""
    state = job.status.state
    if before is not None and not state.phase:
        return before  # nothing is told of the job but that it is gone
    created = job.metadata.creation_timestamp
    ended = state.last_transition_time if state.phase in FINISHED else None
    known = before.status.running_histories if before is not None else None
    return Sighting(
        status=FlowJobStatus(
            name=job.metadata.name,
            state=state.phase,
            start_timestamp=created,
            end_timestamp=ended,
            restart_count=job.status.retry_count,
            running_histories=_histories(known or (), job.status) or None,
        ),
        condition=FlowCondition(
            phase=state.phase,
            create_time=created,
            running_duration=job.status.running_duration,
            task_status_count=job.status.task_status_count,
        ),
        deleting=job.metadata.deletion_timestamp is not None,
    )


def remembered(flow: JobFlowStatus, job: str) -> Sighting | None:
    """What a flow's status remembers of a step's job that has ended."""
    known = next((one for one in flow.job_status_list or () if one.name == job), None)
    condition = (flow.conditions or {}).get(job) or FlowCondition()
    phase = (known.state if known is not None else None) or condition.phase
    if phase not in FINISHED:
        return None
    status = known or FlowJobStatus(name=job)
    return Sighting(
        status=status.model_copy(update={"state": phase}),
        condition=condition.model_copy(update={"phase": phase}),
    )


def _histories(
    known: Sequence[JobRunningHistory], status: JobStatus
) -> list[JobRunningHistory]:
    """The phases known so far, and those that the job went through since.

    A job tells when it last came into each phase; so none is missed, unless it was left and
    come back to between two looks.
    """
    entries = list(known)
    for phase, since in _phases(status):
        last = entries[-1].start_timestamp if entries else None
        told = any(one.state == phase and one.start_timestamp == since for one in entries)
        if told or (since or "") < (last or ""):
            continue
        if entries:
            entries[-1] = entries[-1].model_copy(update={"end_timestamp": since})
        entries.append(JobRunningHistory(state=phase, start_timestamp=since))
    return entries[-MOST_HISTORIES:]


def _phases(status: JobStatus) -> Iterator[tuple[str, str | None]]:
    """The phases a job tells of, each with its beginning, the oldest first."""
    seen = [(one.status, one.last_transition_time) for one in status.conditions or ()]
    yield from ((phase, since) for phase, since in seen if phase)
    state = status.state
    if state.phase and state.phase not in [phase for phase, _ in seen]:
        yield state.phase, state.last_transition_time
