"""One pod on its node: a task for each container, and one that reports what they do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from hekla.local import environment, launches, pod_status
from hekla.local.environment import ConfigError, Lookup, Place
from hekla.local.kubelet import Kubelet, PodRef, Report
from hekla.local.launches import ContainerFolder, Launch
from hekla.local.pod_status import Container, Running, Terminated, Waiting
from hekla.local.registry import Object
from hekla.local.sweeps import Sweeper

_BACKOFF_FIRST: Final = 1.0
_BACKOFF_LONGEST: Final = 60.0
_CONFIG_RETRY: Final = 1.0
_NO_IMAGES: Final = "the local cluster has no images: give the container a command"


class _StartError(Exception):
    """The command cannot be run, now or later."""


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
        place: Callable[[str], Place],
        lookup: Lookup,
    ) -> None:
        self._ref = ref
        self._pod = pod
        self._kubelet = kubelet
        self._sweeper = sweeper
        self._folder = folder
        self._place = place
        self._lookup = lookup
        self._states: dict[str, Container] = {}
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._deadline = 0.0
        self._running: dict[str, _Stopper] = {}

    async def run(self) -> None:
        """Run the containers until none runs or will, reporting all the way."""
        containers = self._pod["spec"]["containers"]
        keepers = asyncio.gather(*[self._keep(container) for container in containers])
        changed: asyncio.Task[bool] | None = None
        try:
            while not keepers.done():
                changed = changed or asyncio.create_task(self._changed.wait())
                both: set[asyncio.Future[Any]] = {changed, keepers}
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                if changed.done():
                    changed = None
                    self._changed.clear()
                if not keepers.done():
                    await self._kubelet.report([Report(self._ref, dict(self._states))])
            keepers.result()
        finally:
            keepers.cancel()
            if changed is not None:
                changed.cancel()
        await self._kubelet.report([Report(self._ref, dict(self._states), final=True)])

    def stop(self, seconds: float) -> None:
        """Ask all containers to end, and make them after ``seconds``."""
        self._deadline = asyncio.get_running_loop().time() + seconds
        self._stopping.set()
        for stopper in self._running.values():
            stopper.stop(self._deadline)

    async def _keep(self, container: Object) -> None:
        """Run one container, again and again if its pod says so."""
        name = container["name"]
        policy = self._pod["spec"]["restartPolicy"]
        folder = ContainerFolder(self._folder / name)
        state, launch, pid = self._found(container, folder), None, None
        if isinstance(state.state, Running):
            launch = folder.launches()[-1]
        while True:
            if launch is None and not isinstance(state.state, Terminated):
                state, launch, pid = await self._start(container, folder, state)
            if launch is not None:
                self._say(name, state)
                ended = await self._until_ended(name, launch, pid)
                state, launch = Container(ended, state.last, state.restarts), None
            assert isinstance(state.state, Terminated)
            if self._stopping.is_set() or not pod_status.restarts(policy, state.state):
                break
            state = await self._back_off(name, state, state.state)
            if self._stopping.is_set():
                break
        self._say(name, state)

    def _found(self, container: Object, folder: ContainerFolder) -> Container:
        """Where the container stands when this process begins to look after it."""
        known = folder.launches()
        if not known:
            told = _told(self._pod, container["name"])
            if told.get("state", {}).keys() & {"running", "terminated"}:
                # Its folder is gone, and all that ran with it.
                return Container(pod_status.lost(_now()), None, told.get("restartCount", 0))
            return Container()
        last = known[-2].ended() if len(known) > 1 else None
        state = known[-1].ended() or Running(known[-1].started_at() or _now())
        return Container(state, last, len(known) - 1)

    async def _start(
        self, container: Object, folder: ContainerFolder, state: Container
    ) -> tuple[Container, Launch | None, int | None]:
        """Start the container, or find that it never will; a wait shows in its status."""
        name, last, restarts = container["name"], state.last, state.restarts
        while not self._stopping.is_set():
            try:
                if not container.get("command"):
                    self._say(
                        name, Container(Waiting("ErrImagePull", _NO_IMAGES), last, restarts)
                    )
                    await self._stopping.wait()
                    break
                launch, pid = self._launch(container, folder)
            except ConfigError as error:
                wait = Waiting("CreateContainerConfigError", str(error))
            except OSError as error:
                wait = Waiting("CreateContainerError", str(error))
            except _StartError as error:
                now = _now()
                failed = Terminated(127, now, now, "StartError", str(error))
                return Container(failed, last, restarts), None, None
            else:
                return Container(Running(_now()), last, restarts), launch, pid
            self._say(name, Container(wait, last, restarts))
            await self._pause(_CONFIG_RETRY)
        return Container(last or pod_status.lost(_now()), None, restarts), None, None

    def _launch(self, container: Object, folder: ContainerFolder) -> tuple[Launch, int]:
        if self._pod["spec"].get("initContainers"):
            raise _StartError("the local cluster does not run init containers yet")
        place = self._place(str(folder.work))
        variables = environment.build(self._pod, container, place, self._lookup)
        words = environment.words(container, variables)
        cwd = container.get("workingDir") or place.work
        if cwd != place.work and not os.path.isdir(cwd):  # noqa: PTH112 - a word, not a path
            raise _StartError(f"workingDir {cwd!r} is no folder of this machine")
        if not _runnable(words[0], variables["PATH"], cwd):
            raise _StartError(f"exec: {words[0]!r}: executable file not found")
        return folder.start(words, variables, cwd)

    async def _until_ended(self, name: str, launch: Launch, pid: int | None) -> Terminated:
        stopper = self._running[name] = _Stopper(launch)
        if self._stopping.is_set():
            stopper.stop(self._deadline)
        try:
            ended = await launches.ended(launch, pid)
        finally:
            del self._running[name]
            stopper.close()
        # What it leaves behind would be gone with a real container.
        await self._sweeper.sweep(self._ref.uid, name)
        return ended

    async def _back_off(self, name: str, state: Container, ended: Terminated) -> Container:
        seconds = min(_BACKOFF_FIRST * 2.0**state.restarts, _BACKOFF_LONGEST)
        why = f"back-off {seconds:.0f}s restarting failed container={name}"
        passed = (_now() - ended.finished_at).total_seconds()
        waiting = Container(Waiting("CrashLoopBackOff", why), ended, state.restarts)
        self._say(name, waiting)
        await self._pause(seconds - passed)
        if self._stopping.is_set():
            return Container(ended, state.last, state.restarts)
        return Container(Waiting(), ended, state.restarts + 1)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._stopping.wait()

    def _say(self, name: str, state: Container) -> None:
        self._states[name] = state
        self._changed.set()


class _Stopper:
    """Ends one running container: asks once, then makes it."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._asking: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._killing: asyncio.Task[None] | None = None

    def stop(self, deadline: float) -> None:
        """SIGTERM now, SIGKILL at ``deadline``."""
        if self._asking is None:
            self._asking = asyncio.create_task(self._send(signal.SIGTERM))
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(deadline, self._kill)

    def close(self) -> None:
        """It has ended."""
        if self._timer is not None:
            self._timer.cancel()
        for task in (self._asking, self._killing):
            if task is not None:
                task.cancel()

    def _kill(self) -> None:
        self._killing = asyncio.create_task(self._send(signal.SIGKILL))

    async def _send(self, number: signal.Signals) -> None:
        command = await launches.command_of(self._launch)
        if command is not None:
            command.send(number)


def _runnable(word: str, path: str, cwd: str) -> bool:
    if "/" in word:
        file = os.path.join(cwd, word)  # noqa: PTH118 - as exec does it
        return os.path.isfile(file) and os.access(file, os.X_OK)  # noqa: PTH113
    return shutil.which(word, path=path) is not None


def _told(pod: Object, name: str) -> Mapping[str, Any]:
    """What the pod's status says of a container."""
    for status in pod.get("status", {}).get("containerStatuses", []):
        if status.get("name") == name:
            found: dict[str, Any] = status
            return found
    return {}


def _now() -> datetime:
    return datetime.now(UTC)
