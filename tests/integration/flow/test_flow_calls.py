"""Calls on flows and templates through a socket, as the SDK makes them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hekla.api.job_flow import Flow, JobFlow
from hekla.api.job_template import JobTemplate
from hekla.api.meta import ObjectMeta
from hekla.client.records import ChangeType
from hekla.domain.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidError,
    NotFoundError,
    NotServedError,
    PreconditionError,
    TimedOutError,
)
from hekla.domain.phases import FlowPhase, JobPhase
from hekla.rpc.channel import connect
from hekla.rpc.errors import translated
from hekla.v1 import (
    cron_job_service_pb2,
    cron_job_service_pb2_grpc,
    job_flow_service_pb2,
    job_flow_service_pb2_grpc,
)
from tests.support.flow_scene import FlowScene
from tests.support.waiting import wait_until

SOON = timedelta(seconds=20)


def labelled(flow: JobFlow, **labels: str) -> JobFlow:
    metadata = flow.metadata.model_copy(update={"labels": labels, "uid": ""})
    return flow.model_copy(update={"metadata": metadata})


def test_a_flow_is_created_once_and_refused_when_it_cannot_run(flows: FlowScene) -> None:
    flows.bare_flow(a="", b="a")

    with pytest.raises(AlreadyExistsError, match="f exists already"):
        flows.bare_flow(a="")
    with pytest.raises(InvalidError) as refused:
        flows.bare_flow("g", a="b", b="a")
    assert [one.path for one in refused.value.violations] == ["spec.flows[0].dependsOn"]
    empty = JobTemplate(metadata=ObjectMeta(name="empty", namespace=flows.namespace))
    with pytest.raises(InvalidError, match=r"^spec\.tasks: is required"):
        flows.client.job_templates.create(empty)


def test_flows_are_listed_by_phase_and_label_and_by_the_page(flows: FlowScene) -> None:
    for number in range(3):
        flows.bare_flow(f"f{number}", a="")
    listed = flows.client.job_flows.list
    flows.client.job_flows.update(labelled(flows.get("f1"), team="ml"))

    names = [one.metadata.name for one in listed(flows.namespace).items]
    assert names == ["f0", "f1", "f2"]
    assert [one.metadata.name for one in listed(flows.namespace, limit=2).items] == names[:2]
    found = listed(flows.namespace, label_selector="team=ml").items
    assert [one.metadata.name for one in found] == ["f1"]
    assert not listed(flows.namespace, phases=[FlowPhase.RUNNING]).items
    assert len(listed(flows.namespace, phases=[FlowPhase.PENDING]).items) == 3


def test_of_a_flow_its_labels_and_its_policy_may_change(flows: FlowScene) -> None:
    made = flows.bare_flow(a="")
    spec = made.spec.model_copy(update={"job_retain_policy": "delete"})

    changed = flows.client.job_flows.update(
        made.model_copy(update={"spec": spec}), expected_generation=1
    ).object

    assert (changed.spec.job_retain_policy, changed.metadata.generation) == ("delete", 2)
    with pytest.raises(ConflictError, match="is at generation 2, not 1"):
        flows.client.job_flows.update(made, expected_generation=1)
    other = made.spec.model_copy(update={"flows": [*(made.spec.flows or ()), Flow(name="b")]})
    with pytest.raises(InvalidError, match=r"^spec\.flows: must not change: delete"):
        flows.client.job_flows.update(made.model_copy(update={"spec": other}))
    with pytest.raises(NotFoundError):
        flows.client.job_flows.update(
            made.model_copy(
                update={"metadata": made.metadata.model_copy(update={"name": "none"})}
            )
        )


def test_a_watcher_sees_a_flow_from_its_beginning_to_its_end(flows: FlowScene) -> None:
    cursor = flows.client.job_flows.cursor(flows.namespace)
    flows.flow(a="")
    flows.until_jobs("f-a")
    flows.complete("f-a")
    flows.until_phase("Succeed")
    flows.client.job_flows.delete(flows.namespace, "f")
    wait_until(flows.is_gone, what="the flow to go")

    seen = []
    for change in flows.client.job_flows.watch(
        flows.namespace, "f", cursor=cursor, timeout=SOON
    ):
        if change.object is not None:
            seen.append((change.type, int(change.object.metadata.resource_version or 0)))
        if change.type is ChangeType.DELETED:
            break

    versions = [version for _, version in seen]
    assert versions == sorted(set(versions))
    assert seen[-1][0] is ChangeType.DELETED


def test_a_flow_is_waited_for(flows: FlowScene) -> None:
    flows.flow(a="")
    flows.until_jobs("f-a")
    with pytest.raises(TimedOutError, match="is Pending"):
        flows.client.job_flows.wait(
            flows.namespace, "f", "Succeed", timeout=timedelta(seconds=0.2)
        )
    flows.move("f-a", JobPhase.FAILED)

    with pytest.raises(PreconditionError, match="is Failed and will not be Succeed"):
        flows.client.job_flows.wait(flows.namespace, "f", "Succeed", timeout=SOON)
    found = flows.client.job_flows.wait(flows.namespace, "f", "Finished", timeout=SOON)

    assert found.status.failed_jobs == ["f-a"]


def test_a_flow_that_is_deleted_takes_no_change(flows: FlowScene) -> None:
    made = flows.flow(a="")
    flows.until_jobs("f-a")
    flows.client.job_flows.delete(flows.namespace, "f", uid=made.metadata.uid)

    with pytest.raises(PreconditionError, match="is being deleted"):
        flows.client.job_flows.update(labelled(made, a="b"))
    with pytest.raises(NotFoundError, match="does not exist any more"):
        flows.client.job_flows.delete(flows.namespace, "f", uid=flows.job("f-a").metadata.uid)


def test_a_template_is_changed_and_deleted(flows: FlowScene) -> None:
    flows.template("a")
    client = flows.client.job_templates
    made = client.get(flows.namespace, "a")
    spec = made.spec.model_copy(update={"max_retry": 9})

    changed = client.update(made.model_copy(update={"spec": spec}), expected_generation=1)

    assert (changed.object.spec.max_retry, changed.object.metadata.generation) == (9, 2)
    with pytest.raises(ConflictError, match="is at generation 2, not 1"):
        client.update(made, expected_generation=1)
    cursor = client.list(flows.namespace).cursor
    client.delete(flows.namespace, "a", uid=made.metadata.uid)
    with pytest.raises(NotFoundError, match="a does not exist"):
        client.get(flows.namespace, "a")
    changes = client.watch(flows.namespace, cursor=cursor, timeout=SOON)
    deleted = next(change for change in changes if change.type is ChangeType.DELETED)
    assert deleted.object is not None
    assert deleted.object.spec.max_retry == 9


def test_what_is_not_served_yet_says_so(flows: FlowScene) -> None:
    address = flows.client._address("flow")
    with connect(address) as channel:
        crons = cron_job_service_pb2_grpc.CronJobServiceStub(channel)
        of_flows = job_flow_service_pb2_grpc.JobFlowServiceStub(channel)
        with (
            pytest.raises(NotServedError, match="ListCronJobs is not yet"),
            translated(),
        ):
            crons.ListCronJobs(cron_job_service_pb2.ListCronJobsRequest(), timeout=10)
        with pytest.raises(NotServedError, match="CommandJobFlow is not yet"), translated():
            of_flows.CommandJobFlow(job_flow_service_pb2.CommandJobFlowRequest(), timeout=10)
