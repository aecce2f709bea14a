"""``python -m services.webhook``: put the parts together and run until told to stop.

A first word names a tool instead: ``lint`` or ``unregister``.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Final

import grpc

from hekla.lifecycle import Termination
from hekla.rpc import service
from hekla.store import migrate
from hekla.store.database import Database
from hekla.v1 import admission_service_pb2_grpc
from services.webhook.config import WebhookConfig
from services.webhook.lint.command import run as lint
from services.webhook.servicer import SERVICES, AdmissionServicer
from services.webhook.serving import https
from services.webhook.unregister import main as unregister
from services.webhook.world import UNKNOWN, Cluster

log = logging.getLogger(__name__)

TOOLS: Final[Mapping[str, Callable[[Sequence[str]], None]]] = {
    "lint": lint,
    "unregister": unregister,
}
"""What a first word names, given the others."""


def main(settings: WebhookConfig) -> None:
    """Serve admission."""
    termination = Termination.by_signal()
    database = Database(settings.database_url)

    def schema() -> str | None:
        migrate.check(database)
        return None

    with ExitStack() as running:
        running.callback(database.close)
        secure = running.enter_context(https(settings, database))
        cluster: Cluster = UNKNOWN if secure is None else secure.cluster

        def register(server: grpc.Server) -> None:
            admission_service_pb2_grpc.add_AdmissionServiceServicer_to_server(
                AdmissionServicer(database, settings.limits, cluster), server
            )

        ready = {"schema": schema}
        if secure is not None:
            ready["https"] = secure.ready
            log.info("answering API servers", extra={"https_listen": secure.address})
        running.enter_context(
            service.listening(
                settings,
                termination,
                register=register,
                services=SERVICES,
                ready=ready,
            )
        )
        termination.wait()


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] in TOOLS:
        TOOLS[sys.argv[1]](sys.argv[2:])
        raise SystemExit(0)
    service.run("webhook", WebhookConfig, main)
