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

import pytest
from sqlalchemy import make_url

from hekla.domain.errors import NotServedError
from hekla.rpc import service
from hekla.rpc.channel import connect
from hekla.rpc.errors import translated
from hekla.v1 import job_flow_service_pb2 as messages, job_flow_service_pb2_grpc as stubs
from services.flow.__main__ import main
from services.flow.config import FlowConfig
from tests.integration.test_rpc_probes import ask
from tests.support.logged import Logged
from tests.support.postgres import Server
from tests.support.refusing import refusal
from tests.support.waiting import wait_until

COMMAND = (sys.executable, "-m", "services.flow", "--listen=127.0.0.1:0")


class Process:
    """The service, and the lines it has logged."""

    def __init__(self, log: Path, running: subprocess.Popen[bytes]) -> None:
        self.log = Logged(log)
        self.running = running
        self._serving = self.log.wait_for("serving")

    def address(self, which: str = "listen") -> str:
        return str(self._serving[which])

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


def refused(**environment: str) -> str:
    """What the service says when it does not start."""
    return refusal(
        lambda: service.run("flow", FlowConfig, main), "--listen=127.0.0.1:0", **environment
    )


def test_it_serves_says_what_is_not_served_and_stops(postgres_url: str, tmp_path: Path) -> None:
    url = make_url(postgres_url).set(password="hunter2")
    database = url.render_as_string(hide_password=False)
    with flow(tmp_path, HEKLA_DATABASE_URL=database) as running:
        assert running.probe("/healthz") == 200
        told = running.log.wait_for("starting")["settings"]["database_url"]
        assert told == url.render_as_string(), "the password is not in the log"
        http = running.address("http_listen")
        # Nobody is there to tell of jobs.
        wait_until(
            lambda: set(json.loads(ask(http, "/readyz")[1]).get("reasons", ())) == {"jobs"},
            what="it to be ready but for the controller",
        )
        with connect(running.address()) as channel:
            flows = stubs.JobFlowServiceStub(channel)
            refused = pytest.raises(NotServedError, match="CommandJobFlow is not yet served")
            with refused, translated():
                flows.CommandJobFlow(messages.CommandJobFlowRequest(), timeout=10)

        running.running.send_signal(signal.SIGTERM)

        assert running.running.wait(30) == 0
        told = [line["message"] for line in running.log.lines()]
        wanted = [
            "starting",
            "there are no custom resources",  # nothing says where a Kubernetes is
            "serving",
            "stopping",
            "stopped",
        ]
        assert [message for message in told if message in wanted] == wanted


def test_it_is_alive_but_not_ready_without_the_schema(postgres: Server, tmp_path: Path) -> None:
    with flow(tmp_path, HEKLA_DATABASE_URL=postgres.make_database("bare")) as running:
        assert running.probe("/healthz") == 200
        assert running.probe("/readyz") == 503


def test_every_wrong_setting_is_named_in_one_line() -> None:
    environ = {"HEKLA_FLOW_RPC_THREADS": "many", "HEKLA_FLOW_DRAIN_TIMEOUT": "soon"}
    ended = subprocess.run(
        COMMAND,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": os.environ["PATH"], **environ},
    )

    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert line == refused(**environ)
    assert line == (
        "hekla flow: HEKLA_DATABASE_URL (or --database-url) is not set;"
        " HEKLA_FLOW_RPC_THREADS='many' is not an integer;"
        " HEKLA_FLOW_DRAIN_TIMEOUT='soon' is not a duration such as 3s, 500ms or 1h2m"
    )


@pytest.mark.parametrize("url", ["hekla", "mysql://h/db", "postgresql://h:port/db"])
def test_a_database_that_is_no_postgres_is_refused(url: str) -> None:
    line = refused(HEKLA_DATABASE_URL=url)

    assert line == "hekla flow: HEKLA_DATABASE_URL is not postgresql://user@host:port/database"


def test_an_address_that_others_reach_is_refused_unless_allowed() -> None:
    line = refused(HEKLA_DATABASE_URL="postgresql://x/y", HEKLA_FLOW_HTTP_LISTEN="0.0.0.0:9104")

    assert line.startswith("hekla flow: listening on 0.0.0.0:9104 would let anyone in")
    assert "HEKLA_INSECURE_LISTEN=true" in line


def test_a_misspelt_failpoint_is_refused() -> None:
    line = refused(
        HEKLA_DATABASE_URL="postgresql://x/y", HEKLA_FAILPOINTS="controler.acted=kill"
    )

    assert "HEKLA_FAILPOINTS: 'controler.acted' is none of" in line
