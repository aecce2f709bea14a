"""A Postgres server of the tests' own, and a database for each test."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hekla.local.postgres import EmbeddedPostgres


@contextmanager
def server(*, durable: bool = False) -> Iterator[EmbeddedPostgres]:
    """Start a server in a temporary folder; it is not told to survive a power cut."""
    with tempfile.TemporaryDirectory(prefix="hekla-test-") as folder:
        postgres = EmbeddedPostgres(Path(folder), durable=durable)
        postgres.start()
        try:
            yield postgres
        finally:
            postgres.stop()
