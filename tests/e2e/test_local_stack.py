"""``hekla up`` and what belongs to it, with everything real: promises of the local stack."""

from __future__ import annotations

import json
import os
import signal
import socket
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from hekla.local.stack.up import Standing
from hekla.local.supervisor import processes
from tests.support.stack import Stack, running_stack
from tests.support.waiting import wait_until

UNITS: Final = {"postgres", "cluster", "webhook", "controller", "scheduler", "flow"}

# Everything is stubborn here: a container that ignores TERM, and a child of it in a session of
# its own that does so too.
STUBBORN_JOB: Final = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: stubborn}
spec:
  minAvailable: 1
  tasks:
  - name: main
    replicas: 1
    template:
      spec:
        restartPolicy: Never
        terminationGracePeriodSeconds: 1
        containers:
        - name: main
          image: busybox
          command:
          - sh
          - -c
          - trap '' TERM; setsid sh -c 'trap "" TERM; sleep 1000' & echo up; sleep 1000
          resources: {requests: {cpu: 1}}
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    home = tmp_path_factory.mktemp("stack") / "home"
    with running_stack(home, "--nodes", "2", crds=True) as found:
        yield found


def test_everything_is_ready_and_every_file_is_in_the_home(stack: Stack) -> None:
    units = stack.units()

    assert set(units) == UNITS
    assert {unit.state for unit in units.values()} == {"RUNNING"}
    assert stack.ready()
    endpoints = json.loads((stack.home / "endpoints.json").read_text())
    assert {"webhook", "controller", "scheduler", "flow", "kubernetes"} <= set(endpoints)
    assert (stack.home / "kubeconfig").read_text()
    assert stack.home.stat().st_mode & 0o777 == 0o700
    assert stack.ok("queue", "list", "-o", "name").split() == [
        "queue.scheduling.volcano.sh/default",
        "queue.scheduling.volcano.sh/root",
    ]


def test_up_again_changes_nothing_and_with_other_options_names_the_difference(
    stack: Stack,
) -> None:
    before = {name: unit.pid for name, unit in stack.units().items()}

    assert stack.ok("up", "--detach", "--nodes", "2", "--crds").splitlines() == [
        f"hekla was up in {stack.home}",
        f"export KUBECONFIG={stack.home}/kubeconfig",
    ]
    assert stack.fails("up", "--detach", "--nodes", "5") == (
        "error: already up with --nodes 2, not 5; 'hekla down' first"
    )
    assert stack.fails("up", "--detach", "--no-crds") == (
        "error: already up with --crds; 'hekla down' first"
    )
    assert "for controller, not 1" in stack.fails("up", "--port", "controller=1")

    assert {name: unit.pid for name, unit in stack.units().items()} == before


def test_a_stopped_service_stays_so_is_named_by_what_needs_it_and_up_starts_it_again(
    stack: Stack,
) -> None:
    assert stack.ok("stop", "controller") == "controller stopped\n"

    controller = stack.units()["controller"]
    assert (controller.state, controller.pid) == ("STOPPED", None)
    assert controller.problem == "stopped by request"
    assert stack.run("status").returncode == 1
    line = stack.fails("job", "list")
    assert line.startswith("error: the controller at 127.0.0.1:")
    assert "cannot be reached" in line
    stack.ok("up", "--detach")
    assert stack.run("status").returncode == 0


def test_the_local_cluster_is_told_of_the_webhook_until_it_is_unregistered(
    stack: Stack,
) -> None:
    def registered() -> int:
        root = f"{stack.endpoint('kubernetes')}/apis/admissionregistration.k8s.io/v1"
        found = 0
        for kind in ("mutating", "validating"):
            with urllib.request.urlopen(f"{root}/{kind}webhookconfigurations") as answer:
                found += len(json.load(answer)["items"])
        return found

    assert registered() == 2
    assert "'hekla stop webhook' first" in stack.fails("webhook", "unregister")
    stack.ok("stop", "webhook")
    assert stack.ok("webhook", "unregister").count("removed") == 2
    assert registered() == 0
    stack.ok("start", "webhook")
    assert registered() == 2


def restarted(before: Mapping[str, Standing], now: Mapping[str, Standing]) -> bool:
    """Whether each of them was started again; of those that nobody tells of it is not known."""
    return set(now) == UNITS and all(
        unit.restarts > before[name].restarts for name, unit in now.items()
    )


def test_whatever_is_killed_is_started_again(stack: Stack) -> None:
    before = stack.units()
    assert set(before) == UNITS

    for unit in before.values():
        assert unit.pid is not None
        os.kill(unit.pid, signal.SIGKILL)

    wait_until(
        lambda: restarted(before, stack.units()),
        timeout=60,
        what="every restart to be counted",
    )
    wait_until(stack.ready, timeout=60, what="everything ready again")
    pids = {unit.pid for unit in stack.units().values()}
    assert pids.isdisjoint(unit.pid for unit in before.values())


def test_after_the_supervisor_was_killed_up_leaves_nothing_twice(stack: Stack) -> None:
    before, ports = stack.units(), stack.ports()
    [supervisor] = [found.pid for found in processes.units_of(stack.home) if found.unit == ""]

    os.kill(supervisor, signal.SIGKILL)
    wait_until(lambda: not stack.units(), what="the status to know")
    stack.ok("up", "--detach")

    after = stack.units()
    pids = {unit.pid for unit in after.values()}
    assert pids.isdisjoint(unit.pid for unit in before.values())
    found = processes.units_of(stack.home)
    assert pids <= {one.pid for one in found}
    assert [one.unit for one in found].count("") == 1
    assert [one.unit for one in found].count("webhook") == 1
    assert stack.ports() == ports


def test_down_leaves_no_process_though_pods_are_stubborn_and_up_has_all_data(
    stack: Stack,
) -> None:
    ports = stack.ports()
    stack.ok("apply", "-f", "-", stdin=STUBBORN_JOB)
    stack.ok("job", "wait", "stubborn", "--for", "Running", "--timeout", "30s")
    wait_until(lambda: "up" in stack.run("job", "logs", "stubborn").stdout, what="its output")

    assert stack.ok("down") == f"hekla is down in {stack.home}\n"

    assert not stack.processes()
    assert stack.ok("down") == f"hekla was down in {stack.home}\n"
    assert "not up" in stack.fails("status")

    line = stack.fails("up", "--detach", "--no-crds")
    assert "holds custom resources: leave out --no-crds" in line
    stack.ok("up", "--detach")

    assert stack.ports() == ports
    assert stack.ok("job", "list", "-o", "name") == "job.batch.volcano.sh/stubborn\n"
    stack.ok("job", "delete", "stubborn", "--timeout", "60s")
    stack.ok("down", "--purge")
    assert not stack.home.exists()


def test_a_port_in_use_is_an_error_and_nothing_is_left(tmp_path: Path) -> None:
    other = Stack(tmp_path / "home")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        line = other.fails("up", "--detach", "--port", f"controller={port}")

    assert line == f"error: port {port} for controller is in use"
    assert not other.processes()


def test_data_of_another_postgres_is_an_error_and_nothing_is_left(tmp_path: Path) -> None:
    other = Stack(tmp_path / "home")
    data = other.home / "postgres" / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("9\n")

    line = other.fails("up", "--detach")

    assert line.startswith("error: postgres does not start: ")
    assert not other.processes()
