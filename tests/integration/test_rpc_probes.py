"""The probes beside gRPC, asked over HTTP."""

from __future__ import annotations

import http.client
import json
import socket
from contextlib import ExitStack
from typing import NoReturn

import pytest

from hekla.domain.errors import UnavailableError
from hekla.rpc import probe
from hekla.rpc.http import Check, probes
from hekla.rpc.listen import ListenError, split


def ask(address: str, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection(*split(address), timeout=10)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def ready_with(**checks: Check) -> tuple[int, dict[str, str]]:
    with probes("127.0.0.1:0", ready=checks) as at:
        status, body = ask(at.address, "/readyz")
    return status, json.loads(body)["reasons"]


def test_a_process_is_ready_when_no_check_objects() -> None:
    assert ready_with(schema=lambda: None, feed=lambda: None) == (200, {})


def test_a_process_is_not_ready_for_every_reason_there_is() -> None:
    def away() -> NoReturn:
        raise UnavailableError("Postgres is away")

    status, reasons = ready_with(schema=lambda: None, cache=lambda: "not filled", feed=away)

    assert status == 503
    assert reasons == {"cache": "not filled", "feed": "Postgres is away"}


def test_a_process_is_alive_though_it_is_not_ready() -> None:
    with probes("127.0.0.1:0", ready={"feed": lambda: "lags"}) as at:
        assert ask(at.address, "/healthz") == (200, "ok\n")
        assert ask(at.address, "/healthz", "HEAD") == (200, "")


def test_metrics_are_those_of_the_table() -> None:
    with probes("127.0.0.1:0", ready={}) as at:
        status, body = ask(at.address, "/metrics?name=x")

    assert status == 200
    assert "# TYPE hekla_feed_lag_seconds gauge" in body
    assert "# TYPE volcano_e2e_scheduling_latency_milliseconds histogram" in body


def test_other_paths_and_methods_are_refused() -> None:
    with probes("127.0.0.1:0", ready={}) as at:
        assert ask(at.address, "/etc/passwd")[0] == 404
        assert ask(at.address, "/metrics", "POST")[0] == 501


def test_who_says_nothing_keeps_nobody_waiting() -> None:
    with ExitStack() as stack:
        at = stack.enter_context(probes("127.0.0.1:0", ready={}))
        for _ in range(20):
            stack.enter_context(socket.create_connection(split(at.address)))

        assert ask(at.address, "/healthz")[0] == 200


def test_a_port_in_use_is_one_clear_line() -> None:
    with (
        probes("127.0.0.1:0", ready={}) as first,
        pytest.raises(ListenError) as raised,
        probes(first.address, ready={}),
    ):
        pass

    assert str(raised.value) == f"cannot listen on {first.address}: address already in use"


def test_a_health_check_passes_by_200_and_tells_why_not() -> None:
    with probes("127.0.0.1:0", ready={"feed": lambda: "lags"}) as at:
        assert probe.problem(f"http://{at.address}/healthz") is None
        assert '"feed": "lags"' in (probe.problem(f"http://{at.address}/readyz") or "")
    assert "refused" in (probe.problem(f"http://{at.address}/healthz") or "")
    assert probe.problem("file:///etc/passwd") == (
        "'file:///etc/passwd' is not http://host:port/path"
    )
