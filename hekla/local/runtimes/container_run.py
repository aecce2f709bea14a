"""One container on its node: it is started, watched, started again, and ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from hekla.local.kinds.registry import Object
from hekla.local.nodes import pod_status
from hekla.local.nodes.pod_status import Container, Running, Terminated, Waiting
from hekla.local.runtimes import environment, launches, sandbox
from hekla.local.runtimes.environment import ConfigError, Lookup, Place
from hekla.local.runtimes.launches import ContainerFolder, Launch
from hekla.local.runtimes.sandbox import Mount, MountError
from hekla.local.runtimes.sweeps import Sweeper

CONFIG_RETRY: Final = 1.0
"""Seconds between looks for what a container needs."""
_NO_IMAGES: Final = "the local cluster has no images: give the container a command"

Boxed = Callable[[list[Mount]], list[str]]
"""The command that makes a sandbox with these mounts; empty if there are no sandboxes."""


class StartError(Exception):
    """The command cannot be run, now or later."""


class ContainerRun:
    """The life of one container here."""

    def __init__(
        self,
        pod: Object,
        container: Object,
        folder: ContainerFolder,
        *,
        policy: str,
        place: Place,
        lookup: Lookup,
        mounts: Callable[[Mapping[str, str]], list[Mount]],
        boxed: Boxed,
        sweeper: Sweeper,
        say: Callable[[str, Container], None],
    ) -> None:
        self._pod = pod
        self._container = container
        self._folder = folder
        self._policy = policy
        self._place = place
        self._lookup = lookup
        self._mounts = mounts
        self._boxed = boxed
        self._sweeper = sweeper
        self._tell = say
        self._stopping = asyncio.Event()
        self._deadline = 0.0
        self._stopper: _Stopper | None = None
        self.started = asyncio.Event()
        """Set once it runs, or once it is clear that it never will."""

    @property
    def begun(self) -> bool:
        """Whether it has ever started, by this process or one before."""
        return bool(self._folder.launches())

    def stop(self, deadline: float) -> None:
        """Ask it to end, and make it at ``deadline``; told again, if that is sooner."""
        self._deadline = deadline
        self._stopping.set()
        if self._stopper is not None:
            self._stopper.stop(deadline)

    async def keep(self) -> Terminated | None:
        """Run it, again and again if its policy says so; how it ended, if it ever ran."""
        try:
            return await self._keep()
        finally:
            self.started.set()

    async def _keep(self) -> Terminated | None:
        state, launch, pid = self._found(), None, None
        if isinstance(state.state, Running):
            launch = self._folder.launches()[-1]
        while True:
            if launch is None and not isinstance(state.state, Terminated):
                state, launch, pid = await self._start(state)
            if launch is not None:
                self._say(state)
                self.started.set()
                ended = await self._until_ended(launch, pid)
                state, launch = Container(ended, state.last, state.restarts), None
            if not isinstance(state.state, Terminated):
                break  # stopped before it ever ran
            self._say(state)
            if self._stopping.is_set() or not pod_status.restarts(self._policy, state.state):
                break
            state = await self._back_off(state, state.state)
            if self._stopping.is_set():
                break
        self._say(state)
        return state.state if isinstance(state.state, Terminated) else None

    def _found(self) -> Container:
        """Where the container stands when this process begins to look after it."""
        known = self._folder.launches()
        if not known:
            told = _told(self._pod, self._container["name"])
            if told.get("state", {}).keys() & {"running", "terminated"}:
                # Its folder is gone, and all that ran with it.
                return Container(pod_status.lost(_now()), None, told.get("restartCount", 0))
            return Container()
        last = known[-2].ended() if len(known) > 1 else None
        state = known[-1].ended() or Running(known[-1].started_at() or _now())
        return Container(state, last, len(known) - 1)

    async def _start(self, state: Container) -> tuple[Container, Launch | None, int | None]:
        """Start the container, or find that it never will; a wait shows in its status."""
        last, restarts = state.last, state.restarts
        wait = Waiting()
        while not self._stopping.is_set():
            try:
                if not self._container.get("command"):
                    wait = Waiting("ErrImagePull", _NO_IMAGES)
                    self._say(Container(wait, last, restarts))
                    self.started.set()
                    await self._stopping.wait()
                    break
                launch, pid = self._launch()
            except ConfigError as error:
                wait = Waiting("CreateContainerConfigError", str(error))
            except (OSError, ValueError) as error:  # such as a NUL in a variable
                wait = Waiting("CreateContainerError", str(error))
            except (StartError, MountError) as error:
                now = _now()
                failed = Terminated(127, now, now, "StartError", str(error))
                return Container(failed, last, restarts), None, None
            else:
                return Container(Running(_now()), last, restarts), launch, pid
            self._say(Container(wait, last, restarts))
            await self._pause(CONFIG_RETRY)
        return Container(last or pod_status.lost(_now()), None, restarts), None, None

    def _launch(self) -> tuple[Launch, int]:
        container, work = self._container, str(self._folder.work)
        variables = environment.build(self._pod, container, self._place, work, self._lookup)
        mounts = self._mounts(variables)
        box = self._boxed(mounts)
        inside = f"{sandbox.POD}/{container['name']}"
        if box and sandbox.hidden(work, mounts):
            work = f"{inside}/work"
            variables = environment.build(self._pod, container, self._place, work, self._lookup)
        seen = {
            mount["name"]: found.target if box else found.source
            for mount, found in zip(container.get("volumeMounts") or [], mounts, strict=True)
        }
        variables |= environment.volumes(seen)
        words = environment.words(container, variables)
        cwd = container.get("workingDir") or work

        def here(path: str) -> str:
            ours = Mount(str(self._folder.work.parent), inside)
            return sandbox.on_machine(path, [*mounts, ours]) if box else path

        if cwd != work and not os.path.isdir(here(cwd)):  # noqa: PTH112 - a word, not a path
            raise StartError(f"workingDir {cwd!r} is no folder of this machine")
        if not _runnable(words[0], variables["PATH"], cwd, here):
            raise StartError(f"exec: {words[0]!r}: executable file not found")
        return self._folder.start(words, variables, cwd, box, inside)

    async def _until_ended(self, launch: Launch, pid: int | None) -> Terminated:
        stopper = self._stopper = _Stopper(launch)
        if self._stopping.is_set():
            stopper.stop(self._deadline)
        try:
            ended = await launches.ended(launch, pid)
        finally:
            self._stopper = None
            stopper.close()
        if not (launch.boxed and launch.ended()):
            # What it leaves behind would be gone with a real container.
            await self._sweeper.sweep(self._pod["metadata"]["uid"], self._container["name"])
        return ended

    async def _back_off(self, state: Container, ended: Terminated) -> Container:
        name = self._container["name"]
        runs = [found.ended() for found in self._folder.launches()]
        seconds = pod_status.back_off([run for run in runs if run is not None])
        why = f"back-off {seconds:.0f}s restarting failed container={name}"
        passed = (_now() - ended.finished_at).total_seconds()
        self._say(Container(Waiting("CrashLoopBackOff", why), ended, state.restarts))
        await self._pause(seconds - passed)
        if self._stopping.is_set():
            return Container(ended, state.last, state.restarts)
        return Container(Waiting(), ended, state.restarts + 1)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._stopping.wait()

    def _say(self, state: Container) -> None:
        self._tell(self._container["name"], state)


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


def _runnable(word: str, path: str, cwd: str, here: Callable[[str], str]) -> bool:
    if "/" in word:
        file = here(os.path.join(cwd, word))  # noqa: PTH118 - as exec does it
        return os.path.isfile(file) and os.access(file, os.X_OK)  # noqa: PTH113
    folders = os.pathsep.join(here(folder) for folder in path.split(os.pathsep))
    return shutil.which(word, path=folders) is not None


def _told(pod: Object, name: str) -> Mapping[str, Any]:
    """What the pod's status says of a container."""
    for field in ("initContainerStatuses", "containerStatuses"):
        for status in pod.get("status", {}).get(field, []):
            if status.get("name") == name:
                found: dict[str, Any] = status
                return found
    return {}


def _now() -> datetime:
    return datetime.now(UTC)
