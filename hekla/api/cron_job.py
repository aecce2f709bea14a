"""CronJob: makes a job again and again, by the clock."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from hekla.api.fields import (
    Bound,
    Int32,
    Model,
    Timestamp,
    default_for_null,
    empty_for_null,
    unless_empty,
)
from hekla.api.job import JobSpec
from hekla.api.meta import MadeWithMeta, ObjectMeta, ObjectReference
from hekla.domain.names import JOB_API_VERSION

CONCURRENCY_POLICIES: Final = ("Allow", "Forbid", "Replace")


class JobTemplateSpec(Model):
    """The job that is made."""

    metadata: MadeWithMeta = None
    spec: Annotated[JobSpec, empty_for_null] = Field(default_factory=JobSpec)


class CronJobSpec(Model):
    """When, and what."""

    schedule: Annotated[str | None, Bound(required=True)] = None
    time_zone: str | None = None
    starting_deadline_seconds: Annotated[Int32 | None, Bound(minimum=0)] = None
    concurrency_policy: Annotated[
        str, default_for_null("Allow"), Bound(one_of=CONCURRENCY_POLICIES)
    ] = "Allow"
    suspend: Annotated[bool, default_for_null(default=False)] = False
    job_template: Annotated[JobTemplateSpec | None, Bound(required=True)] = None
    successful_jobs_history_limit: Annotated[Int32, default_for_null(3), Bound(minimum=0)] = 3
    failed_jobs_history_limit: Annotated[Int32, default_for_null(1), Bound(minimum=0)] = 1


class CronJobStatus(Model):
    """What was made."""

    active: list[ObjectReference] | None = None
    last_schedule_time: Timestamp | None = None
    last_successful_time: Timestamp | None = None


class CronJob(Model):
    """A schedule of jobs."""

    api_version: Annotated[str, Bound(one_of=(JOB_API_VERSION,))] = JOB_API_VERSION
    kind: Annotated[str, Bound(one_of=("CronJob",))] = "CronJob"
    metadata: Annotated[ObjectMeta, empty_for_null] = Field(default_factory=ObjectMeta)
    spec: Annotated[CronJobSpec, empty_for_null] = Field(default_factory=CronJobSpec)
    status: Annotated[CronJobStatus, empty_for_null] = unless_empty(CronJobStatus)
