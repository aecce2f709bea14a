"""Puts the parts together: serves reviews over HTTPS as settings say."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from hekla import lifecycle
from hekla.domain.errors import InvalidError
from hekla.kube.client import KubeClient
from hekla.rpc.http import Check
from hekla.store.database import Database
from services.webhook.cluster import KubeCluster
from services.webhook.config import WebhookConfig
from services.webhook.https import projected, server
from services.webhook.https.app import App
from services.webhook.https.envelope import Review, Verdict
from services.webhook.https.inventory import Endpoint
from services.webhook.https.judge import judge
from services.webhook.https.keeping import FileKeeper, Keeper, SecretKeeper
from services.webhook.https.registration import Registrar
from services.webhook.https.upkeep import Upkeep
from services.webhook.limits import LimitsNow
from services.webhook.world import UNKNOWN, Cluster, StoredWorld

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Running:
    """The HTTPS side of a webhook that runs."""

    address: str
    """``host:port``, with the port that was bound."""
    ready: Check
    cluster: Cluster
    """What is known of Kubernetes."""


@contextmanager
def https(
    settings: WebhookConfig,
    database: Database,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    cluster: Cluster | None = None,
) -> Iterator[Running | None]:
    """Serve until the block ends; None if settings do not ask for it.

    It begins with the first certificate, which may have to wait for Kubernetes.

    Raises:
        ListenError: nothing can listen there.
        InvalidError: Kubernetes is needed, and nothing says where it is; or files are no
            certificate with its key.
    """
    if settings.https_listen is None:
        yield None
        return

    with ExitStack() as running:
        kube = _kube(settings, running)
        known = cluster or (UNKNOWN if kube is None else KubeCluster(kube))

        limits = LimitsNow(settings.limits, settings.resource_groups)

        find = projected.stored(database)

        def review(endpoint: Endpoint, asked: Review) -> Verdict:
            made = projected.judge(endpoint, asked, find)
            if made is not None:
                return made
            return judge(endpoint, asked, StoredWorld(database, known), limits())

        executor = ThreadPoolExecutor(settings.rpc_threads, thread_name_prefix="review")
        running.callback(executor.shutdown, wait=False)
        keeper, registrar = _upkept(settings, kube)
        if isinstance(keeper, FileKeeper):
            keeper.load(now())  # tells now what would fail later
        listener = server.listen(settings.https_listen)
        serving = server.TlsServer(
            App(review, executor, read_timeout=settings.read_timeout),
            listener,
            read_timeout=settings.read_timeout,
            drain_timeout=settings.drain_timeout,
        )
        running.callback(serving.close)
        upkeep = Upkeep(keeper, serving, registrar, now=now)
        running.enter_context(
            lifecycle.repeating("https-upkeep", upkeep.look, idle=settings.upkeep_period)
        )
        host = settings.https_listen.rpartition(":")[0]
        yield Running(f"{host}:{listener.getsockname()[1]}", upkeep.problem, known)


def _kube(settings: WebhookConfig, running: ExitStack) -> KubeClient | None:
    """Kubernetes; None if it is not known where, and it need not be."""
    try:
        return running.enter_context(
            KubeClient.start(settings.kubeconfig, isolated=False, service="webhook")
        )
    except InvalidError as error:
        if settings.certificate_file is None or settings.register:
            raise
        log.warning("queues, namespaces and nodes are not looked at", extra={"why": str(error)})
        return None


def _upkept(
    settings: WebhookConfig, kube: KubeClient | None
) -> tuple[Keeper, Registrar | None]:
    """Who knows the certificate, and who registers it."""
    registrar = None
    if kube is not None and settings.register:
        registrar = Registrar(kube, settings.target, settings.enabled_admission)
    if settings.certificate_file is not None and settings.key_file is not None:
        files = FileKeeper(settings.certificate_file, settings.key_file, settings.ca_file)
        return files, registrar
    assert kube is not None
    name = settings.certificate_secret
    return SecretKeeper(kube, settings.namespace, name, settings.hosts), registrar
