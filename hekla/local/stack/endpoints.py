"""The home folder: where each thing lies in it, and which ports its services listen on.

Ports are chosen once and kept in ``endpoints.json``, so that they outlive restarts. They are
taken from below the range the kernel gives to outgoing connections, so that none of those
sits on one while its service is down.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hekla.client.endpoints import load
from hekla.domain.errors import InvalidError, PreconditionError, UnavailableError

LOOPBACK: Final = "127.0.0.1"
FIRST_PORT: Final = 20000
LAST_PORT: Final = 31999


@dataclass(frozen=True, slots=True)
class Home:
    """A folder with everything local in it."""

    folder: Path

    @property
    def endpoints(self) -> Path:
        """Addresses, for the command line and the SDK."""
        return self.folder / "endpoints.json"

    @property
    def postgres(self) -> Path:
        """The embedded Postgres' folder."""
        return self.folder / "postgres"

    @property
    def cluster(self) -> Path:
        """The local cluster's folder."""
        return self.folder / "cluster"

    @property
    def kubeconfig(self) -> Path:
        """How to reach the local cluster."""
        return self.folder / "kubeconfig"

    @property
    def logs(self) -> Path:
        """One file a unit."""
        return self.folder / "logs"

    @property
    def run(self) -> Path:
        """What is of use only while the supervisor runs."""
        return self.folder / "run"

    def log(self, unit: str) -> Path:
        """Where a unit's output goes."""
        return self.logs / f"{unit}.log"

    def make(self) -> None:
        """Make the folders, for their owner only.

        Raises:
            PreconditionError: that is not possible; the message says why.
        """
        try:
            for folder in (self.folder, self.logs, self.run, self.cluster):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            probe = self.run / ".probe"
            probe.touch()
            probe.unlink()
        except FileExistsError as error:
            raise PreconditionError(f"{error.filename} is in the way: not a folder") from error
        except OSError as error:
            where = error.filename or self.folder
            raise PreconditionError(f"{where} cannot be used: {error.strerror}") from error


def write_private(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a JSON file in one step, readable by its owner only."""
    fresh = path.with_suffix(".new")
    with contextlib.suppress(FileNotFoundError):
        fresh.unlink()
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        json.dump(content, out, indent=2)
        out.write("\n")
    fresh.replace(path)


def remembered_ports(home: Home) -> Mapping[str, int]:
    """The ports ``endpoints.json`` keeps, by what they are for; none if it is unusable."""
    try:
        kept = (load(home.folder) or {}).get("ports", {})
    except InvalidError:
        return {}
    if not isinstance(kept, dict):
        return {}
    return {
        str(purpose): port
        for purpose, port in kept.items()
        if isinstance(port, int) and 0 < port < 65536
    }


def free(port: int) -> bool:
    """Whether nobody listens on a loopback port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do; without it the last connections of a server that ended are in the way.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _candidates(home: Home) -> Iterator[int]:
    """Ports in an order of the home's own, so that homes seldom meet."""
    digest = hashlib.sha256(os.fsencode(home.folder)).digest()
    span = LAST_PORT - FIRST_PORT + 1
    start = int.from_bytes(digest[:4]) % span
    return (FIRST_PORT + (start + step) % span for step in range(span))


def choose_ports(
    home: Home, purposes: Iterable[str], wanted: Mapping[str, int]
) -> Mapping[str, int]:
    """A free port for each purpose: the one asked for, else the one kept, else a new one.

    Raises:
        UnavailableError: a port that was asked for is in use.
    """
    kept = remembered_ports(home)
    chosen: dict[str, int] = {}
    rest = _candidates(home)
    for purpose in sorted(purposes, key=lambda purpose: purpose not in wanted):
        if purpose in wanted:
            port = wanted[purpose]
            if port in chosen.values() or not free(port):
                raise UnavailableError(f"port {port} for {purpose} is in use")
            chosen[purpose] = port
            continue
        old = kept.get(purpose)
        if old is not None and old not in chosen.values() and free(old):
            chosen[purpose] = old
            continue
        found = next(
            (
                p
                for p in rest
                if p not in chosen.values() and p not in kept.values() and free(p)
            ),
            None,
        )
        if found is None:
            raise UnavailableError(f"no port from {FIRST_PORT} to {LAST_PORT} is free")
        chosen[purpose] = found
    return chosen
