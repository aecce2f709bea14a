"""The webhook over HTTPS: what it answers, by real sockets and TLS."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

import pytest
from hypothesis import given, settings as hypothesis, strategies as st

from hekla.store import queues
from hekla.store.database import Database
from services.webhook.config import WebhookConfig
from services.webhook.https.app import BODY_LIMIT
from services.webhook.https.inventory import ENDPOINTS
from tests.support.objects import make_queue
from tests.support.reviews import patched, response, review
from tests.support.waiting import wait_until
from tests.support.webhooks import JOB, Caller, Clock, careless, issued, running


@pytest.fixture(scope="module")
def caller(
    url: str, stored: Database, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Caller]:
    """A webhook with given files that registers nowhere: it needs no Kubernetes."""
    kept, files = issued(["127.0.0.1"], tmp_path_factory.mktemp("files"), "given")
    settings = WebhookConfig(
        database_url=url, https_listen="127.0.0.1:0", register=False, **files
    )
    with running(settings, stored, Clock()) as found:
        yield Caller(found.address, kept.bundle)


def test_a_job_is_completed_and_then_admitted(caller: Caller, stored: Database) -> None:
    bare = {**JOB, "spec": {"tasks": JOB["spec"]["tasks"]}}

    whole = patched(caller.ask("/jobs/mutate", "CREATE", bare), bare)

    assert whole["spec"]["minAvailable"] == 1
    assert caller.ask("/jobs/validate", "CREATE", whole)["allowed"]
    with_nowhere_to_go = {**JOB, "spec": {**JOB["spec"], "queue": "nope"}}
    denied = caller.ask("/jobs/validate", "CREATE", with_nowhere_to_go)
    assert "spec.queue" in denied["status"]["message"]
    with stored.transaction() as session:
        queues.make(session, make_queue("nope"), uid=uuid4())
    assert caller.ask("/jobs/validate", "CREATE", with_nowhere_to_go)["allowed"]


@pytest.mark.parametrize(
    ("path", "sent", "status", "says"),
    [
        ("/jobs/validate", {"method": "GET"}, 405, "POST"),
        ("/", {}, 404, "/jobs/validate"),
        ("/jobs/validate/", {}, 404, "/jobs/validate"),
        ("/jobs/validate", {"kind": "application/yaml"}, 415, "application/json"),
        ("/jobs/validate", {"kind": ""}, 415, "application/json"),
        ("/jobs/validate", {"body": b"{"}, 400, "must be JSON"),
        ("/jobs/validate", {"body": {"kind": "Job"}}, 400, "AdmissionReview"),
        ("/jobs/validate", {"body": b" " * 10_000_000}, 413, str(BODY_LIMIT)),
        ("/jobs/validate", {"body": b" " * BODY_LIMIT}, 400, "must be JSON"),
    ],
    ids=["get", "root", "slash", "yaml", "untyped", "broken", "job", "10MB", "largest"],
)
def test_what_is_no_review_is_told_why(
    caller: Caller, path: str, sent: dict[str, Any], status: int, says: str
) -> None:
    found, answer = caller.send(
        path, **{"body": review("/jobs/validate", "CREATE", JOB), **sent}
    )

    assert found == status
    assert says in answer.decode()


JSON: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["", "CREATE", "jobs", "\0", "\ud800", "é" * 300]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["metadata", "spec", "name", "kind", "\0"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
PLACES: Final = [
    (),
    ("request",),
    *(("request", key) for key in review("/jobs/validate", "CREATE", JOB)["request"]),
    ("request", "resource", "group"),
    ("request", "object", "metadata"),
    ("request", "object", "spec"),
    ("request", "object", "spec", "tasks"),
]


def set_at(value: Any, place: tuple[str, ...], new: Any) -> Any:
    if not place:
        return new
    return {**value, place[0]: set_at(value.get(place[0]), place[1:], new)}


def test_any_body_gets_an_answer_that_is_no_fault_of_ours(caller: Caller) -> None:
    connection = caller.open()

    @hypothesis(max_examples=80, deadline=None)
    @given(
        st.sampled_from(sorted(ENDPOINTS)),
        st.sampled_from(["CREATE", "UPDATE", "DELETE"]),
        st.sampled_from(PLACES),
        JSON,
        st.sampled_from([None, 1, 40, 200]),
    )
    def check(
        path: str, operation: str, place: tuple[str, ...], value: Any, cut: int | None
    ) -> None:
        body = set_at(review(path, operation, JOB, JOB), place, value)
        data = json.dumps(body).encode()[:cut]
        connection.request("POST", path, data, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status in {200, 400}
        if answer.status == 200:
            response(text, json.loads(data)["request"]["uid"])

    with closing(connection):
        check()


def test_an_answer_does_not_wait_for_its_head_to_be_acknowledged(caller: Caller) -> None:
    def seconds() -> float:
        began = time.perf_counter()
        caller.ask("/jobs/mutate", "CREATE", JOB)
        return time.perf_counter() - began

    with caller.keeping():
        wait_until(lambda: seconds() < 0.03, what="one that is quick: else all take 40 ms")


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_old_versions_of_tls_are_refused(caller: Caller) -> None:
    old = careless(f"{caller.host}:{caller.port}")
    old.context.set_ciphers("ALL:@SECLEVEL=0")
    old.context.minimum_version = ssl.TLSVersion.TLSv1
    old.context.maximum_version = ssl.TLSVersion.TLSv1_1

    with pytest.raises(ssl.SSLError):
        old.shown()
    old.context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert old.shown()


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"", b""),
        (b"POST /jobs/validate HTTP/1.1\r\nHost: h\r\n", b""),
        (b"POST /jobs/validate HTTP/1.1\r\nX: " + b"x" * 2**20, b""),
        (
            b"POST /jobs/validate HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\n\r\n{",
            b"HTTP/1.1 408 ",
        ),
    ],
    ids=["silent", "half a head", "an endless head", "half a body"],
)
def test_a_slow_client_is_cut_off_and_bothers_nobody(
    settings: WebhookConfig,
    stored: Database,
    sent: bytes,
    answer: bytes,
) -> None:
    hasty = replace(settings, register=False, read_timeout=timedelta(seconds=0.3))
    with running(hasty, stored, Clock()) as found:
        caller = careless(found.address)
        with (
            socket.create_connection((caller.host, caller.port), timeout=10) as plain,
            caller.context.wrap_socket(plain) as slow,
        ):
            with suppress(OSError):  # it may be cut off while it speaks
                slow.sendall(sent)
            wait_until(lambda: admitted(caller), what="others to be answered")
            received = b""
            while piece := _receive(slow):
                received += piece
    assert received.startswith(answer)
    assert bool(received) is bool(answer)


def admitted(caller: Caller) -> bool:
    """Whether a job is let in; who is slow, as one is on a slow machine, is cut off."""
    try:
        return bool(caller.ask("/jobs/validate", "CREATE", JOB)["allowed"])
    except (OSError, http.client.HTTPException):
        return False


def _receive(connection: ssl.SSLSocket) -> bytes:
    try:
        return connection.recv(4096)
    except OSError:  # cut rather than ended
        return b""


def test_while_postgres_is_away_the_failure_policy_decides(
    settings: WebhookConfig, stored: Database
) -> None:
    away = Database("postgresql://127.0.0.1:1/none")
    with running(replace(settings, register=False), away, Clock()) as found:
        caller = careless(found.address)
        status, _ = caller.send("/jobs/validate", review("/jobs/validate", "CREATE", JOB))
    assert status == 503
