"""Whether what ``hekla up`` runs is ready, as seen from outside: a port and ``/readyz``."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hekla.local.stack import plan
from hekla.local.stack.endpoints import LOOPBACK, Home
from hekla.local.stack.postgres import EmbeddedPostgres
from hekla.local.supervisor.unit import State

TIMEOUT: Final = 2.0


def why_not(unit: Mapping[str, Any], home: Home, ports: Mapping[str, int]) -> str | None:
    """Why a unit of the supervisor's status is not ready, or None if it is."""
    name, state = str(unit["name"]), unit["state"]
    if state == State.DONE:
        return None
    if unit["once"]:
        return "under way" if state == State.RUNNING else str(unit["last_exit"] or "waits")
    if state != State.RUNNING:
        return _told(unit)
    if name == plan.POSTGRES:
        return None if EmbeddedPostgres(home.postgres).ready() else "does not answer yet"
    purpose = plan.KUBERNETES if name == plan.CLUSTER else plan.http_port(name)
    if name == plan.CLUSTER and not plan.kubeconfig(home).exists():
        return "starting"
    return _probe(ports[purpose]) if purpose in ports else None


def _told(unit: Mapping[str, Any]) -> str:
    if unit["state"] == State.STOPPED:
        return "stopped by request"
    if unit["state"] == State.BACKOFF:
        return f"{unit['last_exit']}, starts again in {unit['retry_in']:.0f} s"
    return str(unit["state"]).lower()


def _probe(port: int) -> str | None:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=TIMEOUT)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        body = answer.read(65536)
    except (OSError, http.client.HTTPException):
        return "does not answer yet"
    finally:
        connection.close()
    return None if answer.status == 200 else _reasons(body)


def _reasons(body: bytes) -> str:
    try:
        reasons = json.loads(body)["reasons"]
        return "; ".join(f"{check}: {reason}" for check, reason in reasons.items())
    except (ValueError, KeyError, TypeError, AttributeError):
        return body.decode(errors="replace").strip() or "not ready"


def last_words(log: Path) -> str:
    """The last line of a log, for people: the message, where the line is JSON."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 16384))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    line = next((line.strip() for line in reversed(lines) if line.strip()), "")
    try:
        entry = json.loads(line)
        words = entry["message"]
        trace = str(entry.get("exception") or "").strip().splitlines()
    except (ValueError, KeyError, TypeError, AttributeError):
        return line
    return f"{words}: {trace[-1]}" if trace else str(words)
