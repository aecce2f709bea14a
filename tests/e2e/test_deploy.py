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
from typing import Final

import pytest
from kubernetes import client as official, config as official_config, dynamic
from kubernetes.dynamic.exceptions import ResourceNotFoundError

from hekla.api.job import Job
from hekla.client import Client
from hekla.domain.errors import DomainError, NotFoundError
from hekla.domain.phases import JobAction, JobPhase
from tests.support import deploy, image
from tests.support.deploy import SERVICES, Container
from tests.support.deployed import Node, Started, end_all, node
from tests.support.image import Image
from tests.support.local_cluster import LocalCluster
from tests.support.objects import make_job, make_task, pod_template
from tests.support.postgres import Server
from tests.support.waiting import wait_until

_UNANSWERED: Final = "a write was not answered: what became of it?"
_NO_STREAMING: Final = "the server does not send what there is as a watch: it is read by pages"
_FRESH: Final = "the certificate is due"
_MENDED: Final = "somebody changed it, or the authority is another"
_ADMISSION: Final = "admissionregistration.k8s.io"
_NO_CRDS: Final = "there are custom resources of the kind"
_TOPOLOGY: Final = "topology.volcano.sh"
RARE: Final[Mapping[tuple[str, str, str], str]] = {
    ("hekla-controller", "get", "pods"): _UNANSWERED,
    ("hekla-controller", "list", "pods"): _NO_STREAMING,
    ("hekla-scheduler", "get", "pods"): _UNANSWERED,
    ("hekla-scheduler", "list", "pods"): _NO_STREAMING,
    ("hekla-scheduler", "list", "nodes"): _NO_STREAMING,
    ("hekla-scheduler", "list", "priorityclasses.scheduling.k8s.io"): _NO_STREAMING,
    ("hekla-scheduler", "list", f"hypernodes.{_TOPOLOGY}"): _NO_CRDS,
    ("hekla-scheduler", "watch", f"hypernodes.{_TOPOLOGY}"): _NO_CRDS,
    ("hekla-scheduler", "patch", f"hypernodes/status.{_TOPOLOGY}"): _NO_CRDS,
    ("hekla-webhook", "get", "namespaces"): "a pod group is made through Kubernetes",
    ("hekla-webhook", "get", "queues.scheduling.volcano.sh"): "a queue is not stored yet",
    ("hekla-webhook", "patch", "secrets"): _FRESH,
    ("hekla-webhook", "patch", f"mutatingwebhookconfigurations.{_ADMISSION}"): _MENDED,
    ("hekla-webhook", "patch", f"validatingwebhookconfigurations.{_ADMISSION}"): _MENDED,
}
"""What is granted and need not happen in a run without mishaps, and when it does."""

_MIRRORS: Final = ("hekla-controller", "hekla-flow")
CUSTOM: Final = frozenset(
    {
        "events",
        "leases.coordination.k8s.io",
        "namespaces",
        *(f"queues{part}.scheduling.volcano.sh" for part in ("", "/status")),
        "commands.bus.volcano.sh",
        "podgroups.scheduling.volcano.sh",
        *(f"jobs{part}.batch.volcano.sh" for part in ("", "/status", "/finalizers")),
        *(
            f"{kind}{part}.flow.volcano.sh"
            for kind in ("jobflows", "jobtemplates")
            for part in ("", "/status", "/finalizers")
        ),
    }
)
"""What the mirrors ask for, where custom resources are installed; here they are not."""

Access = tuple[str, str, str]
"""Agent, verb, resource with its group: ``pods/log``, ``priorityclasses.scheduling.k8s.io``."""


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
    cluster = LocalCluster(folder / "cluster", "--nodes=2", "--node-cpu=4").start()
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

    def accesses(self) -> set[Access]:
        """What was asked of the cluster, by whom."""
        told = self.world.cluster.get("/hekla/accesses")["accesses"]
        return {
            (one["agent"], one["verb"], _resource(one["group"], one["resource"]))
            for one in told
        }


def _resource(group: str, resource: str) -> str:
    return f"{resource}.{group}" if group else resource


@pytest.fixture(scope="module")
def running(world: World) -> Iterator[Running]:
    containers = deploy.from_kubernetes({"url": world.database_url})
    hosts = [f"hekla-{service}" for service in SERVICES]
    with node(
        world.image, world.folder / "node", hosts, world.cluster.kubeconfig, world.sockets
    ) as here:
        here.prepare(containers.values())
        world.cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": "hekla"}})
        migration = here.start(containers["migrate"])
        assert migration.process.wait(60) == 0, migration.tail()
        services = {name: here.start(containers[name]) for name in SERVICES}
        standby = here.start(containers["scheduler"], replica=2)
        addresses = {
            "controller": f"127.0.0.1:{here.port(50052)}",
            "scheduler": f"127.0.0.1:{here.port(50053)}",
        }
        with Client(addresses=addresses) as sdk:
            yield Running(here, services, standby, sdk, world)


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

    granted = _granted()
    mirroring = {one for one in granted if one[0] in _MIRRORS and one[2] in CUSTOM}
    granted -= mirroring
    asked = {one for one in running.accesses() if one[0].startswith("hekla-")} - mirroring
    assert asked - granted == set(), "asked for, and not granted"
    assert granted - asked - set(RARE) == set(), "granted, and never asked for"
    assert set(RARE) <= granted, "rare, and not granted any more"


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
    [leader] = [one for one in schedulers if one.metric("hekla_lease_held") == 1]
    leader.signal(signal.SIGKILL)
    leader.process.wait()


def _granted() -> set[Access]:
    objects = deploy.documents()
    roles = [
        *deploy.of_kind("ClusterRole", objects).items(),
        *deploy.of_kind("Role", objects).items(),
    ]
    return {
        (name, verb, _resource(group, resource))
        for name, role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


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
