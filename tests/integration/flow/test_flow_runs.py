"""Flows over a real controller: steps in order, once, whatever breaks. C-numbers: cases."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from sqlalchemy import bindparam, text
from sqlalchemy.dialects.postgresql import JSONB

from hekla import failpoint
from hekla.api.job_flow import Flow, JobFlow, JobFlowSpec, JobSpecPatch, Patch, TaskSpecPatch
from hekla.api.meta import ObjectMeta, OwnerReference
from hekla.domain.errors import NotFoundError
from hekla.domain.names import FLOW_API_VERSION, Key
from hekla.domain.phases import JobPhase
from hekla.store import job_templates, jobs, queues, work
from services.flow.core.jobs import request_id
from tests.support.flow_scene import FlowScene
from tests.support.objects import make_job, make_queue, make_template
from tests.support.waiting import wait_until


def test_steps_run_in_order_and_the_flow_remembers(flows: FlowScene) -> None:
    made = flows.flow(a="", b="a", c="a", d="b c")
    flows.until_jobs("f-a")
    flows.move("f-a", JobPhase.RUNNING)
    assert flows.until_phase("Running").status.running_jobs == ["f-a"]

    flows.complete("f-a")
    flows.until_jobs("f-a", "f-b", "f-c")
    flows.complete("f-b")
    flows.remove("f-a")  # its time to live was over: it is not run again (C101)
    flows.until(lambda flow: len(flow.status.completed_jobs or ()) == 2)
    flows.complete("f-c")
    flows.until_jobs("f-b", "f-c", "f-d")
    flows.complete("f-d")

    found = flows.until_phase("Succeed")
    assert found.status.completed_jobs == ["f-a", "f-b", "f-c", "f-d"]
    assert found.metadata.uid == made.metadata.uid
    first = (found.status.job_status_list or [])[0]
    states = [one.state for one in first.running_histories or ()]
    assert states == ["Pending", "Running", "Completed"]
    assert flows.jobs() == ["f-b", "f-c", "f-d"]

    flows.client.job_flows.delete(flows.namespace, "f")
    wait_until(flows.is_gone, what="the flow to go")
    assert flows.jobs() == []
    past = flows.client.job_flows.get_by_uid(made.metadata.uid)
    assert past.status.completed_jobs == ["f-a", "f-b", "f-c", "f-d"]


def test_two_flows_of_the_same_templates_do_not_mix(flows: FlowScene) -> None:
    """C98; and a third whose job would have a name that is taken."""
    flows.flow("test-a", a="")
    flows.flow("test-b", a="")
    flows.until_jobs("test-a-a", "test-b-a")
    flows.flow("test", a_a="")
    flows.until(lambda flow: flow.status.state.reason == "JobNameTaken", "test")

    flows.complete("test-a-a")

    assert flows.until_phase("Succeed", "test-a").status.completed_jobs == ["test-a-a"]
    assert flows.get("test-b").status.completed_jobs is None

    def made_of_it() -> list[str]:
        status = flows.client.job_templates.get(flows.namespace, "a").status
        return list(status.job_depends_on_list or ())

    wait_until(lambda: made_of_it() == ["test-a-a", "test-b-a"], what="both to be counted")
    flows.client.job_flows.delete(flows.namespace, "test-a")
    wait_until(lambda: flows.is_gone("test-a"), what="test-a to go")
    wait_until(lambda: "test-a-a" in flows.jobs(), what="the name to be taken by the third")
    wait_until(lambda: made_of_it() == ["test-b-a"], what="the template to be told")


def test_a_flow_waits_for_what_is_missing_and_says_so(flows: FlowScene) -> None:
    """C104: the template first, then the queue that it names."""
    queue = f"q-{flows.namespace}"
    flows.bare_flow(a="")
    flows.until(lambda flow: flow.status.state.reason == "JobTemplateNotFound")
    with flows.database.transaction() as session:
        queues.make(session, make_queue(queue), uid=uuid4())
    flows.template("a", queue=queue)
    flows.until_jobs("f-a")
    assert flows.until(lambda flow: flow.status.pending_jobs).status.state.reason is None

    with flows.database.transaction() as session:
        flows_queue = queues.get(session, queue)
    flows.client.queues.close(flows_queue.metadata.name)
    flows.flow("g", a="")
    said = flows.until(lambda flow: flow.status.state.reason == "JobRefused", "g")
    assert f'step a: spec.queue: must be an Open queue, is "{queue}"' in (
        said.status.state.message or ""
    )
    flows.client.queues.open(queue)
    flows.until_jobs("f-a", "g-a")


def test_a_flow_and_its_template_that_are_stored_at_the_same_time_find_each_other(
    flows: FlowScene,
) -> None:
    """As by one file: the flow does not see the template, nor who stores that the flow."""
    made = make_template("a")
    metadata = made.metadata.model_copy(update={"namespace": flows.namespace})
    with flows.database.transaction() as session:
        job_templates.make(session, made.model_copy(update={"metadata": metadata}), uid=uuid4())
        flows.bare_flow(a="")
        flows.until(lambda flow: flow.status.state.reason == "JobTemplateNotFound")

    flows.until_jobs("f-a")


def test_a_patch_makes_the_job_another(flows: FlowScene) -> None:
    flows.template("a")
    changed = JobSpecPatch(max_retry=7, tasks=[TaskSpecPatch(name="t", replicas=3)])
    spec = JobFlowSpec(flows=[Flow(name="a", patch=Patch(job_spec=changed))])
    metadata = ObjectMeta(name="f", namespace=flows.namespace)

    flows.client.job_flows.create(JobFlow(metadata=metadata, spec=spec))

    flows.until_jobs("f-a")
    made = flows.job("f-a").spec
    assert (made.max_retry, made.min_available) == (7, 3)
    assert [task.replicas for task in made.tasks or ()] == [3]


@pytest.mark.parametrize(
    "point", ["flow.recorded=raise@1", "flow.created=raise@1", "flow.acted=raise@1"]
)
def test_a_pass_that_breaks_off_makes_no_job_twice(flows: FlowScene, point: str) -> None:
    with failpoint.armed(point):
        flows.flow(a="", b="a")
        flows.until_jobs("f-a")
        flows.until(lambda flow: flow.status.pending_jobs)
    uid = flows.job("f-a").metadata.uid

    flows.complete("f-a")
    flows.until_jobs("f-a", "f-b")

    assert flows.job("f-a").metadata.uid == uid


def test_a_job_that_was_made_unseen_is_taken_over(flows: FlowScene) -> None:
    """As after the store was restored: no request id is known, but the job has its owner."""
    flows.bare_flow(a="")
    flow = flows.until(lambda flow: flow.status.state.reason == "JobTemplateNotFound")
    job = make_job("f-a")
    owner = OwnerReference(
        api_version=FLOW_API_VERSION, kind="JobFlow", name="f", uid=flow.metadata.uid
    )
    metadata = job.metadata.model_copy(
        update={"namespace": flows.namespace, "owner_references": [owner]}
    )
    made = flows.client.jobs.create(job.model_copy(update={"metadata": metadata})).object

    flows.until(lambda flow: flow.status.pending_jobs == ["f-a"])
    flows.complete("f-a")

    flows.until_phase("Succeed")
    assert flows.job("f-a").metadata.uid == made.metadata.uid


def test_a_job_that_ends_unseen_is_asked_after(flows: FlowScene) -> None:
    flows.flow(a="", b="a")
    flows.until_jobs("f-a")
    flows.until(lambda flow: flow.status.pending_jobs)
    key = Key(flows.namespace, "f-a")
    with flows.database.transaction() as session:
        # Nobody is told of it.
        session.execute(
            text(
                "update job set phase = 'Completed', finished_at = now(),"
                " version = version + 1, status = jsonb_set(status, '{state}', :state)"
                " where namespace = :namespace"
            ).bindparams(bindparam("state", type_=JSONB)),
            {"namespace": flows.namespace, "state": {"phase": "Completed"}},
        )
        uid = jobs.get(session, key).uid
        session.execute(text("delete from work where uid = :uid"), {"uid": str(uid)})

    flows.observer.look_for(set())

    flows.until_jobs("f-a", "f-b")
    flows.until(lambda flow: flow.status.completed_jobs == ["f-a"])


def test_a_job_that_comes_after_its_flow_was_removed_is_deleted(flows: FlowScene) -> None:
    """A request that was on its way for long: nobody else would ever remove it (I10)."""
    flow = flows.bare_flow(a="")
    flows.client.job_flows.delete(flows.namespace, "f")
    wait_until(flows.is_gone, what="the flow to go")
    job = make_job("f-a")
    owner = OwnerReference(
        api_version=FLOW_API_VERSION, kind="JobFlow", name="f", uid=flow.metadata.uid
    )
    metadata = job.metadata.model_copy(
        update={"namespace": flows.namespace, "owner_references": [owner]}
    )
    late = job.model_copy(update={"metadata": metadata})
    asked = request_id(UUID(flow.metadata.uid), "a", 0)

    flows.controller.create(late, request_id=asked, timeout=10)

    wait_until(lambda: not flows.sweep(), what="the job to be deleted")


def test_a_failed_step_ends_the_flow_and_the_others_go_on(flows: FlowScene) -> None:
    """C96."""
    flows.flow(a="", b="a", c="a", d="b c")
    flows.until_jobs("f-a")
    flows.complete("f-a")
    flows.until_jobs("f-a", "f-b", "f-c")
    flows.move("f-c", JobPhase.RUNNING)
    flows.move("f-b", JobPhase.FAILED)
    assert flows.until_phase("Failed").status.state.reason == "StepFailed"

    flows.complete("f-c")

    flows.until(lambda flow: flow.status.completed_jobs == ["f-a", "f-c"])
    assert flows.jobs() == ["f-a", "f-b", "f-c"]


def test_jobs_go_when_the_flow_has_succeeded_if_they_are_to(flows: FlowScene) -> None:
    flows.flow(retain="delete", a="")
    flows.until_jobs("f-a")
    flows.complete("f-a")

    flows.until_phase("Succeed")
    wait_until(lambda: not flows.sweep(), what="the job to go")

    assert flows.get().status.completed_jobs == ["f-a"]


def test_a_wake_of_a_flow_that_is_gone_is_no_harm(flows: FlowScene) -> None:
    with flows.database.transaction() as session:
        for kind in ("job_flow", "job_template"):
            work.wake(session, kind, str(uuid4()))
        before = work.depth(session, ["job_flow", "job_template"])[0]
    assert before >= 2

    def due() -> int:
        with flows.database.transaction() as session:
            return work.depth(session, ["job_flow", "job_template"])[0]

    wait_until(lambda: due() == 0, what="the work to be done")


def test_nothing_is_known_of_a_flow_that_never_was(flows: FlowScene) -> None:
    with pytest.raises(NotFoundError, match="nor is it remembered"):
        flows.client.job_flows.get_by_uid(str(uuid4()))
