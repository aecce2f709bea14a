"""The second door without the rest: a local cluster that asks our webhook about our kinds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

from hekla.kube import definitions
from hekla.kube.client import KubeClient
from hekla.store.database import Database
from services.webhook.config import WebhookConfig
from services.webhook.https.inventory import ENDPOINTS
from services.webhook.serving import https
from tests.support.local_cluster import LocalCluster
from tests.support.ports import free_port
from tests.support.waiting import wait_until


class SecondDoor:
    """The cluster, and the webhook, which can be away."""

    def __init__(self, cluster: LocalCluster, database: Database, settings: WebhookConfig):
        self.cluster = cluster
        self._database = database
        self._settings = settings
        self._running = ExitStack()

    def open(self) -> None:
        """Start the webhook, and wait until API servers are told of it."""
        running = self._running.enter_context(https(self._settings, self._database))
        assert running is not None
        wait_until(lambda: running.ready() is None, what="the webhook to be registered")

    def close(self) -> None:
        """Stop the webhook; what is registered stays."""
        self._running.close()


@contextmanager
def second_door(home: Path, url: str) -> Iterator[SecondDoor]:
    """With the database at ``url``, until the block ends. Pods are asked about, too."""
    with ExitStack() as running:
        cluster = LocalCluster(home, "--nodes=1", "--runtime=simulate").start()
        running.callback(cluster.end)
        cluster.make("/api/v1/namespaces", {"metadata": {"name": "hekla"}})
        with KubeClient.start(str(cluster.kubeconfig), isolated=False) as client:
            definitions.install(client)
        address = f"127.0.0.1:{free_port()}"
        settings = WebhookConfig(
            database_url=url,
            https_listen=address,
            url=f"https://{address}",
            enabled_admission=tuple(ENDPOINTS),
            kubeconfig=str(cluster.kubeconfig),
            upkeep_period=timedelta(seconds=1),
            drain_timeout=timedelta(seconds=1),
        )
        database = Database(url)
        running.callback(database.close)
        door = SecondDoor(cluster, database, settings)
        running.callback(door.close)
        door.open()
        yield door
