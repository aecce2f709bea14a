"""Objects of the API, made by naming only what matters, or any at all."""

from __future__ import annotations

import types
import typing
from typing import Any, Union

from hypothesis import strategies as st

from hekla.api.decode import KINDS
from hekla.api.fields import Model
from hekla.api.job import Job, JobSpec, LifecyclePolicy, TaskSpec
from hekla.api.job_flow import Flow, FlowDependsOn, JobFlow, JobFlowSpec
from hekla.api.job_template import JobTemplate
from hekla.api.meta import ObjectMeta
from hekla.api.queue import Queue, QueueSpec, QueueStatus
from hekla.domain.names import JOB_API_VERSION


def pod_template(**spec: Any) -> dict[str, Any]:
    """A template of one container that runs to its end."""
    containers = [{"name": "c", "image": "busybox"}]
    return {"spec": {"restartPolicy": "Never", "containers": containers} | spec}


def make_task(name: str = "t", replicas: int = 1, **more: Any) -> TaskSpec:
    """A task of one pod."""
    more.setdefault("template", pod_template())
    return TaskSpec(name=name, replicas=replicas, **more)


def make_job(name: str = "j", *tasks: TaskSpec, **spec: Any) -> Job:
    """A job of one task of one pod."""
    return Job(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=JobSpec(tasks=list(tasks) or [make_task()], **spec),
    )


def make_template(name: str = "a", *tasks: TaskSpec, **spec: Any) -> JobTemplate:
    """A template of a job of one task of one pod."""
    job = make_job(name, *tasks, **spec)
    return JobTemplate(metadata=job.metadata, spec=job.spec)


def make_flow(name: str = "f", /, retain: str | None = None, **steps: str) -> JobFlow:
    """A flow: each step beside the steps it depends on, such as ``c="a b"``.

    An underscore in a step's name stands for a dash.
    """
    flows = [
        Flow(
            name=step.replace("_", "-"),
            depends_on=FlowDependsOn(targets=targets.split()) if targets else None,
        )
        for step, targets in steps.items()
    ]
    return JobFlow(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=JobFlowSpec(flows=flows, job_retain_policy=retain),
    )


def make_policy(action: str | None = "RestartJob", **trigger: Any) -> LifecyclePolicy:
    """A policy."""
    return LifecyclePolicy(action=action, **trigger)


def make_queue(name: str = "q", state: str | None = "Open", **spec: Any) -> Queue:
    """A queue that is open."""
    status = QueueStatus(state=state)
    return Queue(metadata=ObjectMeta(name=name), spec=QueueSpec(**spec), status=status)


def job_manifest(**spec: Any) -> dict[str, Any]:
    """A job as its author writes it."""
    task = {"name": "t", "replicas": 1, "template": pod_template()}
    return {
        "apiVersion": JOB_API_VERSION,
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"minAvailable": 1, "tasks": [task]} | spec,
    }


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
"""Every text that can be stored."""
INTEGERS = st.integers(-(2**31), 2**31 - 1)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | TEXTS
    | st.floats(allow_nan=False, allow_infinity=False)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
"""Every value that can be stored."""


def models(cls: type[Model]) -> st.SearchStrategy[Any]:
    """Every model of ``cls``, within bounds or not."""
    hints = typing.get_type_hints(cls)
    fixed = {"api_version", "kind"} if cls in set(KINDS.values()) else set()
    return st.builds(
        cls, **{name: _values(hints[name]) for name in cls.model_fields if name not in fixed}
    )


def _values(hint: Any) -> st.SearchStrategy[Any]:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return st.one_of(*(_values(part) for part in inner))
    if origin is list:
        return st.lists(_values(inner[0]), min_size=1, max_size=2)
    if origin is dict and inner[1] is not Any:
        return st.dictionaries(TEXTS, _values(inner[1]), min_size=1, max_size=2)
    if origin is dict:
        return st.dictionaries(TEXTS, JSON, max_size=3)
    if issubclass(hint, Model):
        return models(hint)
    return {str: TEXTS, int: INTEGERS, bool: st.booleans(), type(None): st.none()}[hint]
