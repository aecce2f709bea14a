"""The table of admission at its four doors: library, gRPC, HTTPS and lint say the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hekla.store.database import Database
from services.webhook.config import WebhookConfig
from services.webhook.rules.world import Limits
from services.webhook.serving import https
from tests.integration.test_admission_table import Servers, TableCluster, fill
from tests.support.admission_doors import (
    Door,
    Verdict,
    by_grpc,
    by_https,
    by_lint,
    library,
    limits_of,
)
from tests.support.admission_rows import NONE, Row
from tests.support.admission_table import ROWS
from tests.support.admission_verdicts import check
from tests.support.reviews import Object
from tests.support.waiting import wait_until
from tests.support.webhooks import Caller, issued, write


class Callers:
    """A caller for each way in which rows want an installation."""

    def __init__(self, url: str, database: Database, folder: Path, running: ExitStack) -> None:
        self._url = url
        self._database = database
        self._kept, self._files = issued(["127.0.0.1"], folder, "given")
        write(self._kept, self._files)
        self._running = running
        self._callers: dict[Limits, Caller] = {}

    def ask(self, row: Row, path: str, operation: str, value: Any, old: Any) -> Object:
        return self._of(row).ask(path, operation, value, old)

    def _of(self, row: Row) -> Caller:
        limits = limits_of(row)
        if limits not in self._callers:
            settings = WebhookConfig(
                database_url=self._url,
                https_listen="127.0.0.1:0",
                register=False,
                protect_used_queues=limits.protect_used_queues,
                admission_extra="warn" if limits.extra_warns else "deny",
                compat=tuple(limits.compat),
                **self._files,
            )
            found = self._running.enter_context(
                https(settings, self._database, cluster=TableCluster())
            )
            assert found is not None
            wait_until(lambda: found.ready() is None, what="the webhook")
            caller = Caller(found.address, self._kept.bundle)
            self._callers[limits] = self._running.enter_context(caller.keeping())
        return self._callers[limits]


@pytest.fixture
def doors(database: Database, tmp_path: Path) -> Iterator[dict[str, Door]]:
    fill(database)
    with ExitStack() as running:
        yield {
            "library": library,
            "gRPC": by_grpc(Servers(database, running).stub),
            "HTTPS": by_https(Callers(database.url, database, tmp_path, running).ask),
            "lint": by_lint,
        }


def test_each_row_gets_the_same_verdict_at_every_door(doors: dict[str, Door]) -> None:
    """C15."""
    wrong: list[str] = []
    passed: Counter[str] = Counter()
    for row in ROWS:
        verdicts = {name: found for name, door in doors.items() if (found := door(row))}
        passed.update(list(verdicts))
        wrong += [said] if (said := check(row, verdicts["library"])) else []
        wrong += [
            f"{row.source}: {name} says {mine}, the library {itself}"
            for name, found in verdicts.items()
            if (mine := comparable(row, found, name))
            != (itself := comparable(row, verdicts["library"], name))
        ]

    assert wrong == []
    assert passed["library"] == passed["lint"] == len(ROWS)
    assert min(passed.values()) > 250, passed


def comparable(row: Row, verdict: Verdict, door: str) -> object:
    """What must be the same of a verdict at a door and at the library."""
    violations: object = dict(verdict.violations)
    told, warnings = verdict.told, verdict.warnings
    if door == "gRPC" and NONE in (row.refuse or {}).values():
        told = frozenset()  # messages cannot tell an empty list from none
    if door == "HTTPS":
        # API servers cut warnings.
        cut = {text if len(text) <= 256 else f"{text[:253]}..." for text in warnings}
        warnings = frozenset(cut if verdict.allowed else ())
        violations = set(verdict.violations)  # values are in the messages
    return verdict.allowed, violations, told, warnings
