"""JobTemplate: the spec of jobs that flows make."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hekla.api.fields import Bound, Model, empty_for_null, unless_empty
from hekla.api.job import JobSpec
from hekla.api.meta import ObjectMeta
from hekla.domain.names import FLOW_API_VERSION


class JobTemplateStatus(Model):
    """What was made from the template."""

    job_depends_on_list: list[str] | None = None


class JobTemplate(Model):
    """The spec of a job, under a name."""

    api_version: Annotated[str, Bound(one_of=(FLOW_API_VERSION,))] = FLOW_API_VERSION
    kind: Annotated[str, Bound(one_of=("JobTemplate",))] = "JobTemplate"
    metadata: Annotated[ObjectMeta, empty_for_null] = Field(default_factory=ObjectMeta)
    spec: Annotated[JobSpec, empty_for_null] = Field(default_factory=JobSpec)
    status: Annotated[JobTemplateStatus, empty_for_null] = unless_empty(JobTemplateStatus)
