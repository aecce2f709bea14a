"""Starting containers so that each start happens at most once, and finding them again.

A launch is a folder. Its files, written by ``shim.sh``, or by ``box.sh`` and bubblewrap where
the container has a sandbox, say how far it got:

    log        what the command writes
    claim      the keeper's process; or, if we forbade the start, the word ``fenced``
    started    the command's process
    exit       the exit code
    status     with a sandbox: the command's process id here, then the exit code, as JSON

The keeper starts the command and waits for it: the shim, or bubblewrap in its place. Killed at
any instant, we find a launch without a claim, and then make the claim ourselves: either the
keeper made it first and we take the container over, or the keeper never starts it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import orjson

from hekla.local.nodes import pod_status
from hekla.local.nodes.pod_status import Terminated
from hekla.local.runtimes.processes import Process, reaped

SHIM: Final = Path(__file__).with_name("shim.sh")
BOX: Final = Path(__file__).with_name("box.sh")
_BEGIN: Final = Path(__file__).with_name("begin.sh").read_text()
_FENCED: Final = "fenced"
_PREFIX: Final = "launch-"
_ENV: Final = "/usr/bin/env"
_PATIENCE: Final = 2.0
_PAUSE: Final = 0.01
_SIGNALS: Final = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGCHLD,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


@dataclass(frozen=True, slots=True)
class Launch:
    """One start of a container."""

    folder: Path

    @property
    def log(self) -> Path:
        """What it writes."""
        return self.folder / "log"

    @property
    def boxed(self) -> bool:
        """Whether the container has a sandbox: nothing of it outlives its main process."""
        return (self.folder / "status").exists()

    def keeper(self) -> Process | None:
        """The process that made the claim."""
        return self._process("claim")

    def command(self) -> Process | None:
        """The container's main process, dead or alive."""
        found = self._process("started")
        if found is None or not self.boxed:
            return found
        pid = self._status("child-pid")  # what it calls itself is its number in the sandbox
        return None if pid is None else found._replace(pid=pid)

    def fenced(self) -> bool:
        """Whether it never starts. Makes the claim if nobody has."""
        try:
            with (self.folder / "claim").open("x") as claim:
                claim.write(f"{_FENCED}\n")
        except FileExistsError:
            return self._record("claim") == _FENCED
        return True

    def ended(self) -> Terminated | None:
        """How it ended, if the keeper wrote it down."""
        for name, code in (
            ("exit", self._record("exit")),
            ("status", self._status("exit-code")),
        ):
            if code is not None:
                finished = self._time(name)
                return pod_status.exited(int(code), self.started_at() or finished, finished)
        return None

    def started_at(self) -> datetime | None:
        """When the command started."""
        return self._time("started") if self._record("started") is not None else None

    def _process(self, name: str) -> Process | None:
        record = self._record(name)
        return None if record is None else Process.read(record)

    def not_started(self, now: datetime) -> Terminated:
        """That the sandbox could not be made; bubblewrap says why in the log."""
        try:
            said = self.log.read_text(errors="replace").strip().splitlines()
        except OSError:
            said = []
        why = said[-1].removeprefix("bwrap: ") if said else "the sandbox could not be made"
        return Terminated(128, now, now, "StartError", why)

    def _status(self, key: str) -> int | None:
        """What bubblewrap has written under a key."""
        try:
            lines = (self.folder / "status").read_bytes().splitlines(keepends=True)
        except OSError:
            return None
        for line in lines:
            if line.endswith(b"\n"):
                found: int | None = orjson.loads(line).get(key)
                if found is not None:
                    return found
        return None

    def _record(self, name: str) -> str | None:
        try:
            text = (self.folder / name).read_text()
        except OSError:
            return None
        return text.removesuffix("\n") if text.endswith("\n") else None

    def _time(self, name: str) -> datetime:
        return datetime.fromtimestamp((self.folder / name).stat().st_mtime, UTC)


class ContainerFolder:
    """All launches of one container, and the folder it works in."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def work(self) -> Path:
        """Where the command runs unless it says otherwise; its HOME."""
        return self._path / "work"

    def launches(self) -> list[Launch]:
        """Those that started, or may have, the oldest first."""
        return [launch for launch in self._all() if not launch.fenced()]

    def logs(self) -> list[Path]:
        """The logs of all launches, the oldest first."""
        return [launch.log for launch in self._all() if launch.log.exists()]

    def start(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        cwd: str,
        box: Sequence[str] = (),
        inside: str = "",
    ) -> tuple[Launch, int]:
        """Launch the command; the launch and the keeper's process id, for the caller to reap.

        ``box`` is the command that makes the sandbox, if it has one, and ``inside`` where the
        container's folder is there.

        Raises:
            OSError: the machine does not let us.
        """
        self.work.mkdir(parents=True, exist_ok=True)
        number = 0
        for launch in self._all():
            number = int(launch.folder.name.removeprefix(_PREFIX)) + 1
        launch = Launch(self._path / f"{_PREFIX}{number}")
        launch.folder.mkdir()
        # A shell passes on only variables whose names it could have set itself.
        odd = [f"{name}={value}" for name, value in environment.items() if not _plain(name)]
        words = [_ENV, *odd, *words] if odd else words
        folder = str(launch.folder)
        if box:
            begin = ["/bin/sh", "-c", _BEGIN, "sh", f"{inside}/{launch.folder.name}", cwd]
            words = [str(BOX), folder, *box, *begin, *words]
        else:
            words = [str(SHIM), _setsid(), folder, cwd, *words]
        write = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        pid = os.posix_spawn(
            "/bin/sh",
            ["sh", *words],
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(launch.log), write, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigmask=[],
            setsigdef=_SIGNALS,
        )
        return launch, pid

    def _all(self) -> list[Launch]:
        found = [Launch(folder) for folder in self._path.glob(f"{_PREFIX}*")]
        return sorted(found, key=lambda item: int(item.folder.name.removeprefix(_PREFIX)))


async def ended(launch: Launch, keeper_pid: int | None = None) -> Terminated:
    """How the container ended, once it has; ``keeper_pid`` if the keeper is our child."""
    code = None
    if keeper_pid is not None:
        code = await reaped(keeper_pid)
    else:
        keeper = await _soon(launch.keeper, launch)
        if keeper is not None:
            await keeper.gone()
    found = launch.ended()
    if found is not None:
        return found
    now = datetime.now(UTC)
    command = launch.command()
    if launch.boxed and code is not None:
        started = launch.started_at()
        if started is None:
            return launch.not_started(now)
        return pod_status.exited(code, started, now)  # the disk took no code
    # Somebody killed the keeper: the code is lost, but not whether the command runs.
    if command is not None:
        await command.gone()
        now = datetime.now(UTC)
    why = "the process that waits for the exit code was killed"
    return Terminated(137, launch.started_at() or now, now, pod_status.UNKNOWN, why)


async def command_of(launch: Launch) -> Process | None:
    """The main process, which the keeper may be starting at this instant."""
    return await _soon(launch.command, launch)


async def _soon(read: Callable[[], Process | None], launch: Launch) -> Process | None:
    """What a record says, which may be half written at this instant."""
    loop = asyncio.get_running_loop()
    end = loop.time() + _PATIENCE
    while (found := read()) is None and launch.ended() is None and loop.time() < end:
        await asyncio.sleep(_PAUSE)
    return found


def _setsid() -> str:
    found = shutil.which("setsid")
    if found is None:
        raise FileNotFoundError("setsid (util-linux) is not installed")
    return found


def _plain(name: str) -> bool:
    return name.isascii() and name.isidentifier()
