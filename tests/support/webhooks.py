"""A webhook over HTTPS in this process, and who calls it as an API server does."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from hekla.api.decode import encode
from hekla.store.database import Database
from services.webhook.config import WebhookConfig
from services.webhook.https import authority
from services.webhook.https.authority import Kept
from services.webhook.serving import Running, https
from tests.support.local_cluster import LocalCluster
from tests.support.objects import make_job
from tests.support.reviews import Object, response, review
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
