"""Run the local cluster: ``python -m hekla.local --home DIR``."""

from __future__ import annotations

import logging
import os
import sys

import uvloop

from hekla import config
from hekla.domain.errors import InvalidError
from hekla.local import server
from hekla.local.nodes import presence
from hekla.local.settings import PREFIX, Settings
from hekla.local.storage.journal import Journal, JournalError
from hekla.telemetry import configure_logging

log = logging.getLogger(__name__)


def main() -> int:
    """Run until told to stop; the exit code says whether it could start."""
    try:
        settings = config.load(Settings, PREFIX, os.environ, sys.argv[1:])
        presence.capacity(
            cpu=settings.node_cpu,
            memory=settings.node_memory,
            gpus=settings.node_gpus,
            pods=settings.node_pods,
        )
        with server.lock(settings.home), server.listen(settings.port) as listener:
            journal = Journal(settings.home / "cluster.db")
            configure_logging("local")
            log.info("starting", extra={"settings": config.describe(settings)})
            server.allow_many_files()
            uvloop.run(server.serve(settings, journal, listener))
    except (config.ConfigError, InvalidError, JournalError, server.StartError) as error:
        sys.stderr.write(f"hekla.local: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
