"""``python -m services.webhook``: put the parts together and run until told to stop."""

from __future__ import annotations

import sys
from contextlib import ExitStack

import grpc

from hekla.lifecycle import Termination
from hekla.rpc import service
from hekla.store import migrate
from hekla.store.database import Database
from hekla.v1 import admission_service_pb2_grpc
from services.webhook.config import WebhookConfig
from services.webhook.lint.command import main as lint
from services.webhook.servicer import SERVICES, AdmissionServicer


def main(settings: WebhookConfig) -> None:
    """Serve admission."""
    termination = Termination.by_signal()
    database = Database(settings.database_url)

    def schema() -> str | None:
        migrate.check(database)
        return None

    def register(server: grpc.Server) -> None:
        admission_service_pb2_grpc.add_AdmissionServiceServicer_to_server(
            AdmissionServicer(database, settings.limits), server
        )

    with ExitStack() as running:
        running.callback(database.close)
        running.enter_context(
            service.listening(
                settings,
                termination,
                register=register,
                services=SERVICES,
                ready={"schema": schema},
            )
        )
        termination.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["lint"]:
        lint(sys.argv[2:], prog_name="hekla lint")
    service.run("webhook", WebhookConfig, main)
