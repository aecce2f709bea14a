"""The table of admission through HTTPS: what API servers hear is what the rules say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hekla.store.database import Database
from services.webhook.config import WebhookConfig
from services.webhook.https.inventory import ENDPOINTS
from services.webhook.https.serving import https
from services.webhook.rules.world import Limits
from tests.integration.test_admission_table import TableCluster, fill
from tests.integration.test_webhook_https import Caller, issued, write
from tests.support.admission_doors import library, limits_of
from tests.support.admission_rows import Row
from tests.support.admission_table import ROWS
from tests.support.reviews import Object, patched
from tests.support.waiting import wait_until


class Callers:
    """A caller for each way in which rows want an installation."""

    def __init__(self, url: str, database: Database, folder: Path, running: ExitStack) -> None:
        self._url = url
        self._database = database
        self._kept, self._files = issued(["127.0.0.1"], folder, "given")
        write(self._kept, self._files)
        self._running = running
        self._callers: dict[Limits, Caller] = {}

    def of(self, row: Row) -> Caller:
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
                https(
                    settings,
                    self._database,
                    now=lambda: datetime.now(UTC),
                    cluster=TableCluster(),
                )
            )
            assert found is not None
            wait_until(lambda: found.ready() is None, what="the webhook")
            caller = Caller(found.address, self._kept.bundle)
            self._callers[limits] = self._running.enter_context(caller.keeping())
        return self._callers[limits]


@pytest.fixture
def callers(postgres_url: str, database: Database, tmp_path: Path) -> Iterator[Callers]:
    fill(database)
    with ExitStack() as running:
        yield Callers(postgres_url, database, tmp_path, running)


def test_each_row_is_judged_over_https_as_by_the_rules(callers: Callers) -> None:
    """C15."""
    wrong = [said for row in ROWS if (said := difference(callers, row))]

    assert wrong == []


def difference(callers: Callers, row: Row) -> str:
    """How HTTPS judges a row otherwise than the rules; empty if it does not."""
    plural = f"{row.object['kind'].lower()}s"
    operation = "DELETE" if row.delete else "CREATE" if row.old is None else "UPDATE"
    path = f"/{plural}/validate"
    if path not in ENDPOINTS or operation not in ENDPOINTS[path].operations:
        return ""
    caller, itself = callers.of(row), library(row)
    value: Any = dict(row.object)
    if operation == "CREATE" and f"/{plural}/mutate" in ENDPOINTS:
        value = patched(caller.ask(f"/{plural}/mutate", "CREATE", value), value)
    sent = (None, value) if row.delete else (value, row.old)
    told = caller.ask(path, operation, *sent)
    if told["allowed"] is not itself.allowed or fields(told) != set(itself.violations) - {""}:
        return f"{row.source}: {told} is not {itself}"
    if told["allowed"] and set(told.get("warnings", ())) != {cut(w) for w in itself.warnings}:
        return f"{row.source}: {told} is not {itself}"
    return ""


def fields(told: Object) -> set[str]:
    """Where something is wrong."""
    causes = told.get("status", {}).get("details", {}).get("causes", ())
    return {cause["field"] for cause in causes}


def cut(warning: str) -> str:
    """A warning as API servers take it."""
    return warning if len(warning) <= 256 else f"{warning[:253]}..."
