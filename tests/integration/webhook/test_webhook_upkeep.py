"""The webhook over HTTPS: certificates, registration, replicas, and the process as a whole."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
import threading
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from hekla.api.convert import to_message
from hekla.api.decode import encode
from hekla.domain.errors import InvalidError
from hekla.rpc.channel import connect
from hekla.store.database import Database
from hekla.v1 import (
    admission_service_pb2 as messages,
    admission_service_pb2_grpc,
    job_pb2,
)
from services.webhook import unregister
from services.webhook.config import WebhookConfig
from services.webhook.https import authority
from services.webhook.serving import https
from tests.integration.test_rpc_probes import ask
from tests.support.local_cluster import LocalCluster
from tests.support.logged import Logged
from tests.support.objects import make_job, make_queue
from tests.support.ports import free_port
from tests.support.refusing import as_a_process, refusal
from tests.support.waiting import wait_until
from tests.support.webhooks import (
    JOB,
    MUTATING,
    VALIDATING,
    Caller,
    Clock,
    issued,
    running,
    told,
    write,
)


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
        registered = [f"{kind}/hekla-webhook" for kind in (MUTATING, VALIDATING)]
        wait_until(
            lambda: {cluster.call("GET", one).code for one in registered} == {200},
            timeout=60,
            what=f"both registrations: {log.text()}",
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
    assert {cluster.call("GET", one).code for one in registered} == {404}
    with as_a_process([], environ):
        unregister.main([])
    assert capsys.readouterr().out == "no webhooks are registered\n"
    assert refusal(lambda: unregister.main([]), KUBECONFIG="/nonexistent")
