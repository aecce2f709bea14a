"""Flows and templates where custom resources are installed."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from sqlalchemy import text

from hekla.api.decode import encode
from hekla.domain.errors import AlreadyExistsError, ConflictError, NotFoundError
from hekla.domain.phases import JobPhase
from hekla.kube import definitions
from hekla.kube.client import KubeClient
from hekla.kube.mirror.bodies import owner_reference
from hekla.kube.mirror.custom import ROW_UID
from hekla.store import job_flows
from hekla.store.database import Database
from hekla.telemetry import metrics
from services.flow.mirror import running
from tests.support.controller_scene import scene
from tests.support.flow_scene import FlowScene, flow_scene
from tests.support.local_cluster import LocalCluster, Object
from tests.support.objects import make_flow, make_template
from tests.support.postgres import Server
from tests.support.waiting import wait_until

GROUP = "/apis/flow.volcano.sh/v1alpha1/namespaces"
_numbers = itertools.count()


class Sides(NamedTuple):
    """A flow service that mirrors, and the cluster it mirrors."""

    flows: FlowScene
    cluster: LocalCluster

    def at(self, plural: str, name: str = "") -> str:
        path = f"{GROUP}/{self.flows.namespace}/{plural}"
        return f"{path}/{name}" if name else path

    def apply(self, found: Any) -> Object:
        """Create a custom resource."""
        body = encode(found)
        body.pop("status", None)
        body["metadata"].pop("namespace")
        return self.cluster.make(self.at(f"{body['kind'].lower()}s"), body)

    def custom(self, plural: str, name: str) -> Object | None:
        answer = self.cluster.call("GET", self.at(plural, name))
        return answer.body if answer.code == 200 else None

    def delete(self, plural: str, name: str) -> None:
        assert self.cluster.call("DELETE", self.at(plural, name)).code == 200

    def until_phase(self, phase: str) -> None:
        """Wait until the flow's custom resource shows a phase."""

        def shown() -> str:
            status = (self.custom("jobflows", "f") or {}).get("status") or {}
            return str((status.get("state") or {}).get("phase"))

        wait_until(lambda: shown() == phase, what=f"the flow to show {phase}")

    def until_flow(self) -> None:
        wait_until(lambda: not self.flows.is_gone(), what="the flow to be stored")


@pytest.fixture(scope="module")
def _running(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    cluster = LocalCluster(tmp_path_factory.mktemp("flows"), "--nodes=0").start()
    with KubeClient.start(str(cluster.kubeconfig), isolated=False) as kube:
        definitions.install(kube)
    database = Database(postgres.make_database("mirror_flows", template="template"))
    with (
        scene(database) as served,
        flow_scene(database, served, kubeconfig=cluster.kubeconfig) as flows,
    ):
        yield Sides(flows, cluster)
    database.close()
    assert cluster.end() == 0


@pytest.fixture
def sides(_running: Sides) -> Sides:
    """Both, in a namespace of this test's own."""
    namespace = f"n{next(_numbers)}"
    _running.cluster.make("/api/v1/namespaces", {"metadata": {"name": namespace}})
    flows = dataclasses.replace(_running.flows, namespace=namespace)
    return Sides(flows, _running.cluster)


def test_a_flow_of_custom_resources_runs_and_shows_it(sides: Sides) -> None:
    made = sides.apply(make_flow("f", a="", b="a"))
    sides.apply(make_template("a"))
    sides.apply(make_template("b"))
    flows = sides.flows

    flows.until_jobs("f-a")
    owner = (flows.job("f-a").metadata.owner_references or [])[0]
    assert owner.uid == made["metadata"]["uid"], "whom Kubernetes knows"
    flows.move("f-a", JobPhase.RUNNING)
    sides.until_phase("Running")
    flows.move("f-a", JobPhase.COMPLETED)
    flows.until_jobs("f-a", "f-b")
    wait_until(
        lambda: (
            (sides.custom("jobtemplates", "b") or {}).get("status")
            == {"jobDependsOnList": ["f-b"]}
        ),
        what="the template to name its job",
    )
    flows.move("f-b", JobPhase.COMPLETED)
    sides.until_phase("Succeed")
    sides.delete("jobflows", "f")
    wait_until(flows.is_gone, what="the flow to go")
    assert not flows.jobs(), "its jobs went first"


def test_what_grpc_writes_is_a_custom_resource_when_it_is_answered(sides: Sides) -> None:
    flows, client = sides.flows, sides.flows.client
    flow = flows.flow("f", a="")
    custom, template = sides.custom("jobflows", "f"), sides.custom("jobtemplates", "a")
    assert custom is not None
    assert template is not None
    assert custom["metadata"]["uid"] == flow.metadata.uid

    known = client.job_templates.get(flows.namespace, "a")
    spec = known.spec.model_copy(update={"max_retry": 7})
    changed = client.job_templates.update(known.model_copy(update={"spec": spec})).object
    assert changed.metadata.generation == 2
    assert (sides.custom("jobtemplates", "a") or {})["spec"]["maxRetry"] == 7
    with pytest.raises(ConflictError):
        client.job_templates.update(changed, expected_generation=1)
    meta = flow.metadata.model_copy(update={"labels": {"team": "a"}})
    client.job_flows.update(flow.model_copy(update={"metadata": meta}))
    assert (sides.custom("jobflows", "f") or {})["metadata"]["labels"] == {"team": "a"}
    with pytest.raises(AlreadyExistsError):
        flows.bare_flow("f", a="")

    client.job_templates.delete(flows.namespace, "a")
    assert sides.custom("jobtemplates", "a") is None
    with pytest.raises(NotFoundError):
        client.job_templates.get(flows.namespace, "a")
    client.job_flows.delete(flows.namespace, "f")
    wait_until(flows.is_gone, what="the flow to go")
    assert sides.custom("jobflows", "f") is None


def test_jobs_stay_when_a_flow_is_deleted_without_them(sides: Sides) -> None:
    flows = sides.flows
    sides.apply(make_template("a"))
    sides.apply(make_flow("f", a="", b="a"))
    flows.until_jobs("f-a")

    body = {"propagationPolicy": "Orphan"}
    assert sides.cluster.call("DELETE", sides.at("jobflows", "f"), body).code == 200

    wait_until(flows.is_gone, what="the flow to go")
    wait_until(lambda: sides.custom("jobflows", "f") is None, what="its custom resource")
    flows.move("f-a", JobPhase.COMPLETED)  # and nobody takes it for one that was forgotten
    assert flows.jobs() == ["f-a"]


def test_jobs_stay_too_when_nobody_saw_how_the_flow_went(sides: Sides) -> None:
    flows = sides.flows
    sides.apply(make_template("a"))
    made = sides.apply(make_flow("f", a="", b="a"))
    flows.until_jobs("f-a")
    flow = owner_reference("flow.volcano.sh/v1alpha1", "JobFlow", "f", made["metadata"]["uid"])
    job = flows.job("f-a")
    meta = {
        "name": "f-a",
        "labels": job.metadata.labels,
        "annotations": {ROW_UID: job.metadata.uid},
        "ownerReferences": [flow],
    }
    jobs = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{flows.namespace}/jobs"
    sides.cluster.make(jobs, {"metadata": meta, "spec": encode(job)["spec"]})

    with nobody_mirrors(flows.database):
        body = {"propagationPolicy": "Orphan"}
        assert sides.cluster.call("DELETE", sides.at("jobflows", "f"), body).code == 200
        wait_until(lambda: sides.custom("jobflows", "f") is None, what="its custom resource")

    wait_until(flows.is_gone, what="the flow to go")
    assert flows.jobs() == ["f-a"]


@contextmanager
def nobody_mirrors(database: Database) -> Iterator[None]:
    """Have the lease taken by somebody who does nothing, until the block ends."""
    taken = text(
        "update lease set holder = 'nobody', epoch = epoch + 1,"
        " until = clock_timestamp() + interval '1 h' where name = :name"
    )
    given_back = text("update lease set until = clock_timestamp() where name = :name")
    with database.transaction() as session:
        session.execute(taken, {"name": running.LEASE})
    wait_until(lambda: metrics.lease_held.labels(running.LEASE)._value.get() == 0, what="it")
    try:
        yield
    finally:
        with database.transaction() as session:
            session.execute(given_back, {"name": running.LEASE})


def test_a_flow_that_goes_after_its_jobs_shows_that_it_goes(sides: Sides) -> None:
    flows = sides.flows
    sides.apply(make_template("a"))
    made = sides.apply(make_flow("f", a=""))
    sides.cluster.merge(sides.at("jobflows", "f"), {"metadata": {"finalizers": ["a.b/c"]}})
    flows.until_jobs("f-a")

    sides.delete("jobflows", "f")

    sides.until_phase("Terminating")
    wait_until(lambda: not flows.sweep(), what="its job to go")
    assert flows.get().metadata.uid == made["metadata"]["uid"], "or it would be taken again"
    sides.cluster.merge(sides.at("jobflows", "f"), {"metadata": {"finalizers": None}})
    wait_until(flows.is_gone, what="the flow to go")


def test_a_name_that_is_used_again_waits_for_the_jobs_of_the_flow_before(
    sides: Sides,
) -> None:
    flows = sides.flows
    sides.apply(make_template("a"))
    old = sides.apply(make_flow("f", a=""))
    flows.until_jobs("f-a")

    sides.delete("jobflows", "f")
    new = sides.apply(make_flow("f", a=""))

    def stored() -> bool:
        flows.sweep()
        try:
            return bool(flows.get().metadata.uid == new["metadata"]["uid"])
        except NotFoundError:
            return False

    wait_until(stored, what="the new flow to be stored")
    flows.until_jobs("f-a")
    owner = (flows.job("f-a").metadata.owner_references or [])[0]
    assert owner.uid == new["metadata"]["uid"] != old["metadata"]["uid"]


def test_what_had_ended_before_anybody_here_knew_it_is_not_run_again(sides: Sides) -> None:
    flows, client = sides.flows, sides.flows.client
    for name in "ab":
        sides.apply(make_template(name))

    def ended(flow: str, phase: str, **jobs: str) -> None:
        """As another system, or a store that was lost, left it."""
        body = {
            "state": {"phase": phase},
            "conditions": {f"{flow}-{step}": {"phase": it} for step, it in jobs.items()},
            "jobStatusList": [
                {"name": f"{flow}-{step}", "state": it} for step, it in jobs.items()
            ],
        }
        sides.cluster.merge(f"{sides.at('jobflows', flow)}/status", {"status": body})

    blocked = make_flow("blocked", a="", b="nowhere")  # it is not taken as long as it is so
    for name in ("done", "half"):
        meta = blocked.metadata.model_copy(update={"name": name})
        sides.apply(blocked.model_copy(update={"metadata": meta}))
    ended("done", "Succeed", a="Completed", b="Completed")
    ended("half", "Running", a="Completed")
    spec = encode(make_flow("f", a="", b="a"))["spec"]
    for name in ("done", "half"):
        sides.cluster.merge(sides.at("jobflows", name), {"spec": spec})

    flows.until_jobs("half-b")
    found = client.job_flows.get(flows.namespace, "done")
    assert found.status.state.phase == "Succeed"
    done = flows.until(lambda flow: flow.status.completed_jobs, "done")
    assert done.status.completed_jobs == ["done-a", "done-b"]
    flows.move("half-b", JobPhase.COMPLETED)
    flows.until_phase("Succeed", "half")
    assert flows.jobs() == ["half-b"]


def test_a_flow_that_was_stored_before_gets_a_custom_resource(sides: Sides) -> None:
    flows = sides.flows
    made = make_flow("f", a="")
    meta = made.metadata.model_copy(update={"namespace": flows.namespace})
    with flows.database.transaction() as session:
        job_flows.make(session, made.model_copy(update={"metadata": meta}), uid=uuid4())

    wait_until(lambda: sides.custom("jobflows", "f"), what="its custom resource")
    sides.until_phase("Pending")
    sides.delete("jobflows", "f")
    wait_until(flows.is_gone, what="the flow to go")


def test_a_flow_that_cannot_be_is_told_so_and_taken_when_it_is_mended(sides: Sides) -> None:
    flow = make_flow("f", a="", b="nowhere")
    sides.apply(flow)  # no webhook is asked here

    def told() -> list[str]:
        listed = sides.cluster.get(f"/api/v1/namespaces/{sides.flows.namespace}/events")
        return [each["message"] for each in listed["items"]]

    wait_until(lambda: any("nowhere" in message for message in told()), what="an event")
    assert sides.flows.is_gone(), "it is not stored"
    mended = encode(make_flow("f", a="", b="a"))["spec"]
    sides.cluster.merge(sides.at("jobflows", "f"), {"spec": mended})
    sides.until_flow()
