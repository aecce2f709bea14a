"""The mirror of queues and commands in this process, on a real store and a local cluster."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from hekla.kube import definitions
from hekla.kube.client import KubeClient
from hekla.kube.mirror.standing import Installed, Mirror
from hekla.rpc.admission import Admission
from hekla.store import jobs, pod_groups, queues
from hekla.store.database import Database
from hekla.store.hub import Hub
from services.controller.mirror.running import mirroring
from services.controller.queue_calls import QueueCalls
from services.controller.queue_counts import QueueCounts
from tests.support.controller_scene import webhook_at
from tests.support.hubs import reading
from tests.support.local_cluster import LocalCluster, Object
from tests.support.waiting import wait_until

QUEUES_AT: Final = "/apis/scheduling.volcano.sh/v1beta1/queues"
COMMANDS_AT: Final = "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands"


@dataclass(slots=True)
class QueueScene:
    """Queues on both sides."""

    database: Database
    cluster: LocalCluster
    kube: KubeClient
    mirror: Mirror
    calls: QueueCalls

    def make(self, name: str, **spec: Any) -> Object:
        """Create a custom resource."""
        return self.cluster.make(QUEUES_AT, {"metadata": {"name": name}, "spec": spec})

    def custom(self, name: str) -> Object | None:
        """A custom resource as it is now."""
        answer = self.cluster.call("GET", f"{QUEUES_AT}/{name}")
        return answer.body if answer.code == 200 else None

    def row(self, name: str) -> queues.Mirrored | None:
        """A row as it is now."""
        with self.database.transaction() as session:
            return next(iter(queues.mirrored(session, [name])), None)

    def until_row(self, name: str, **spec: Any) -> queues.Mirrored:
        """The row of that name, once its spec says so."""

        def found() -> queues.Mirrored | None:
            row = self.row(name)
            ok = row is not None and all(
                getattr(row.queue.spec, key) == value for key, value in spec.items()
            )
            return row if ok else None

        made = wait_until(found, what=f"queue {name} to be stored")
        assert made is not None
        return made

    def until_gone(self, name: str) -> None:
        """Wait until neither side has a queue of that name."""
        wait_until(
            lambda: self.row(name) is None and self.custom(name) is None,
            what=f"queue {name} to be gone",
        )

    def until_shown(self, name: str, **status: Any) -> None:
        """Wait until a custom resource shows this."""

        def shown() -> bool:
            found = (self.custom(name) or {}).get("status") or {}
            return all(found.get(key) == value for key, value in status.items())

        wait_until(shown, what=f"queue {name} to show {status}")


@contextmanager
def queue_scene(database: Database, cluster: LocalCluster) -> Iterator[QueueScene]:
    """Mirror queues and commands until the block ends."""
    with database.transaction() as session:
        queues.make_well_known(session)
    loaders = {
        jobs.KIND: jobs.documents,
        pod_groups.KIND: pod_groups.documents,
        queues.KIND: queues.load,
    }
    hub = Hub(database, loaders)
    with ExitStack() as running:
        kube = running.enter_context(
            KubeClient.start(str(cluster.kubeconfig), isolated=False, service="controller")
        )
        definitions.install(kube)
        admission = Admission(running.enter_context(webhook_at(database)))
        running.callback(admission.close)
        running.enter_context(reading(hub))
        counts, closing = QueueCounts(database), threading.Event()
        mirrors = running.enter_context(
            mirroring(
                database,
                admission,
                kube,
                hub,
                holder=str(uuid4()),
                status_rate=200.0,
                counts=counts,
                closing=closing.set,
            )
        )
        mirror = mirrors.mirror
        wait_until(lambda: mirror.installed is Installed.YES, what="the mirror to begin")
        calls = QueueCalls(database, admission, counts, mirrors.queues, closing)
        yield QueueScene(database, cluster, kube, mirror, calls)
