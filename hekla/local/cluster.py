"""The local cluster put together: storage, verbs, node agents, and the app that serves them."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime
from typing import Final

from hekla.local.controllers import expiry, our_kinds
from hekla.local.controllers.claims import Claims
from hekla.local.controllers.collector import Collector
from hekla.local.controllers.definitions import Definitions
from hekla.local.controllers.namespaces import Namespaces
from hekla.local.kinds.registry import NAMESPACES, PRIORITY_CLASSES, Registry
from hekla.local.nodes import presence
from hekla.local.nodes.kubelet import Kubelet, Runtime
from hekla.local.runtimes.logs import Logs
from hekla.local.runtimes.peers import Peers
from hekla.local.runtimes.process_runtime import ProcessRuntime
from hekla.local.runtimes.simulate_runtime import SimulateRuntime
from hekla.local.serving.app import App
from hekla.local.serving.faults import Faults
from hekla.local.serving.watches import Watches
from hekla.local.settings import NOTE, Settings
from hekla.local.storage.journal import Journal, JournalError
from hekla.local.storage.memory import Storage
from hekla.local.verbs import admission
from hekla.local.verbs.objects import Objects
from hekla.local.webhooks.dispatch import Webhooks

_EXPIRY_INTERVAL: Final = 60.0


class Cluster:
    """Everything but the socket."""

    def __init__(self, settings: Settings, journal: Journal) -> None:
        self._settings = settings
        self._registry = Registry()
        self._storage = Storage(journal, self._registry)
        self._objects = Objects(self._storage, now=_now)
        faults = Faults(settings.watch_delay.total_seconds())
        self._watches = Watches(self._storage, faults, history=settings.watch_history)
        self._definitions = Definitions(
            self._storage, self._objects, self._registry, withdrawn=self._watches.forget
        )
        self._node_names = presence.names(settings.nodes)
        self._kubelet = Kubelet(self._storage, self._objects, self._node_names, now=_now)
        pods, note = settings.home / "pods", ""
        self._runtime: Runtime
        if settings.runtime == "simulate":
            self._runtime = SimulateRuntime(
                self._kubelet,
                start_delay=settings.start_delay,
                default_duration=settings.simulate_duration,
                lookup=self._storage.read,
                now=_now,
            )
        else:
            self._runtime = processes = ProcessRuntime(
                self._kubelet,
                self._storage,
                folder=pods.absolute(),
                home=(settings.hekla_home or settings.home).absolute(),
                peers=Peers(self._storage, settings.home.absolute() / "peers"),
                sandboxes=settings.sandboxes,
            )
            note = processes.note
        (settings.home / NOTE).write_text(f"{note}\n" if note else "")
        self._logs = Logs(self._storage, pods)
        self._webhooks = Webhooks(self._storage, self._registry)
        self.app = App(
            registry=self._registry,
            storage=self._storage,
            objects=self._objects,
            watches=self._watches,
            faults=faults,
            logs=self._logs,
            webhooks=self._webhooks,
        )

    async def start(self) -> None:
        """Make what every cluster has, and take over what was there before."""
        settings, storage = self._settings, self._storage
        for name in admission.FIRST_NAMESPACES:
            if storage.latest(NAMESPACES, "", name) is None:
                self._objects.create(NAMESPACES, "", {"metadata": {"name": name}})
        for name, value in admission.SYSTEM_PRIORITIES.items():
            if storage.latest(PRIORITY_CLASSES, "", name) is None:
                body = {"metadata": {"name": name}, "value": value}
                self._objects.create(PRIORITY_CLASSES, "", body)
        has = presence.capacity(
            cpu=settings.node_cpu,
            memory=settings.node_memory,
            gpus=settings.node_gpus,
            pods=settings.node_pods,
        )
        presence.unregister(self._objects, storage, keep=self._node_names)
        for name in self._node_names:
            presence.register(self._objects, storage, name, has, now=_now())
        await storage.settled()
        self._webhooks.begin()
        self._definitions.begin()
        if settings.crds:
            our_kinds.define(storage, self._objects)
            await storage.settled()
        Namespaces(storage, self._objects, self._registry).begin()
        tasks = self._kubelet.tasks
        Claims(storage, self._objects, tasks, settings.home.absolute() / "claims").begin()
        Collector(storage, self._objects, self._registry, tasks).begin()
        self._kubelet.begin(self._runtime)
        tasks.spawn(self._renew_leases(), name="leases")
        tasks.spawn(self._drop_old(), name="expiry")

    def close_streams(self) -> None:
        """End what would keep clients connected for long."""
        self._watches.close()
        self._logs.close()

    async def stop(self) -> None:
        """Stop the agents and close the store; containers run on."""
        await self._kubelet.tasks.cancel()
        await self._webhooks.close()
        await self._storage.close()

    async def _renew_leases(self) -> None:
        interval = presence.renew_interval(len(self._node_names))
        while self._node_names:
            presence.renew(
                self._objects, self._storage, self._node_names, interval=interval, now=_now
            )
            with contextlib.suppress(JournalError):  # whoever writes next is told
                await self._storage.settled()
            await asyncio.sleep(interval)

    async def _drop_old(self) -> None:
        while True:
            await asyncio.sleep(_EXPIRY_INTERVAL)
            expiry.drop_old(self._registry, self._storage, self._objects, now=_now())


def _now() -> datetime:
    return datetime.now(UTC)
