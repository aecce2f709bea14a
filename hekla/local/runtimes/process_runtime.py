"""Containers as processes of this machine, each in a sandbox of its own where there are any.

They live on when this process ends, however it ends, and are taken over by the next.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Final

from hekla.local.kinds.registry import Object
from hekla.local.nodes.kubelet import Kubelet, PodRef
from hekla.local.runtimes import environment, sandbox
from hekla.local.runtimes.environment import Place
from hekla.local.runtimes.peers import Peers, peer
from hekla.local.runtimes.pod_run import PodRun
from hekla.local.runtimes.sandbox import Mount, Sandbox
from hekla.local.runtimes.sweeps import Sweeper
from hekla.local.storage.memory import Storage

PLAIN: Final = "containers are plain processes: no sandboxes, no mounts"

log = logging.getLogger(__name__)


class ProcessRuntime:
    """The pods that run as processes."""

    def __init__(
        self,
        kubelet: Kubelet,
        storage: Storage,
        *,
        folder: Path,
        home: Path,
        peers: Peers,
        sandboxes: bool,
    ) -> None:
        self._kubelet = kubelet
        self._peers = peers
        self._storage = storage
        self._folder = folder
        self._home = home
        self._sweeper = Sweeper(kubelet.tasks)
        self._runs: dict[str, tuple[PodRun, asyncio.Task[None]]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        self._sandbox: Sandbox | None = None
        self.note = "" if sandboxes else PLAIN
        """What users should know of how containers run here."""
        if sandboxes:
            try:
                self._sandbox = sandbox.find(peers.layer("default"))
            except sandbox.UnavailableError as error:
                self.note = f"{PLAIN} ({error})"
                log.warning("no sandboxes", extra={"reason": str(error)})

    def begin(self, known: Collection[str]) -> None:
        """See ``Runtime``."""
        for folder in self._folder.iterdir():
            if folder.name not in known:
                self._clean_up(folder.name)

    def start(self, ref: PodRef, pod: Object, ip: str) -> None:
        """See ``Runtime``."""
        run = PodRun(
            ref,
            pod,
            kubelet=self._kubelet,
            sweeper=self._sweeper,
            folder=self._folder / ref.uid,
            place=self._place(pod["spec"]["nodeName"], ip),
            lookup=partial(self._storage.read, ref.namespace),
            box=partial(self._box, ref.namespace, environment.hostname(pod)),
        )
        self._peers.join(ref.uid, peer(pod, ip))
        task = self._kubelet.tasks.spawn(run.run(), name=f"pod {ref.namespace}/{ref.name}")
        task.add_done_callback(lambda _: self._peers.leave(ref.namespace, ref.uid))
        self._runs[ref.uid] = (run, task)

    def stop(self, ref: PodRef, seconds: float) -> None:
        """See ``Runtime``."""
        if ref.uid in self._runs:
            self._runs[ref.uid][0].stop(seconds)

    def forget(self, ref: PodRef) -> None:
        """See ``Runtime``."""
        found = self._runs.pop(ref.uid, None)
        if found is not None:
            found[1].cancel()
        self._clean_up(ref.uid)

    def _clean_up(self, uid: str) -> None:
        self._kubelet.tasks.spawn(self._cleaned_up(uid), name=f"clean up {uid}")

    async def _cleaned_up(self, uid: str) -> None:
        await self._sweeper.sweep(uid)
        await asyncio.to_thread(shutil.rmtree, self._folder / uid, ignore_errors=True)

    def _box(
        self, namespace: str, hostname: str, mounts: list[Mount], folder: Path
    ) -> list[str]:
        if self._sandbox is None:
            return []
        layer, peers = self._peers.layer(namespace), self._peers.hosts(namespace).parent
        return self._sandbox.words(
            mounts, hostname=hostname, layer=layer, pod=folder, peers=peers
        )

    def _place(self, node: str, ip: str) -> Place:
        allocatable = self._kubelet.allocatable(node)
        return Place(node=node, ip=ip, home=str(self._home), allocatable=allocatable)
