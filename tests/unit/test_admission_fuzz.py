"""Whatever is sent, admission answers; and what it admits, those behind it can work with."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from google.protobuf.message import Message
from hypothesis import given, settings, strategies as st

from hekla.api import convert, decode
from hekla.api.job import Job
from hekla.api.pod_group import PodGroup
from hekla.domain import names
from hekla.domain.attempt import Attempt
from hekla.domain.errors import InvalidError
from hekla.local.rules import pods as local_pods
from hekla.v1 import (
    admission_service_pb2 as messages,
    cron_job_pb2,
    hyper_node_pb2,
    job_flow_pb2,
    job_pb2,
    job_template_pb2,
    pod_group_pb2,
    queue_pb2,
)
from services.controller.core.group import group_spec
from services.controller.core.plan import plan
from services.controller.core.pod import build_pod
from services.scheduler import convert as scheduler, projection
from services.webhook import convert as webhook
from services.webhook.rules.admission import Operation, admit
from services.webhook.rules.pod import Pod
from services.webhook.rules.world import Limits
from tests.support import admission_table as table
from tests.support.admission_rows import QUEUES, job, pod
from tests.support.factories import make_observed
from tests.support.hostile import mutations
from tests.support.objects import JSON
from tests.support.worlds import FixedWorld

NOW = datetime(2026, 1, 2, tzinfo=UTC)
WORLD = FixedWorld(*(decode.read(raw) for raw in QUEUES))  # type: ignore[arg-type] # queues
BAIT = ("default", "open", "closed", "q1", "has", "master", "svc", "mpi", "a", "b", "t")
TYPES: dict[str, type[Message]] = {
    "Job": job_pb2.Job,
    "Queue": queue_pb2.Queue,
    "JobFlow": job_flow_pb2.JobFlow,
    "JobTemplate": job_template_pb2.JobTemplate,
    "CronJob": cron_job_pb2.CronJob,
    "PodGroup": pod_group_pb2.PodGroup,
    "HyperNode": hyper_node_pb2.HyperNode,
}
FIELDS = {
    "Job": "job",
    "Queue": "queue",
    "JobFlow": "job_flow",
    "JobTemplate": "job_template",
    "CronJob": "cron_job",
    "PodGroup": "pod_group",
    "HyperNode": "hyper_node",
}
BASES = [
    convert.to_message(decode.read(row.object), TYPES[row.object["kind"]])
    for row in table.ROWS
    if row.object["kind"] in TYPES
]


@st.composite
def requests(draw: st.DrawFn) -> messages.AdmissionRequest:
    """A request about a row of the table, some of which is replaced by anything."""
    base = draw(st.sampled_from(BASES))
    field = FIELDS[type(base).__name__]
    objects: dict[str, Any] = {
        field: draw(mutations(base, *BAIT)),
        f"old_{field}": draw(st.just(base) | mutations(base)),
    }
    return messages.AdmissionRequest(operation=draw(st.sampled_from(Operation)), **objects)


@given(requests())
@settings(max_examples=100)
def test_any_message_is_answered(request: messages.AdmissionRequest) -> None:
    answer = webhook.review(request, WORLD, Limits())

    assert answer.allowed is not bool(answer.violations)
    for violation in answer.violations:
        assert f"{violation.path}{violation.message}{violation.value}".isprintable()
        assert violation.message
    if request.operation == Operation.DELETE or not _could_be_there(request):
        return
    if answer.HasField("pod_group"):
        found = convert.to_model(answer.pod_group, PodGroup)
        stored = found.model_copy(
            update={
                "metadata": found.metadata.model_copy(
                    update={"uid": "u", "creation_timestamp": "2026-01-02T03:04:05Z"}
                )
            }
        )
        scheduler.group(convert.to_message(stored, pod_group_pb2.PodGroup))
    if answer.HasField("job"):
        work_with(convert.to_model(answer.job, Job))


def _could_be_there(request: messages.AdmissionRequest) -> bool:
    """Whether what an update replaces would have been admitted."""
    if request.operation == Operation.CREATE:
        return True
    field = str(request.WhichOneof("object"))
    old: Any = {field: getattr(request, f"old_{field}")}
    first = messages.AdmissionRequest(operation=Operation.CREATE, **old)
    return webhook.review(first, WORLD, Limits()).allowed


def work_with(admitted: Job) -> None:
    """What controller, Kubernetes and scheduler do with an admitted job."""
    metadata = admitted.metadata.model_copy(
        update={"name": admitted.metadata.name or "made", "uid": str(UUID(int=1))}
    )
    made = admitted.model_copy(update={"metadata": metadata})
    plan(make_observed(made), NOW)
    group_spec(made, {})
    for task in made.spec.tasks or []:
        name = names.pod_name(metadata.name, task.name, 0)
        attempt = Attempt(
            uid=UUID(int=2),
            task=task.name,
            index=0,
            run=0,
            job_version=0,
            group_uid=None,
            pod_name=name,
            pod_uid=None,
            doomed=None,
            outcome=None,
            terminating=False,
        )
        pod_ = build_pod(made, task, attempt)
        pod_["metadata"]["uid"] = "u"
        local_pods.defaults(pod_)
        # What only the stand-in cannot do, unlike Kubernetes, ends in "here".
        wrong = [str(each) for each in local_pods.check(pod_)]
        assert [each for each in wrong if not each.endswith("here")] == []
        seen = {"creationTimestamp": "2026-01-02T03:04:05Z", "resourceVersion": "1"}
        projection.pod({**pod_, "metadata": {**pod_["metadata"], **seen}})


KEYS = st.sampled_from(
    (
        *("containers", "initContainers", "volumes", "volumeMounts", "env", "envFrom"),
        *("valueFrom", "ports", "resources", "requests", "limits", "affinity", "probe"),
        *("nodeAffinity", "podAffinity", "tolerations", "topologySpreadConstraints"),
        *("livenessProbe", "lifecycle", "exec", "httpGet", "securityContext", "dnsConfig"),
        *("labelSelector", "matchExpressions", "emptyDir", "projected", "sources", "name"),
        *("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", "image"),
    )
)
PARTS = st.recursive(
    JSON, lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=2)
)


@given(st.dictionaries(KEYS, PARTS, max_size=3), st.dictionaries(KEYS, PARTS, max_size=3))
@settings(max_examples=100)
def test_any_template_is_answered(of_pod: dict[str, Any], of_container: dict[str, Any]) -> None:
    container = {"name": "c", "image": "busybox", **of_container}
    given_template = {"spec": {"containers": [container], **of_pod}}
    given_task = {"name": "t", "replicas": 1, "template": given_template}
    try:
        made = decode.read(job(given_task))
    except InvalidError:
        return
    assert isinstance(made, Job)
    answer = admit(Operation.CREATE, made, None, WORLD)

    assert all(str(violation).isprintable() for violation in answer.violations)
    if answer.allowed:
        work_with(answer.object)


@given(JSON, JSON)
@settings(max_examples=50)
def test_any_pod_is_answered(metadata: Any, spec: Any) -> None:
    for raw in ({"metadata": metadata, "spec": spec}, {**pod(), "metadata": metadata}):
        answer = admit(Operation.CREATE, Pod(raw), None, WORLD)
        assert json.dumps(answer.object.raw)
