"""The controller as a process, over a local cluster: its parts together, start and end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from hekla.api.convert import to_message
from hekla.api.pod_group import PodGroupStatus
from hekla.domain.phases import PodGroupPhase
from hekla.rpc.channel import connect
from hekla.store.database import Database
from hekla.v1 import (
    job_service_pb2 as messages,
    pod_group_pb2,
    pod_group_service_pb2 as group_messages,
)
from hekla.v1.job_service_pb2_grpc import JobServiceStub
from hekla.v1.pod_group_service_pb2_grpc import PodGroupServiceStub
from tests.integration.test_rpc_probes import ask
from tests.support.controller_scene import SOON, lead, message, refused, until, webhook_at
from tests.support.local_cluster import LocalCluster
from tests.support.logged import Logged
from tests.support.objects import make_job, make_task, pod_template
from tests.support.postgres import Server
from tests.support.waiting import wait_until

PODS = "/api/v1/namespaces/default/pods"


class Process:
    """One controller, and what it logs."""

    def __init__(self, log: Path, url: str, **environ: str) -> None:
        self.log = Logged(log)
        kept = {name: value for name, value in os.environ.items() if name[:6] != "HEKLA_"}
        with log.open("wb") as stderr:
            self.running = subprocess.Popen(
                [sys.executable, "-m", "services.controller"],
                stderr=stderr,
                env={
                    **kept,
                    "HEKLA_DATABASE_URL": url,
                    "HEKLA_CONTROLLER_LISTEN": "127.0.0.1:0",
                    "HEKLA_CONTROLLER_HTTP_LISTEN": "127.0.0.1:0",
                    **environ,
                },
            )

    def wait_ready(self) -> str:
        """Wait until it is ready; where it serves."""
        serving = self.log.wait_for("serving")
        probes = serving["http_listen"]
        wait_until(lambda: ask(probes, "/readyz")[0] == 200, timeout=60, what="it to be ready")
        return str(serving["listen"])


@contextmanager
def controller(folder: Path, url: str, **environ: str) -> Iterator[Process]:
    """Start one, and make sure that it ends."""
    process = Process(folder / "controller.log", url, **environ)
    try:
        yield process
    finally:
        process.running.kill()
        process.running.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    running = LocalCluster(tmp_path, "--nodes=1", "--runtime=simulate").start()
    yield running
    running.end()


def of_default_node() -> dict[str, Any]:
    """A template that is on its node from the first: nobody has to place it."""
    return pod_template(nodeName="node-0")


def test_a_job_goes_its_way_and_the_process_ends_in_order(
    tmp_path: Path, cluster: LocalCluster, postgres_url: str
) -> None:
    database = Database(postgres_url)
    with (
        closing(database),
        webhook_at(database) as webhook,
        controller(
            tmp_path,
            postgres_url,
            KUBECONFIG=str(cluster.kubeconfig),
            HEKLA_CONTROLLER_WEBHOOK=webhook,
        ) as process,
        connect(process.wait_ready()) as channel,
    ):
        jobs = JobServiceStub(channel)
        job = message(make_job("j", make_task("t", 2, template=of_default_node())))
        made = jobs.CreateJob(messages.CreateJobRequest(job=job), timeout=SOON).job
        let_in(PodGroupServiceStub(channel), lead(database))
        stream = jobs.WatchJobs(messages.WatchJobsRequest(name="j"), timeout=SOON)
        seen = until(stream, lambda one: one.job.status.state.phase == "Completed")

        assert seen[-1].job.metadata.uid == made.metadata.uid
        assert seen[-1].job.status.succeeded == 2
        request = messages.DeleteJobRequest(name="j")
        jobs.DeleteJob(request, timeout=SOON)
        until(stream, lambda one: one.type == "DELETED")
        assert cluster.get(PODS)["items"] == []

        process.running.send_signal(signal.SIGTERM)
        with refused(grpc.StatusCode.UNAVAILABLE):
            until(stream, lambda _: False)
        assert process.running.wait(30) == 0
        assert process.log.lines("stopped")
        passes = process.log.lines("pass")
        outcomes = {line["outcome"] for line in passes}
        assert {"done", "gone"} <= outcomes
        assert "failed" not in outcomes
        assert {line["job"] for line in passes} == {made.metadata.uid}


def let_in(groups: PodGroupServiceStub, epoch: int) -> None:
    """Admit the only pod group, once there is one."""

    def the_group() -> pod_group_pb2.PodGroup | None:
        request = group_messages.ListPodGroupsRequest()
        found = groups.ListPodGroups(request, timeout=SOON).pod_groups
        return found[0] if found else None

    group = wait_until(the_group, what="the pod group")
    assert group is not None
    status = to_message(
        PodGroupStatus(phase=PodGroupPhase.INQUEUE), pod_group_pb2.PodGroupStatus
    )
    report = group_messages.SchedulingReport(uid=group.metadata.uid, status=status)
    request = group_messages.ReportSchedulingRequest(epoch=epoch, reports=[report])
    groups.ReportScheduling(request, timeout=SOON)


def test_a_schema_that_nobody_made_is_told_in_one_line(
    tmp_path: Path, postgres: Server
) -> None:
    with controller(tmp_path, postgres.url("postgres")) as process:
        assert process.running.wait(60) == 1

    [line] = [one for one in process.log.text().splitlines() if one.startswith("hekla ")]
    assert line.startswith("hekla controller: ")
    assert "hekla migrate" in line
