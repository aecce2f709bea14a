"""The webhook over HTTPS: real sockets and TLS, Postgres and the local cluster."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
from hypothesis import given, settings as hypothesis, strategies as st

from hekla.api.convert import to_message
from hekla.api.decode import encode
from hekla.domain.errors import InvalidError
from hekla.rpc.channel import connect
from hekla.store import queues
from hekla.store.database import Database
from hekla.v1 import (
    admission_service_pb2 as messages,
    admission_service_pb2_grpc,
    job_pb2,
)
from services.webhook import unregister
from services.webhook.config import WebhookConfig
from services.webhook.https import authority
from services.webhook.https.app import BODY_LIMIT
from services.webhook.https.authority import Kept
from services.webhook.https.inventory import ENDPOINTS
from services.webhook.serving import Running, https
from tests.integration.test_rpc_probes import ask
from tests.support.local_cluster import LocalCluster
from tests.support.logged import Logged
from tests.support.objects import make_job, make_queue
from tests.support.ports import free_port
from tests.support.postgres import Server
from tests.support.refusing import as_a_process, refusal
from tests.support.reviews import Object, patched, response, review
from tests.support.waiting import wait_until

REGISTRATION: Final = "/apis/admissionregistration.k8s.io/v1"
MUTATING: Final = f"{REGISTRATION}/mutatingwebhookconfigurations"
VALIDATING: Final = f"{REGISTRATION}/validatingwebhookconfigurations"
SECRET: Final = "/api/v1/namespaces/hekla/secrets/hekla-webhook-certificate"
JOB: Final = encode(make_job())
PERIOD: Final = timedelta(seconds=0.1)


class Caller:
    """Calls a webhook as an API server does."""

    def __init__(self, address: str, bundle: str) -> None:
        self.host, _, port = address.rpartition(":")
        self.port = int(port)
        self.context = ssl.create_default_context(cadata=bundle)
        self._kept: http.client.HTTPSConnection | None = None

    def open(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            self.host, self.port, timeout=20, context=self.context
        )

    def send(
        self, path: str, body: Any, *, method: str = "POST", kind: str = "application/json"
    ) -> tuple[int, bytes]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        with closing(self.open()) if self._kept is None else nullcontext(self._kept) as chosen:
            chosen.request(method, path, data, {"Content-Type": kind})
            answer = chosen.getresponse()
            return answer.status, answer.read()

    @contextmanager
    def keeping(self) -> Iterator[Caller]:
        """Send all by one connection, until the block ends."""
        with closing(self.open()) as self._kept:
            yield self
        self._kept = None

    def ask(self, path: str, operation: str, value: Any, old: Any = None) -> Object:
        status, answer = self.send(path, review(path, operation, value, old))
        assert status == 200, answer
        return response(answer)

    def shown(self) -> bytes:
        """The certificate that is shown now."""
        with (
            socket.create_connection((self.host, self.port), timeout=10) as plain,
            self.context.wrap_socket(plain, server_hostname=self.host) as secure,
        ):
            found = secure.getpeercert(binary_form=True)
            assert found is not None
            return found


def careless(address: str) -> Caller:
    """One that believes anybody."""
    caller = Caller(address, "")
    caller.context.check_hostname = False
    caller.context.verify_mode = ssl.CERT_NONE
    return caller


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    running = LocalCluster(tmp_path_factory.mktemp("cluster"), "--nodes=0").start()
    running.make("/api/v1/namespaces", {"metadata": {"name": "hekla"}})
    yield running
    running.kill()


@pytest.fixture(scope="module")
def url(postgres: Server) -> str:
    return postgres.make_database("webhook_https", template="template")


@pytest.fixture(scope="module")
def stored(url: str) -> Iterator[Database]:
    database = Database(url)
    with database.transaction() as session:
        queues.make_well_known(session)
    yield database
    database.close()


@pytest.fixture
def settings(url: str, cluster: LocalCluster) -> Iterator[WebhookConfig]:
    yield WebhookConfig(
        database_url=url,
        https_listen="127.0.0.1:0",
        url="https://127.0.0.1:9",
        kubeconfig=str(cluster.kubeconfig),
        upkeep_period=PERIOD,
        drain_timeout=timedelta(seconds=2),
    )
    for path in (f"{MUTATING}/hekla-webhook", f"{VALIDATING}/hekla-webhook", SECRET):
        cluster.call("DELETE", path)


class Clock:
    """A clock that can be set."""

    ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@contextmanager
def running(settings: WebhookConfig, database: Database, clock: Clock) -> Iterator[Running]:
    with https(settings, database, now=clock) as found:
        assert found is not None
        wait_until(lambda: found.ready() is None, what=f"the webhook: {found.ready()}")
        yield found


def told(cluster: LocalCluster, path: str = VALIDATING) -> str:
    """The bundle that API servers are told to believe."""
    webhooks = cluster.get(f"{path}/hekla-webhook")["webhooks"]
    [bundle] = {webhook["clientConfig"]["caBundle"] for webhook in webhooks}
    return base64.b64decode(bundle).decode()


def issued(hosts: list[str], folder: Path, name: str) -> tuple[Kept, dict[str, Any]]:
    """An authority and a certificate in files, as somebody else would make them."""
    kept = authority.renewed(None, hosts, datetime.now(UTC))
    assert kept is not None
    files: dict[str, Any] = {
        "certificate_file": folder / f"{name}.crt",
        "key_file": folder / f"{name}.key",
        "ca_file": folder / f"{name}-ca.crt",
    }
    write(kept, files)
    return kept, files


def write(kept: Kept, files: dict[str, Any]) -> None:
    files["certificate_file"].write_text(kept.served.certificate)
    files["key_file"].write_text(kept.served.key)
    files["ca_file"].write_text(kept.bundle)


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


def test_two_replicas_that_start_at_once_agree_and_tell_api_servers(
    settings: WebhookConfig, stored: Database, cluster: LocalCluster
) -> None:
    clock = Clock()
    clock.ahead = -timedelta(days=250)
    with ExitStack() as stack:
        found = [stack.enter_context(https(settings, stored, now=clock)) for _ in range(3)]
        replicas = [one for one in found if one is not None]
        wait_until(lambda: not any(one.ready() for one in replicas), what="three replicas")

        bundle = told(cluster)
        assert told(cluster, MUTATING) == bundle
        callers = [Caller(one.address, bundle) for one in replicas]
        assert len({one.shown() for one in callers}) == 1
        assert all(one.ask("/jobs/validate", "CREATE", JOB)["allowed"] for one in callers)
        names = {
            webhook["name"]: (webhook["failurePolicy"], webhook["clientConfig"]["url"])
            for webhook in cluster.get(f"{VALIDATING}/hekla-webhook")["webhooks"]
        }
        assert names["validatequeue.volcano.sh"] == (
            "Fail",
            "https://127.0.0.1:9/queues/validate",
        )

        right = cluster.get(f"{VALIDATING}/hekla-webhook")["webhooks"]
        cluster.merge(f"{VALIDATING}/hekla-webhook", {"webhooks": right[1:]})
        cluster.call("DELETE", f"{MUTATING}/hekla-webhook")

        def mended() -> bool:
            listed = cluster.get(f"{VALIDATING}/hekla-webhook")["webhooks"]
            return bool(listed == right) and (
                cluster.call("GET", f"{MUTATING}/hekla-webhook").code == 200
            )

        wait_until(mended, what="the configurations to be mended")
        clock.ahead = timedelta()
        before = callers[0].shown()
        wait_until(
            lambda: len({before, *(one.shown() for one in callers)}) == 2, what="a renewal"
        )
        wait_until(lambda: len({one.shown() for one in callers}) == 1, what="all to show it")
        assert told(cluster) == bundle


def test_certificate_files_are_swapped_without_a_failed_call(
    settings: WebhookConfig, stored: Database, cluster: LocalCluster, tmp_path: Path
) -> None:
    """C123: replicas see the files change, and their authority, at different times."""
    first, files = issued(["127.0.0.1"], tmp_path, "one")
    _, others = issued(["127.0.0.1"], tmp_path, "two")
    write(first, others)
    second, _ = issued(["127.0.0.1"], tmp_path, "next")
    failed: list[str] = []
    ended = threading.Event()

    def call(address: str) -> None:
        while not ended.is_set():
            believed = told(cluster)
            try:
                value = encode(make_queue("new"))
                Caller(address, believed).ask("/queues/validate", "CREATE", value)
            except (OSError, AssertionError) as error:
                # An API server hears of a change at once; this thread may be kept from it.
                if told(cluster) == believed:
                    failed.append(str(error))

    with (
        running(replace(settings, **files), stored, Clock()) as one,
        running(replace(settings, **others), stored, Clock()) as two,
    ):
        threads = [threading.Thread(target=call, args=[each.address]) for each in (one, two)]
        for thread in threads:
            thread.start()
        try:
            before = Caller(one.address, first.bundle).shown()
            files["key_file"].write_text("half a")  # a bad pair changes nothing
            write(second, files)
            wait_until(lambda: authority.within(told(cluster), second.bundle), what="both")
            swapped = ssl.PEM_cert_to_DER_cert(second.served.certificate)
            both = first.bundle + second.bundle
            wait_until(lambda: Caller(one.address, both).shown() == swapped, what="the swap")
            assert Caller(two.address, both).shown() == before
            write(second, others)
            wait_until(lambda: Caller(two.address, both).shown() == swapped, what="the swap")
        finally:
            ended.set()
            for thread in threads:
                thread.join()
    assert failed == []


def test_files_that_are_no_certificate_end_it_at_the_start(
    settings: WebhookConfig, stored: Database, tmp_path: Path
) -> None:
    _, one = issued(["127.0.0.1"], tmp_path, "one")
    _, two = issued(["127.0.0.1"], tmp_path, "two")
    mixed = {**one, "key_file": two["key_file"]}
    for files in (mixed, {**one, "ca_file": one["key_file"]}, {**one, "key_file": tmp_path}):
        with (
            pytest.raises(InvalidError, match=str(tmp_path)),
            https(replace(settings, register=False, **files), stored),
        ):
            pass


def test_what_it_needs_of_kubernetes_is_said(
    settings: WebhookConfig, stored: Database, cluster: LocalCluster
) -> None:
    with https(replace(settings, namespace="none"), stored) as found:
        assert found is not None
        wait_until(lambda: "namespace none" in (found.ready() or ""), what="the reason")
    secret = {"metadata": {"name": "others"}, "stringData": {"tls.crt": "x"}}
    cluster.make("/api/v1/namespaces/hekla/secrets", secret)
    with https(replace(settings, certificate_secret="others"), stored) as found:
        assert found is not None
        wait_until(lambda: "is not ours" in (found.ready() or ""), what="the reason")
    assert cluster.get("/api/v1/namespaces/hekla/secrets/others")["data"] == {"tls.crt": "eA=="}


def test_the_process_registers_answers_at_both_doors_unregisters_and_stops(
    settings: WebhookConfig,
    cluster: LocalCluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = Logged(tmp_path / "log")
    port = free_port()
    environ = {
        "PATH": os.environ["PATH"],
        "KUBECONFIG": str(cluster.kubeconfig),
        "HEKLA_DATABASE_URL": settings.database_url,
        "HEKLA_WEBHOOK_URL": f"https://127.0.0.1:{port}",
        "HEKLA_WEBHOOK_LISTEN": "127.0.0.1:0",
        "HEKLA_WEBHOOK_HTTP_LISTEN": "127.0.0.1:0",
        "HEKLA_WEBHOOK_DRAIN_TIMEOUT": "5m",  # a connection without a call is not waited for
    }
    module = [sys.executable, "-m", "services.webhook"]
    with log.path.open("wb") as stderr:
        process = subprocess.Popen(
            [*module, f"--https-listen=127.0.0.1:{port}"], env=environ, stderr=stderr
        )
    try:
        path = f"{MUTATING}/hekla-webhook"
        wait_until(
            lambda: cluster.call("GET", path).code == 200,
            timeout=60,
            what=f"a registration: {log.text()}",
        )
        caller = Caller(f"127.0.0.1:{port}", told(cluster))
        with closing(caller.open()) as kept_alive:
            kept_alive.connect()
            assert caller.ask("/jobs/validate", "CREATE", JOB)["allowed"]
            at = log.wait_for("serving")
            wait_until(lambda: ask(at["http_listen"], "/readyz")[0] == 200, what="it ready")
            with connect(at["listen"]) as channel:
                of_grpc = messages.AdmissionRequest(operation="CREATE")
                of_grpc.job.CopyFrom(to_message(make_job(), job_pb2.Job))
                answer = admission_service_pb2_grpc.AdmissionServiceStub(channel).Review(
                    messages.ReviewRequest(requests=[of_grpc]), timeout=20
                )
            assert answer.responses[0].allowed
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, log.text()
            assert log.lines("stopped")
    finally:
        process.kill()
        process.wait()

    done = subprocess.run(
        [*module, "unregister"], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.count("hekla-webhook removed") == 2
    assert cluster.call("GET", path).code == 404
    with as_a_process([], environ):
        unregister.main([])
    assert capsys.readouterr().out == "no webhooks are registered\n"
    assert refusal(lambda: unregister.main([]), KUBECONFIG="/nonexistent")
