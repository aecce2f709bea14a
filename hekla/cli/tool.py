"""Tools of the services that the command line runs as programs: it imports no service."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hekla.client import endpoints
from hekla.client.endpoints import SERVICES
from hekla.local.stack import plan
from hekla.local.stack.endpoints import LOOPBACK, Home, remembered_ports

DATABASE: Final = "HEKLA_DATABASE_URL"
KUBECONFIG: Final = "KUBECONFIG"


@dataclass(frozen=True, slots=True)
class Installation:
    """Where the Hekla that is meant has its parts."""

    environ: Mapping[str, str]
    local: bool
    """It is the stack of a home folder."""
    probes: Mapping[str, str]
    """Where services serve ``/readyz``."""


def installation(home: Home, environ: Mapping[str, str]) -> Installation:
    """The stack of the home folder, unless the environment names another.

    Raises:
        InvalidError: what ``hekla up`` wrote is of no use.
    """
    kept = dict(environ)
    found = endpoints.load(home.folder)
    if found is None or environ.get("HEKLA_CONTROLLER"):
        return Installation(kept, local=False, probes={})
    kept[endpoints.HOME_VARIABLE] = str(home.folder)
    kept[KUBECONFIG] = str(plan.kubeconfig(home))
    database = found.get("database_url")
    if isinstance(database, str):
        kept[DATABASE] = database
    ports = remembered_ports(home)
    probes = {
        name.removesuffix("-http"): f"{LOOPBACK}:{port}"
        for name, port in ports.items()
        if name.endswith("-http") and name.startswith(SERVICES)
    }
    return Installation(kept, local=True, probes=probes)


def command(service: str, tool: str, *args: str) -> Sequence[str]:
    """How to run a tool of a service's."""
    return (sys.executable, "-m", f"services.{service}", tool, *args)


def run(found: Installation, service: str, tool: str, *args: str) -> int:
    """Run a tool, which tells by itself; give its exit code."""
    words = command(service, tool, *args)
    return subprocess.run(words, env=dict(found.environ), check=False).returncode


def ask(
    found: Installation, service: str, tool: str, *args: str
) -> subprocess.CompletedProcess[str]:
    """Run a tool and keep what it prints."""
    return subprocess.run(
        command(service, tool, *args),
        env=dict(found.environ),
        check=False,
        capture_output=True,
        text=True,
    )
