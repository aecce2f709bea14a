"""What ``deploy/`` describes, run: its images' content, its commands, its rights.

The manifests' own commands, variables, ports and probes, on a real Postgres and the local
cluster. Then every way of a job that asks something of Kubernetes: what was asked for is what
the roles grant.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import pytest
from kubernetes import client as official, config as official_config, dynamic
from kubernetes.dynamic.exceptions import ResourceNotFoundError

from hekla.api.decode import encode
from hekla.api.job import Job
from hekla.api.job_flow import JobFlow
from hekla.api.job_template import JobTemplate
from hekla.client import Client
from hekla.domain.errors import DomainError, NotFoundError
from hekla.domain.phases import FlowPhase, JobAction, JobPhase
from tests.support import deploy, image, rights
from tests.support.deploy import SERVICES, Container
from tests.support.deployed import Node, Started, end_all, node
from tests.support.image import Image
from tests.support.local_cluster import LocalCluster
from tests.support.objects import (
    make_flow,
    make_job,
    make_queue,
    make_task,
    make_template,
    pod_template,
)
from tests.support.postgres import Server
from tests.support.waiting import wait_until

BATCH: Final = "/apis/batch.volcano.sh/v1alpha1/namespaces/default"
SCHEDULING: Final = "/apis/scheduling.volcano.sh/v1beta1"
FLOW: Final = "/apis/flow.volcano.sh/v1alpha1/namespaces/default"
BUS: Final = "/apis/bus.volcano.sh/v1alpha1/namespaces/default"
_IN_HEKLA: Final = "/api/v1/namespaces/hekla"
WEBHOOK: Final = "hekla-webhook"
Labelled = TypeVar("Labelled", Job, JobFlow, JobTemplate)
TOPOLOGY: Final = "/apis/topology.volcano.sh/v1alpha1"


@dataclass(frozen=True)
class World:
    """What the services stand on."""

    image: Image
    cluster: LocalCluster
    database_url: str
    folder: Path
    sockets: Sequence[Path]
    """The folder of Postgres' socket, if it has one."""


@pytest.fixture(scope="module")
def world(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("deploy")
    url = postgres.make_database("deploy")  # nobody has migrated it
    cluster = LocalCluster(folder / "cluster", "--nodes=2", "--node-cpu=4", "--crds").start()
    at = postgres.address
    sockets = [at.parent] if isinstance(at, Path) else []
    yield World(image.build(folder / "image"), cluster, url, folder, sockets)
    assert cluster.end() == 0


@dataclass(frozen=True)
class Running:
    """The manifests, running: a scheduler more, to stand by."""

    node: Node
    services: Mapping[str, Started]
    standby: Started
    client: Client
    world: World

    def phase(self, name: str) -> str | None:
        try:
            return self.client.jobs.get("default", name).status.state.phase
        except NotFoundError:
            return None

    def wait_for_phase(self, name: str, phase: JobPhase | None) -> None:
        wait_until(lambda: self.phase(name) == phase, timeout=30, what=f"{name}: {phase}")


@pytest.fixture(scope="module")
def running(world: World) -> Iterator[Running]:
    containers = deploy.from_kubernetes({"url": world.database_url})
    hosts = [f"hekla-{service}" for service in SERVICES]
    with node(
        world.image, world.folder / "node", hosts, world.cluster.kubeconfig, world.sockets
    ) as here:
        here.prepare(containers.values())
        world.cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": "hekla"}})
        _stand_behind_the_service(world.cluster, here.port(8443))
        # Nobody is asked yet whether it is one.
        no_template = {
            "metadata": {"name": "none"},
            "spec": encode(job("none", "true"))["spec"],
        }
        no_template["spec"]["minAvailable"] = 9
        world.cluster.make(f"{FLOW}/jobtemplates", no_template)
        migration = here.start(containers["migrate"])
        assert migration.process.wait(60) == 0, migration.tail()
        services = {name: here.start(containers[name]) for name in SERVICES}
        standby = here.start(containers["scheduler"], replica=2)
        addresses = {
            "controller": f"127.0.0.1:{here.port(50052)}",
            "scheduler": f"127.0.0.1:{here.port(50053)}",
            "flow": f"127.0.0.1:{here.port(50054)}",
        }
        with Client(addresses=addresses) as sdk:
            yield Running(here, services, standby, sdk, world)


def _stand_behind_the_service(cluster: LocalCluster, port: int) -> None:
    """Have the API server find the webhook as it does in a cluster: a Service, and a pod."""
    objects = deploy.documents()
    cluster.call("POST", _IN_HEKLA + "/services", deploy.of_kind("Service", objects)[WEBHOOK])
    template = deploy.of_kind("Deployment", objects)[WEBHOOK]["spec"]["template"]
    [container] = template["spec"]["containers"]
    # Its process is started here, and not by a node.
    pod = {
        "metadata": {"name": WEBHOOK, "labels": template["metadata"]["labels"]},
        "spec": {
            "schedulerName": "nobody",
            "containers": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "ports": [{"name": "https", "containerPort": port}],
                }
            ],
        },
    }
    cluster.make(_IN_HEKLA + "/pods", pod)
    ready = {
        "phase": "Running",
        "podIP": "127.0.0.1",
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    answer = cluster.merge(f"{_IN_HEKLA}/pods/{WEBHOOK}/status", {"status": ready})
    assert answer.code == 200, answer.body


def job(name: str, command: str, *, replicas: int = 1) -> Job:
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sh", "-c", command],
        "resources": {"requests": {"cpu": "500m"}},
    }
    template = pod_template(
        containers=[container], restartPolicy="Never", terminationGracePeriodSeconds=1
    )
    return make_job(name, make_task("main", replicas, template=template))


def test_what_the_local_cluster_serves_takes_the_manifests(world: World) -> None:
    configuration = official_config.new_client_from_config(str(world.cluster.kubeconfig))  # type: ignore[no-untyped-call]
    api = dynamic.DynamicClient(configuration)  # type: ignore[no-untyped-call]
    taken: set[str] = set()
    for one in [*deploy.documents(), deploy.example_secret()]:
        try:
            resource = api.resources.get(api_version=one["apiVersion"], kind=one["kind"])
        except ResourceNotFoundError:
            continue
        made = resource.create(body=one, namespace=one["metadata"].get("namespace"))
        assert made.metadata.uid
        taken.add(one["kind"])

    assert taken >= {"Namespace", "ConfigMap", "Secret", "Service", "ServiceAccount"}
    assert official.VersionApi(configuration).get_code().major == "1"


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_comes_up_by_its_manifest_and_answers_its_probes(
    running: Running, service: str
) -> None:
    started = running.services[service]

    started.wait_for("startup")
    started.wait_for("readiness", within=30)
    started.wait_for("liveness")


def test_the_standby_is_ready_too(running: Running) -> None:
    running.standby.wait_for("startup")
    running.standby.wait_for("readiness", within=30)


def test_a_service_is_the_first_process_of_its_container_and_may_do_nothing_more(
    running: Running,
) -> None:
    if not running.standby.boxed:
        pytest.skip("there is no bubblewrap, or it does not work here")
    for started in running.services.values():
        assert started.status("NSpid")[-1] == "1"
        assert started.status("CapEff") == ["0" * 16]
        assert started.status("NoNewPrivs") == ["1"]


def test_rights_are_what_is_asked_for_on_every_way_of_a_job(running: Running) -> None:
    jobs = running.client.jobs

    _use_the_second_door(running)
    jobs.create(job("works", "echo done"))
    jobs.create(job("stays", "echo here; sleep 1000", replicas=2))
    jobs.create(job("waits", "true", replicas=20))  # has no room, and is told so
    running.wait_for_phase("works", JobPhase.COMPLETED)
    running.wait_for_phase("stays", JobPhase.RUNNING)
    wait_until(lambda: "here" in _log(running, "stays"), what="the log")
    jobs.command("default", "stays", JobAction.RESTART_JOB)
    wait_until(lambda: _runs(running, "stays") == {0, 1}, timeout=30, what="another run")
    running.wait_for_phase("stays", JobPhase.RUNNING)
    jobs.command("default", "stays", JobAction.ABORT_JOB)
    running.wait_for_phase("stays", JobPhase.ABORTED)
    jobs.command("default", "stays", JobAction.RESUME_JOB)
    running.wait_for_phase("stays", JobPhase.RUNNING)
    wait_until(lambda: _told_why(running, "waits"), timeout=30, what="the pods to be told")
    for name in ("stays", "waits"):
        jobs.delete("default", name)
        running.wait_for_phase(name, None)

    _lose_the_leader(running)
    jobs.create(job("later", "true"))
    running.wait_for_phase("later", JobPhase.COMPLETED)

    granted, asked = rights.granted(), rights.asked(running.world.cluster)
    assert asked - granted == set(), "asked for, and not granted"
    assert granted - asked - set(rights.RARE) == set(), "granted, and never asked for"
    assert set(rights.RARE) <= granted, "rare, and not granted any more"


def _use_the_second_door(running: Running) -> None:
    """Have a custom resource of every kind go its way, by both doors."""
    cluster, sdk = running.world.cluster, running.client
    cluster.make(f"{SCHEDULING}/queues", {"metadata": {"name": "team"}, "spec": {"weight": 2}})
    others = {"metadata": {"name": "others"}, "spec": {"minMember": 1}}  # of which queue?
    cluster.make(f"{SCHEDULING}/namespaces/default/podgroups", others)
    node = {"type": "Node", "selector": {"exactMatch": {"name": "node-0"}}}
    cluster.make(
        f"{TOPOLOGY}/hypernodes",
        {"metadata": {"name": "rack"}, "spec": {"tier": 1, "members": [node]}},
    )
    step = encode(job("step", "true"))
    cluster.make(f"{FLOW}/jobtemplates", {"metadata": {"name": "step"}, "spec": step["spec"]})
    flow = {"flows": [{"name": "step"}], "jobRetainPolicy": "delete"}
    cluster.make(f"{FLOW}/jobflows", {"metadata": {"name": "flow"}, "spec": flow})
    cluster.make(f"{BATCH}/jobs", encode(job("kubectl", "sleep 1000")))
    running.wait_for_phase("kubectl", JobPhase.RUNNING)
    # Both sides have it: gRPC changes, and deletes, what is a custom resource.
    stored = sdk.jobs.get("default", "kubectl")
    sdk.jobs.update(_labelled(stored))
    target = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "kubectl",
        "uid": stored.metadata.uid,
    }
    cluster.make(
        f"{BUS}/commands",
        {"metadata": {"name": "stop"}, "action": "AbortJob", "target": target},
    )
    running.wait_for_phase("kubectl", JobPhase.ABORTED)
    sdk.jobs.delete("default", "kubectl")
    _use_the_first_door(running)
    wait_until(
        lambda: _shows(cluster, FlowPhase.SUCCEED), timeout=30, what="the flow to succeed"
    )
    for path in (
        f"{FLOW}/jobflows/flow",
        f"{FLOW}/jobtemplates/step",
        f"{SCHEDULING}/namespaces/default/podgroups/others",
        f"{SCHEDULING}/queues/team",
    ):
        assert cluster.call("DELETE", path).code == 200, path
        wait_until(partial(_is_gone, cluster, path), timeout=30, what=f"{path} to go")
    [told] = [
        one["message"]
        for one in cluster.get("/api/v1/namespaces/default/events")["items"]
        if one["involvedObject"]["kind"] == "JobTemplate"
    ]
    assert "minAvailable" in told
    for path in (f"{BATCH}/jobs", f"{BUS}/commands"):
        assert cluster.get(path)["items"] == []


def _shows(cluster: LocalCluster, phase: str) -> bool:
    status = cluster.get(f"{FLOW}/jobflows/flow").get("status") or {}
    return bool((status.get("state") or {}).get("phase") == phase)


def _is_gone(cluster: LocalCluster, path: str) -> bool:
    return cluster.call("GET", path).code == 404


def _use_the_first_door(running: Running) -> None:
    """Make, change and delete by gRPC what is stored as custom resources."""
    sdk = running.client
    sdk.queues.create(make_queue("grpc"))
    sdk.queues.update(make_queue("grpc", weight=3))
    sdk.queues.delete("grpc")
    template = sdk.job_templates.create(make_template("grpc")).object
    sdk.job_templates.update(_labelled(template))
    flow = sdk.job_flows.create(make_flow("grpc", grpc="")).object
    sdk.job_flows.update(_labelled(flow))
    sdk.job_flows.delete("default", "grpc")
    sdk.job_templates.delete("default", "grpc")


def _labelled(found: Labelled) -> Labelled:
    changed = found.metadata.model_copy(update={"labels": {"team": "a"}})
    return found.model_copy(update={"metadata": changed})


def _log(running: Running, name: str) -> str:
    try:
        pods = running.client.jobs.pods("default", name)
        return b"".join(running.client.jobs.logs("default", pods[0].attempt.pod_name)).decode()
    except (DomainError, IndexError):
        return ""


def _runs(running: Running, name: str) -> set[int]:
    return {one.run for one in running.client.jobs.attempts("default", name)}


def _told_why(running: Running, name: str) -> bool:
    listed = running.world.cluster.get("/api/v1/namespaces/default/pods")["items"]
    conditions = [
        condition
        for pod in listed
        if pod["metadata"]["name"].startswith(f"{name}-")
        for condition in pod["status"].get("conditions", ())
    ]
    return any(one["type"] == "PodScheduled" and one["status"] == "False" for one in conditions)


def _lose_the_leader(running: Running) -> None:
    schedulers = (running.services["scheduler"], running.standby)

    def leading() -> Started | None:
        return next((one for one in schedulers if one.metric("hekla_lease_held") == 1), None)

    leader = wait_until(leading, timeout=30, what="one to lead")
    leader.signal(signal.SIGKILL)
    leader.process.wait()


def test_a_service_that_is_told_to_stop_does_so_in_its_grace_period(running: Running) -> None:
    left = [one for one in running.node.started if one.process.poll() is None]

    codes = end_all(left)

    assert set(codes) == set(SERVICES)
    assert set(codes.values()) == {0}


def test_compose_runs_them_too_and_knows_when_they_are_healthy(
    world: World, running: Running
) -> None:
    variables = {
        "HEKLA_DATABASE_PASSWORD": "x",
        "HEKLA_KUBECONFIG": str(world.cluster.kubeconfig),
    }
    with node(
        world.image, world.folder / "compose", SERVICES, Path("/none/none"), world.sockets
    ) as here:
        containers = {
            name: _with_database(one, world.database_url)
            for name, one in deploy.from_compose(variables).items()
        }
        here.prepare(containers.values())
        migration = here.start(containers["migrate"])
        assert migration.process.wait(60) == 0, migration.tail()
        started = {name: here.start(containers[name]) for name in SERVICES}
        for one in started.values():
            wait_until(partial(here.healthy, one), timeout=60, what=str(one.log))
        with Client(addresses={"controller": f"127.0.0.1:{here.port(50052)}"}) as sdk:
            names = {one.metadata.name for one in sdk.jobs.list("default").items}
        assert "works" in names
        assert set(end_all(started.values()).values()) == {0}


def _with_database(container: Container, url: str) -> Container:
    """The same with another Postgres than compose's own."""
    return replace(container, environ={**container.environ, "HEKLA_DATABASE_URL": url})
