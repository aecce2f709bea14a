"""``python -m services.flow``: put the parts together and run until told to stop."""

from __future__ import annotations

from contextlib import ExitStack

from hekla.lifecycle import Termination
from hekla.rpc import service
from hekla.store import migrate
from hekla.store.database import Database
from services.flow.config import FlowConfig
from services.flow.servicer import SERVICES, register


def main(settings: FlowConfig) -> None:
    """Serve flows."""
    termination = Termination.by_signal()
    database = Database(settings.database_url, pool_size=1)

    def schema() -> str | None:
        migrate.check(database)
        return None

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
    service.run("flow", FlowConfig, main)
