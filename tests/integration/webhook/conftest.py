"""A local cluster without nodes, a store, and settings for a webhook between them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from hekla.store import queues
from hekla.store.database import Database
from services.webhook.config import WebhookConfig
from tests.support.local_cluster import LocalCluster
from tests.support.postgres import Server
from tests.support.webhooks import MUTATING, PERIOD, SECRET, VALIDATING


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    running = LocalCluster(tmp_path_factory.mktemp("cluster"), "--nodes=0").start()
    running.make("/api/v1/namespaces", {"metadata": {"name": "hekla"}})
    yield running
    running.kill()


@pytest.fixture(scope="package")
def url(postgres: Server) -> str:
    return postgres.make_database("webhook_https", template="template")


@pytest.fixture(scope="package")
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
