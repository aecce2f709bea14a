"""Schedulers as processes, and what they need around them: pod groups by gRPC, a cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import grpc

from hekla.api.pod_group import PodGroupSpec
from hekla.domain import names, resources
from hekla.domain.names import Key
from hekla.lifecycle import repeating
from hekla.rpc.admission import Admission
from hekla.rpc.channel import connect
from hekla.rpc.server import serving
from hekla.store import pod_groups, queues
from hekla.store.database import Database
from hekla.store.hub import Hub
from hekla.store.pod_groups import StoredGroup
from hekla.v1 import (
    pod_group_service_pb2_grpc,
    queue_service_pb2_grpc,
    scheduler_service_pb2 as messages,
    scheduler_service_pb2_grpc,
)
from services.controller.pod_group_calls import PodGroupCalls
from services.controller.queue_calls import QueueCalls
from services.controller.queue_counts import QueueCounts
from services.controller.servicers.pod_groups import PodGroupServicer
from services.controller.servicers.queues import QueueServicer
from tests.integration.test_rpc_probes import ask
from tests.support.local_cluster import LocalCluster, Object
from tests.support.logged import START_TIMEOUT, Logged
from tests.support.waiting import wait_until

PODS = "/api/v1/namespaces/default/pods"


class Controller:
    """The controller's pod groups and queues over a real store; it can be away for a while."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.address = ""
        self._running: ExitStack | None = None

    def start(self) -> Controller:
        """Serve, where it served before."""
        hub = Hub(
            self.database, {pod_groups.KIND: pod_groups.documents, queues.KIND: queues.load}
        )
        admission = Admission("127.0.0.1:1")

        def register(server: grpc.Server) -> None:
            pod_group_service_pb2_grpc.add_PodGroupServiceServicer_to_server(
                PodGroupServicer(PodGroupCalls(self.database, admission), hub), server
            )
            calls = QueueCalls(self.database, admission, QueueCounts(self.database))
            queue_service_pb2_grpc.add_QueueServiceServicer_to_server(
                QueueServicer(calls, hub), server
            )

        with ExitStack() as starting:
            starting.callback(admission.close)
            starting.enter_context(
                repeating("feed", hub.read_once, idle=timedelta(milliseconds=10))
            )
            server = starting.enter_context(
                serving(
                    register,
                    listen=self.address or "127.0.0.1:0",
                    threads=8,
                    services=["hekla.v1.PodGroupService", "hekla.v1.QueueService"],
                )
            )
            starting.callback(hub.stop)
            self.address = server.address
            self._running = starting.pop_all()
        return self

    def stop(self) -> None:
        """Be away."""
        if self._running is not None:
            self._running.close()
            self._running = None


class Scheduler:
    """One scheduler process, with its I/O child, in a process group of its own."""

    def __init__(self, log: Path, running: subprocess.Popen[bytes]) -> None:
        self.log = Logged(log)
        self.running = running

    @property
    def address(self) -> str:
        return self._where("listen")

    def _where(self, which: str) -> str:
        return str(self.log.wait_for("serving")[which])

    @property
    def http(self) -> str:
        return self._where("http_listen")

    def probe(self, path: str) -> int:
        return ask(self.http, path)[0]

    def status(self) -> messages.GetStatusResponse:
        with connect(self.address) as channel:
            stub = scheduler_service_pb2_grpc.SchedulerServiceStub(channel)
            return stub.GetStatus(messages.GetStatusRequest(), timeout=10)

    def sees_nothing(self) -> bool:
        """Whether it knows of neither pods nor groups."""
        status = self.status()
        return status.pods == status.pod_groups == 0

    def leads(self) -> bool:
        """Whether it leads, by its log."""
        return len(self.log.lines("leading")) > len(self.log.lines("leading no more"))

    def wait_ready(self) -> Scheduler:
        wait_until(
            lambda: self.probe("/readyz") == 200, timeout=START_TIMEOUT, what="it to be ready"
        )
        return self

    def wait_to_lead(self) -> Scheduler:
        wait_until(self.leads, timeout=START_TIMEOUT, what="it to lead")
        return self

    def stop_main(self) -> None:
        """SIGSTOP the main process alone."""
        self.running.send_signal(signal.SIGSTOP)

    def stop_all(self) -> None:
        """SIGSTOP the main process and its I/O child at once."""
        os.killpg(self.running.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.killpg(self.running.pid, signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL; the I/O child goes with it."""
        self.running.kill()
        self.running.wait()

    def end(self) -> int:
        """SIGTERM, and its exit code."""
        self.running.send_signal(signal.SIGTERM)
        return self.running.wait(20)


class Stack:
    """Everything around schedulers."""

    def __init__(
        self, folder: Path, url: str, cluster: LocalCluster, controller: Controller
    ) -> None:
        self._folder = folder
        self._url = url
        self._numbers = 0
        self._schedulers: list[Scheduler] = []
        self.cluster = cluster
        self.controller = controller

    def scheduler(self, **environment: str) -> Scheduler:
        """Start one more scheduler."""
        self._numbers += 1
        log = self._folder / f"scheduler-{self._numbers}.log"
        with log.open("wb") as stderr:
            running = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "services.scheduler",
                    "--listen=127.0.0.1:0",
                    "--http-listen=127.0.0.1:0",
                    f"--controller={self.controller.address}",
                ],
                stderr=stderr,
                start_new_session=True,
                env={
                    "PATH": os.environ["PATH"],
                    "HEKLA_DATABASE_URL": self._url,
                    "KUBECONFIG": str(self.cluster.kubeconfig),
                    **environment,
                },
            )
        scheduler = Scheduler(log, running)
        self._schedulers.append(scheduler)
        return scheduler

    def leader(self) -> Scheduler:
        """A scheduler that leads: one that was left running, or a new one."""
        running = [it for it in self._schedulers if it.running.poll() is None]
        for scheduler in running:
            if scheduler.leads():
                return scheduler
        return self.scheduler().wait_to_lead()

    def end_schedulers(self) -> None:
        """Kill every scheduler that still runs."""
        for scheduler in self._schedulers:
            with suppress(ProcessLookupError):
                os.killpg(scheduler.running.pid, signal.SIGKILL)
            scheduler.running.wait()
        self._schedulers.clear()

    def group(self, name: str, minimum: int, *, priority: str | None = None) -> StoredGroup:
        """Store a pod group; ``priority`` names a class."""
        spec = PodGroupSpec(min_member=minimum, priority_class_name=priority)
        with self.controller.database.transaction() as session:
            return pod_groups.make(
                session, Key("default", name), spec, job=None, labels={}, annotations={}
            )

    def find(self, name: str) -> StoredGroup:
        """A group as it is stored."""
        with self.controller.database.transaction() as session:
            return pod_groups.get(session, Key("default", name))

    def phase(self, name: str) -> str:
        """The phase of a group, as it is stored."""
        return self.find(name).phase.value

    def pods(
        self, group: StoredGroup | str, count: int, *, cpu: str = "1", lasts: str = "1h"
    ) -> None:
        """Make pods of a group, or of one that is still to come by that name."""
        for index in range(count):
            self.cluster.make(PODS, pod(group, index, cpu=cpu, lasts=lasts))

    def gang(self, name: str, size: int, *, cpu: str = "1", lasts: str = "1h") -> StoredGroup:
        """A group that needs all its pods, and those."""
        group = self.group(name, size)
        self.pods(group, size, cpu=cpu, lasts=lasts)
        return group

    def delay_watches(self, seconds: float) -> None:
        """Let watches tell of changes so much later than they happen."""
        answer = self.cluster.call("POST", "/hekla/faults", {"watchDelaySeconds": seconds})
        assert answer.code == 200, answer.body

    def delete(self, group: StoredGroup) -> None:
        """Delete a group's pods and the group."""
        self.delete_pods(group.group.metadata.name)
        with self.controller.database.transaction() as session:
            pod_groups.remove(session, group.uid)

    def delete_pods(self, group: str) -> None:
        """Delete a group's pods."""
        for it in self.all_pods(group):
            answer = self.cluster.call("DELETE", f"{PODS}/{it['metadata']['name']}")
            assert answer.code == 200, answer.body

    def all_pods(self, group: str = "") -> Sequence[Object]:
        """Every pod, or a group's."""
        items = self.cluster.get("/api/v1/pods")["items"]
        return [it for it in items if group in ("", _group(it))]

    def bound(self, group: str = "") -> Sequence[Object]:
        """Pods that have a node."""
        return [it for it in self.all_pods(group) if it["spec"].get("nodeName")]

    def wait_bound(self, group: str, count: int, *, timeout: float = 30) -> None:
        wait_until(
            lambda: len(self.bound(group)) >= count,
            timeout=timeout,
            what=f"{count} pods of {group} to be bound",
        )

    def overfull(self) -> dict[str, str]:
        """Nodes that were given more than they have, with what is too much."""
        found = {}
        for node in self.cluster.get("/api/v1/nodes")["items"]:
            name = node["metadata"]["name"]
            has = resources.parse_list(node["status"]["allocatable"])
            used: Counter[str] = Counter()
            for it in self.bound():
                # A kubelet refuses what it has no room for: such a pod counts too.
                rejected = str(it["status"].get("reason", "")).startswith("OutOf")
                over = it["status"].get("phase") in {"Succeeded", "Failed"} and not rejected
                if it["spec"]["nodeName"] == name and not over:
                    used.update(resources.pod_request(it) | {"pods": 1})
            beyond = {key: n for key, n in used.items() if n > has.get(key, 0)}
            if beyond:
                found[name] = str(beyond)
        return found


def _group(item: Object) -> str:
    annotations: dict[str, str] = item["metadata"].get("annotations") or {}
    return annotations.get(names.GROUP_NAME, "")


def pod(group: StoredGroup | str, index: int, *, cpu: str = "1", lasts: str = "1h") -> Object:
    """A pod as the controller makes it, as far as the scheduler looks."""
    if isinstance(group, str):
        name, uid = group, {}
    else:
        name, uid = group.group.metadata.name, {names.GROUP_UID: str(group.uid)}
    return {
        "metadata": {
            "name": f"{name}-{index}",
            "annotations": {
                names.GROUP_NAME: name,
                **uid,
                names.TASK_SPEC: "main",
                names.TASK_INDEX: str(index),
                names.SIMULATE_DURATION: lasts,
            },
        },
        "spec": {
            "schedulerName": names.SCHEDULER_NAME,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
            ],
        },
    }


@contextmanager
def stack(folder: Path, url: str, *flags: str) -> Iterator[Stack]:
    """A store, pod groups by gRPC and a local cluster; schedulers are the test's to start."""
    database = Database(url)
    with database.transaction() as session:
        queues.make_well_known(session)
    cluster = LocalCluster(folder / "cluster", "--runtime=simulate", *flags)
    controller = Controller(database)
    made = Stack(folder, url, cluster, controller)
    with ExitStack() as running:
        running.callback(database.close)
        cluster.start()
        running.callback(cluster.kill)
        running.callback(controller.stop)
        controller.start()
        running.callback(made.end_schedulers)
        yield made
