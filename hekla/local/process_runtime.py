"""Containers as processes of this machine, each a session of its own.

They live on when this process ends, however it ends, and are taken over by the next.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Collection
from functools import partial
from pathlib import Path

from hekla.local.environment import Place
from hekla.local.kubelet import Kubelet, PodRef
from hekla.local.pod_run import PodRun
from hekla.local.registry import Kind, Object
from hekla.local.storage import Storage
from hekla.local.sweeps import Sweeper


class ProcessRuntime:
    """The pods that run as processes."""

    def __init__(self, kubelet: Kubelet, storage: Storage, *, folder: Path, home: Path) -> None:
        self._kubelet = kubelet
        self._storage = storage
        self._folder = folder
        self._home = home
        self._sweeper = Sweeper(kubelet.tasks)
        self._runs: dict[str, tuple[PodRun, asyncio.Task[None]]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)

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
            place=partial(self._place, pod["spec"]["nodeName"], ip),
            lookup=partial(self._look_up, ref.namespace),
        )
        task = self._kubelet.tasks.spawn(run.run(), name=f"pod {ref.namespace}/{ref.name}")
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

    def _place(self, node: str, ip: str, work: str) -> Place:
        return Place(
            node=node,
            ip=ip,
            home=str(self._home),
            work=work,
            allocatable=self._kubelet.allocatable(node),
        )

    def _look_up(self, namespace: str, kind: Kind, name: str) -> Object | None:
        entry = self._storage.get(kind, namespace, name)
        return None if entry is None else entry.object()
