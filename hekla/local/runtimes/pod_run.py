"""One pod on its node: its volumes, then its init containers in order, then its containers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from hekla.local.kinds.registry import Object
from hekla.local.nodes import pod_status
from hekla.local.nodes.kubelet import Kubelet, PodRef, Report
from hekla.local.nodes.pod_status import Container, Waiting
from hekla.local.runtimes.container_run import CONFIG_RETRY, ContainerRun
from hekla.local.runtimes.environment import ConfigError, Lookup, Place
from hekla.local.runtimes.launches import ContainerFolder
from hekla.local.runtimes.sandbox import Mount
from hekla.local.runtimes.sweeps import Sweeper
from hekla.local.runtimes.volumes import Volumes

VOLUMES: Final = "volumes"
"""The folder, beside those of the containers, that holds the pod's volumes."""

Box = Callable[[list[Mount], Path], list[str]]
"""The command that makes a sandbox with these mounts for a pod with that folder."""


class PodRun:
    """The life of one pod here."""

    def __init__(
        self,
        ref: PodRef,
        pod: Object,
        *,
        kubelet: Kubelet,
        sweeper: Sweeper,
        folder: Path,
        place: Place,
        lookup: Lookup,
        box: Box,
    ) -> None:
        self._ref = ref
        self._pod = pod
        self._kubelet = kubelet
        self._volumes = Volumes(pod, folder / VOLUMES, place, lookup)
        self._states: dict[str, Container] = {}
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._deadline = 0.0

        def run_of(container: Object, policy: str) -> ContainerRun:
            return ContainerRun(
                pod,
                container,
                ContainerFolder(folder / container["name"]),
                policy=policy,
                place=place,
                lookup=lookup,
                mounts=partial(self._volumes.mounts, container),
                boxed=lambda mounts: box(mounts, folder),
                sweeper=sweeper,
                say=self._say,
            )

        spec = pod["spec"]
        # One that fails is tried again, one that succeeds is done, whatever the others do.
        of_inits = "Never" if spec["restartPolicy"] == "Never" else "OnFailure"
        self._inits = [
            (pod_status.is_sidecar(init), run_of(init, init.get("restartPolicy") or of_inits))
            for init in spec.get("initContainers") or []
        ]
        self._mains = [run_of(main, spec["restartPolicy"]) for main in spec["containers"]]

    async def run(self) -> None:
        """Run the containers until none runs or will, reporting all the way."""
        life = asyncio.create_task(self._live())
        changed: asyncio.Task[bool] | None = None
        try:
            while not life.done():
                changed = changed or asyncio.create_task(self._changed.wait())
                both: set[asyncio.Future[Any]] = {changed, life}
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                if changed.done():
                    changed = None
                    self._changed.clear()
                if not life.done():
                    await self._kubelet.report([Report(self._ref, dict(self._states))])
            life.result()
        finally:
            life.cancel()
            if changed is not None:
                changed.cancel()
        await self._kubelet.report([Report(self._ref, dict(self._states), final=True)])

    def stop(self, seconds: float) -> None:
        """Ask all containers to end, and make them after ``seconds``.

        Sidecars are asked when the others have ended.
        """
        self._deadline = asyncio.get_running_loop().time() + seconds
        self._stopping.set()
        for sidecar, init in self._inits:
            if not sidecar:
                init.stop(self._deadline)
        for main in self._mains:
            main.stop(self._deadline)

    async def _live(self) -> None:
        sidecars: list[tuple[ContainerRun, asyncio.Task[Any]]] = []
        try:
            prepared = await self._prepared()
            ready = await self._initialized(sidecars) and prepared
            # A pod that is to end may have containers from before a restart of ours.
            mains = [main for main in self._mains if ready or main.begun]
            await asyncio.gather(*[main.keep() for main in mains])
            await self._end(sidecars)
        finally:
            for _, task in sidecars:
                task.cancel()

    async def _prepared(self) -> bool:
        """Make the volumes, however long it takes; false if the pod ends before."""
        while not self._stopping.is_set():
            try:
                self._volumes.prepare()
            except (ConfigError, OSError) as error:
                wait = Waiting(pod_status.CREATING, str(error))
                for container in self._pod["spec"]["containers"]:
                    self._say(container["name"], Container(wait))
            else:
                return True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CONFIG_RETRY):
                    await self._stopping.wait()
        return False

    async def _initialized(
        self, sidecars: list[tuple[ContainerRun, asyncio.Task[Any]]]
    ) -> bool:
        """Run the init containers one after the other; false if the pod ends with that."""
        for sidecar, init in self._inits:
            if self._stopping.is_set() and not init.begun:
                return False
            if sidecar:
                sidecars.append((init, asyncio.create_task(init.keep())))
                await self._either(init.started)
            else:
                ended = await init.keep()
                if ended is None or ended.exit_code != 0:
                    return False
        return not self._stopping.is_set()

    async def _either(self, event: asyncio.Event) -> None:
        waits = [asyncio.create_task(each.wait()) for each in (event, self._stopping)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def _end(self, sidecars: list[tuple[ContainerRun, asyncio.Task[Any]]]) -> None:
        """End the sidecars, the last that was started first."""
        if not self._stopping.is_set():
            grace = self._pod["spec"]["terminationGracePeriodSeconds"]
            self._deadline = asyncio.get_running_loop().time() + grace
        for sidecar, task in reversed(sidecars):
            sidecar.stop(self._deadline)
            await task

    def _say(self, name: str, state: Container) -> None:
        self._states[name] = state
        self._changed.set()
