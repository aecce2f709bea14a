"""``hekla up`` and what belongs to it, with everything real: promises of the local stack."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from hekla.local.supervisor import processes
from tests.support.waiting import wait_until

HEKLA: Final = str(Path(sys.executable).parent / "hekla")
SERVICES: Final = {"postgres", "cluster", "webhook", "controller", "scheduler", "flow"}

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
        containers:
        - name: main
          image: busybox
          command:
          - sh
          - -c
          - trap '' TERM; setsid sh -c 'trap "" TERM; sleep 1000' & echo up; sleep 1000
          resources: {requests: {cpu: 1}}
"""


class Stack:
    """A home of the tests' own, and the command line for it."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def run(
        self, *args: str, stdin: str | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if name[:6] != "HEKLA_"}
        return subprocess.run(
            [HEKLA, *args],
            env={**kept, "HEKLA_HOME": str(self.home)},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )

    def ok(self, *args: str, stdin: str | None = None) -> str:
        done = self.run(*args, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def fails(self, *args: str) -> str:
        done = self.run(*args)
        assert done.returncode != 0
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1, done.stderr
        assert "Traceback" not in done.stderr
        return lines[0]

    def units(self) -> Mapping[str, Mapping[str, Any]]:
        done = self.run("status", "-o", "json")
        found = json.loads(done.stdout or '{"services": []}')["services"]
        return {unit["name"]: unit for unit in found}

    def processes(self) -> list[int]:
        """Every process with this home in its environment, but for the tests' own."""
        mark = f"HEKLA_HOME={self.home}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    environ = (entry / "environ").read_bytes()
                except OSError:
                    continue
                if mark in environ.split(b"\0"):
                    found.append(int(entry.name))
        return found

    def ready(self) -> bool:
        units = self.units()
        return set(units) >= SERVICES and not any(unit["problem"] for unit in units.values())


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    found = Stack(tmp_path_factory.mktemp("stack") / "home")
    found.ok("up", "--detach", "--nodes", "2")
    yield found
    found.run("down")


def test_everything_is_ready_and_every_file_is_in_the_home(stack: Stack) -> None:
    units = stack.units()

    assert set(units) == SERVICES
    assert {unit["state"] for unit in units.values()} == {"RUNNING"}
    assert not any(unit["problem"] for unit in units.values())
    endpoints = json.loads((stack.home / "endpoints.json").read_text())
    assert {"webhook", "controller", "scheduler", "flow", "kubernetes"} <= set(endpoints)
    assert (stack.home / "kubeconfig").read_text()
    assert stack.home.stat().st_mode & 0o777 == 0o700
    assert stack.ok("queue", "list", "-o", "name").split() == [
        "queue.scheduling.volcano.sh/default",
        "queue.scheduling.volcano.sh/root",
    ]


def test_up_again_is_fine_and_changes_nothing(stack: Stack) -> None:
    before = {name: unit["pid"] for name, unit in stack.units().items()}

    assert stack.ok("up", "--detach") == f"hekla was up in {stack.home}\n"
    stack.ok("up", "--detach", "--nodes", "2")

    assert {name: unit["pid"] for name, unit in stack.units().items()} == before


def test_up_with_other_options_names_the_difference(stack: Stack) -> None:
    assert stack.fails("up", "--detach", "--nodes", "5") == (
        "error: already up with --nodes 2, not 5; 'hekla down' first"
    )
    assert "--runtime process, not simulate" in stack.fails("up", "--runtime", "simulate")
    assert "--replicas of one each, not controller=2" in stack.fails(
        "up", "--replicas", "controller=2"
    )
    assert "port" in stack.fails("up", "--port", "controller=1")


def test_a_stopped_service_stays_so_and_up_starts_it_again(stack: Stack) -> None:
    assert stack.ok("stop", "flow") == "flow stopped\n"

    flow = stack.units()["flow"]
    assert (flow["state"], flow["pid"], flow["problem"]) == (
        "STOPPED",
        None,
        "stopped by request",
    )
    assert stack.run("status").returncode == 1
    stack.ok("up", "--detach")
    assert stack.run("status").returncode == 0


def test_without_its_controller_a_command_names_it(stack: Stack) -> None:
    stack.ok("stop", "controller")
    try:
        line = stack.fails("job", "list")
    finally:
        stack.ok("start", "controller")

    assert line.startswith("error: the controller at 127.0.0.1:")
    assert "cannot be reached" in line
    assert stack.ok("job", "list", "-o", "name") == ""


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_what_is_killed_is_started_again(stack: Stack, name: str) -> None:
    before = stack.units()[name]

    os.kill(before["pid"], signal.SIGKILL)

    wait_until(
        lambda: stack.units()[name]["restarts"] > before["restarts"], what="the restart counted"
    )
    wait_until(stack.ready, timeout=40, what=f"everything ready after {name} was killed")
    assert stack.units()[name]["pid"] != before["pid"]


def test_a_killed_supervisor_leaves_nothing_twice(stack: Stack) -> None:
    before = stack.units()
    [supervisor] = [found.pid for found in processes.units_of(stack.home) if found.unit == ""]
    ports = json.loads((stack.home / "endpoints.json").read_text())["ports"]

    os.kill(supervisor, signal.SIGKILL)
    wait_until(lambda: stack.run("status").returncode == 1, what="the status to know")
    stack.ok("up", "--detach")

    after = stack.units()
    assert {unit["pid"] for unit in after.values()}.isdisjoint(
        unit["pid"] for unit in before.values()
    )
    names = [found.unit for found in processes.units_of(stack.home)]
    mains = {unit["pid"] for unit in after.values()}
    assert mains <= {found.pid for found in processes.units_of(stack.home)}
    assert names.count("") == 1
    assert json.loads((stack.home / "endpoints.json").read_text())["ports"] == ports


def test_down_leaves_no_process_though_pods_are_stubborn(stack: Stack) -> None:
    stack.ok("apply", "-f", "-", stdin=STUBBORN_JOB)
    stack.ok("job", "wait", "stubborn", "--for", "Running", "--timeout", "30s")
    wait_until(lambda: "up" in stack.run("job", "logs", "stubborn").stdout, what="its output")

    assert stack.ok("down") == f"hekla is down in {stack.home}\n"

    assert stack.processes() == []
    assert stack.ok("down") == f"hekla was down in {stack.home}\n"
    assert "not up" in stack.fails("status")


def test_after_a_restart_of_everything_its_ports_and_its_data_are_the_same(
    stack: Stack,
) -> None:
    ports = json.loads((stack.home / "endpoints.json").read_text())["ports"]

    stack.ok("up", "--detach")

    assert json.loads((stack.home / "endpoints.json").read_text())["ports"] == ports
    assert "job.batch.volcano.sh/stubborn" in stack.ok("job", "list", "-o", "name")
    stack.ok("job", "delete", "stubborn", "--timeout", "60s")
    stack.ok("down", "--purge")
    assert not stack.home.exists()


def test_a_port_in_use_is_an_error_and_nothing_is_left(tmp_path: Path) -> None:
    other = Stack(tmp_path / "home")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        line = other.fails("up", "--detach", "--port", f"controller={port}")

    assert line == f"error: port {port} for controller is in use"
    assert other.processes() == []


def test_data_of_another_postgres_is_an_error_and_nothing_is_left(tmp_path: Path) -> None:
    other = Stack(tmp_path / "home")
    data = other.home / "postgres" / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("9\n")

    line = other.fails("up", "--detach")

    assert line.startswith("error: postgres does not start: ")
    assert other.processes() == []
