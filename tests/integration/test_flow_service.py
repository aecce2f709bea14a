"""The flow service as a process: its start, its probes, its answers, its stop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hekla.domain.errors import NotServedError
from hekla.rpc.channel import connect
from hekla.rpc.errors import translated
from hekla.v1 import job_flow_service_pb2 as messages, job_flow_service_pb2_grpc as stubs
from tests.integration.test_rpc_probes import ask
from tests.support.postgres import Server
from tests.support.waiting import wait_until

COMMAND = (sys.executable, "-m", "services.flow", "--listen=127.0.0.1:0")


class Process:
    """The service, and the lines it has logged."""

    def __init__(self, log: Path, running: subprocess.Popen[bytes]) -> None:
        self._log = log
        self.running = running
        wait_until(lambda: self.line("serving"), what="the service to serve")

    def lines(self) -> list[dict[str, Any]]:
        whole = self._log.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def line(self, message: str) -> dict[str, Any] | None:
        return next((line for line in self.lines() if line["message"] == message), None)

    def address(self, which: str = "listen") -> str:
        serving = self.line("serving")
        assert serving is not None
        return str(serving[which])

    def probe(self, path: str) -> int:
        return ask(self.address("http_listen"), path)[0]


@contextmanager
def flow(folder: Path, **environment: str) -> Iterator[Process]:
    log = folder / "log"
    with log.open("wb") as stderr:
        running = subprocess.Popen(
            [*COMMAND, "--http-listen=127.0.0.1:0"],
            stderr=stderr,
            env={"PATH": os.environ["PATH"], **environment},
        )
    try:
        yield Process(log, running)
    finally:
        running.kill()
        running.wait()


def fails(**environment: str) -> str:
    """What the service says on stderr when it does not start."""
    ended = subprocess.run(
        COMMAND,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={"PATH": os.environ["PATH"], **environment},
    )
    assert ended.returncode == 1
    return ended.stderr.splitlines()[-1]


def test_it_serves_says_what_is_not_served_and_stops(postgres_url: str, tmp_path: Path) -> None:
    with flow(tmp_path, HEKLA_DATABASE_URL=postgres_url) as service:
        assert service.probe("/healthz") == 200
        http = service.address("http_listen")
        # Nobody is there to tell of jobs.
        wait_until(
            lambda: set(json.loads(ask(http, "/readyz")[1]).get("reasons", ())) == {"jobs"},
            what="it to be ready but for the controller",
        )
        with connect(service.address()) as channel:
            flows = stubs.JobFlowServiceStub(channel)
            refused = pytest.raises(NotServedError, match="CommandJobFlow is not yet served")
            with refused, translated():
                flows.CommandJobFlow(messages.CommandJobFlowRequest(), timeout=10)

        service.running.send_signal(signal.SIGTERM)

        assert service.running.wait(10) == 0
        assert [line["message"] for line in service.lines()] == [
            "starting",
            "there are no custom resources",  # nothing says where a Kubernetes is
            "serving",
            "stopping",
            "stopped",
        ]


def test_it_is_alive_but_not_ready_without_the_schema(postgres: Server, tmp_path: Path) -> None:
    with flow(tmp_path, HEKLA_DATABASE_URL=postgres.make_database("bare")) as service:
        assert service.probe("/healthz") == 200
        assert service.probe("/readyz") == 503


def test_its_log_holds_its_settings_and_no_password(tmp_path: Path) -> None:
    url = "postgresql://me:hunter2@127.0.0.1:1/hekla"

    with flow(tmp_path, HEKLA_DATABASE_URL=url) as service:
        starting = service.line("starting")
        assert starting is not None
        assert starting["settings"]["database_url"] == "postgresql://me:***@127.0.0.1:1/hekla"
        assert service.probe("/healthz") == 200
        assert service.probe("/readyz") == 503


def test_every_wrong_setting_is_named_in_one_line() -> None:
    line = fails(HEKLA_FLOW_RPC_THREADS="many", HEKLA_FLOW_DRAIN_TIMEOUT="soon")

    assert line == (
        "hekla flow: HEKLA_DATABASE_URL (or --database-url) is not set;"
        " HEKLA_FLOW_RPC_THREADS='many' is not an integer;"
        " HEKLA_FLOW_DRAIN_TIMEOUT='soon' is not a duration such as 3s, 500ms or 1h2m"
    )


@pytest.mark.parametrize("url", ["hekla", "mysql://h/db", "postgresql://h:port/db"])
def test_a_database_that_is_no_postgres_is_refused(url: str) -> None:
    line = fails(HEKLA_DATABASE_URL=url)

    assert line == "hekla flow: HEKLA_DATABASE_URL is not postgresql://user@host:port/database"


def test_an_address_that_others_reach_is_refused_unless_allowed() -> None:
    line = fails(HEKLA_DATABASE_URL="postgresql://x/y", HEKLA_FLOW_HTTP_LISTEN="0.0.0.0:9104")

    assert line.startswith("hekla flow: listening on 0.0.0.0:9104 would let anyone in")
    assert "HEKLA_INSECURE_LISTEN=true" in line


def test_a_misspelt_failpoint_is_refused() -> None:
    line = fails(HEKLA_DATABASE_URL="postgresql://x/y", HEKLA_FAILPOINTS="controler.acted=kill")

    assert "HEKLA_FAILPOINTS: 'controler.acted' is none of" in line
