"""A local stack of the tests' own, driven as a user drives it: by ``hekla`` and the SDK."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from hekla.client import Client
from hekla.client.endpoints import SERVICES
from hekla.domain.errors import DomainError
from hekla.local.stack import up
from hekla.local.stack.endpoints import Home, remembered_ports
from hekla.local.stack.up import Standing
from tests.support.waiting import wait_until

HEKLA: Final = str(Path(sys.executable).parent / "hekla")


class Stack:
    """A home folder, and what runs in it."""

    def __init__(self, home: Path, environ: Mapping[str, str] | None = None) -> None:
        self.home = home
        kept = {name: value for name, value in os.environ.items() if name[:6] != "HEKLA_"}
        self.environ = {**kept, "HEKLA_HOME": str(home), **(environ or {})}

    def run(
        self, *args: str, stdin: str | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run ``hekla``."""
        return subprocess.run(
            [HEKLA, *args],
            env=self.environ,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )

    def ok(self, *args: str, stdin: str | None = None) -> str:
        """Run ``hekla``, which must succeed; return what it printed."""
        done = self.run(*args, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def fails(self, *args: str) -> str:
        """Run ``hekla``, which must fail; return the one line that says why."""
        done = self.run(*args)
        assert done.returncode != 0
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1, done.stderr
        assert "Traceback" not in done.stderr
        return lines[0]

    def client(self) -> Client:
        """The SDK for this stack."""
        return Client(environ=self.environ)

    def units(self) -> Mapping[str, Standing]:
        """What ``hekla status`` tells, by name; nothing while it has nobody to ask."""
        try:
            return {unit.name: unit for unit in up.status(Home(self.home)) or ()}
        except DomainError:
            return {}

    def ports(self) -> Mapping[str, int]:
        """The ports it keeps, by what they are for."""
        return remembered_ports(Home(self.home))

    def processes(self) -> Sequence[int]:
        """Every process with this home in its environment, but for the tests' own."""
        mark = f"HEKLA_HOME={self.home}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    environ = (entry / "environ").read_bytes()
                except OSError:
                    continue
                if mark in environ.split(b"\0"):
                    found.append(int(entry.name))
        return found

    def ready(self) -> bool:
        """Whether all that runs is ready, and the services are there."""
        units = self.units()
        return set(units) >= set(SERVICES) and not any(unit.problem for unit in units.values())

    def kill(self, *names: str, number: int = signal.SIGKILL) -> None:
        """Send a signal to the main processes of these units, if they run."""
        units = self.units()
        for name in names:
            pid = units[name].pid
            if pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    def endpoint(self, name: str) -> str:
        """An address of ``endpoints.json``."""
        found: str = json.loads((self.home / "endpoints.json").read_text())[name]
        return found

    def log_lines(self, prefix: str) -> Iterator[Mapping[str, Any]]:
        """JSON lines of the logs whose names begin so."""
        for path in sorted((self.home / "logs").glob(f"{prefix}*.log*")):
            for line in path.read_text(errors="replace").splitlines():
                if line.startswith("{"):
                    yield json.loads(line)

    def phases(self) -> Counter[str]:
        """How many jobs are in each phase; empty while nobody answers."""
        try:
            with self.client() as client:
                jobs = client.jobs.list().items
        except DomainError:
            return Counter()
        return Counter(job.status.state.phase or "" for job in jobs)

    def wait_for_phase(self, phase: str, count: int, *, timeout: float) -> None:
        """Wait until so many jobs are in a phase."""
        wait_until(
            lambda: self.phases()[phase] >= count,
            timeout=timeout,
            what=f"{count} jobs to be {phase}, now {dict(self.phases())}",
        )


@contextmanager
def running_stack(
    home: Path,
    *options: str,
    environ: Mapping[str, str] | None = None,
    crds: bool = False,
) -> Iterator[Stack]:
    """Bring a stack up, and take it down at the end of the block.

    Without custom resources, unless they are asked for.
    """
    stack = Stack(home, environ)
    stack.ok("up", "--detach", "--crds" if crds else "--no-crds", *options)
    try:
        yield stack
    finally:
        stack.run("down")


WITNESS: Final = (
    'echo "$HEKLA_JOB $HEKLA_TASK $HEKLA_INDEX $HEKLA_RUN $HEKLA_POD_UID" >> "$WITNESS";'
)
"""Shell: appends who runs to a file outside of everything that is ours."""


def witness_job(
    name: str, witness: Path, *, seconds: float, replicas: int = 1, cpu: str = "100m"
) -> str:
    """A manifest whose pods say that they ran, and take some time."""
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sh", "-c", f"{WITNESS} sleep {seconds}"],
        "env": [{"name": "WITNESS", "value": str(witness)}],
        "resources": {"requests": {"cpu": cpu}},
    }
    task = {
        "name": "main",
        "replicas": replicas,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 1,
                "containers": [container],
            }
        },
    }
    return json.dumps(
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"minAvailable": replicas, "tasks": [task]},
        }
    )


def witnessed(witness: Path) -> Sequence[tuple[str, ...]]:
    """What pods wrote: job, task, index, run, pod uid."""
    if not witness.exists():
        return []
    return [tuple(line.split()) for line in witness.read_text().splitlines()]
