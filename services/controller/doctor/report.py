"""The doctor as a program: what to look at, and how to tell what was found."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from hekla import config
from hekla.config import ConfigError, setting
from services.controller.doctor import measuring
from services.controller.doctor.judging import Finding, State


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorConfig:
    """Looks at all that Hekla stands on; exit code 1 if something is wrong."""

    database_url: str = setting(env="HEKLA_DATABASE_URL", default="", secret=True)
    """Where Postgres is: postgresql://…"""

    kubeconfig: str = setting(env="KUBECONFIG", default="")
    """The kubeconfig file; empty takes the pod's own account, or ~/.kube/config."""

    home: str = setting(env="HEKLA_HOME", default="")
    """A folder whose disk is looked at."""

    probes: str = ""
    """Where services serve /readyz: controller=host:port,scheduler=host:port."""

    output: Literal["text", "json"] = "text"
    """How to tell."""


def main(argv: Sequence[str]) -> None:
    """Look, tell, and exit with 1 if something is wrong."""
    try:
        settings = config.load(DoctorConfig, "HEKLA_DOCTOR", os.environ, argv)
        probes = parse_probes(settings.probes)
    except ConfigError as error:
        sys.stderr.write(f"hekla doctor: {error}\n")
        raise SystemExit(1) from None
    findings = list(
        measuring.look(
            database_url=settings.database_url,
            kubeconfig=settings.kubeconfig,
            home=settings.home,
            probes=probes,
        )
    )
    sys.stdout.write(as_json(findings) if settings.output == "json" else as_text(findings))
    if any(finding.state is State.FAIL for finding in findings):
        raise SystemExit(1)


def parse_probes(text: str) -> Mapping[str, str]:
    """Services and where they serve probes.

    Raises:
        ConfigError: ``text`` is not like ``controller=host:port,…``.
    """
    found: dict[str, str] = {}
    for part in text.split(",") if text else ():
        name, sign, where = part.strip().partition("=")
        host, colon, port = where.rpartition(":")
        if not (name and sign and host and colon and port.isascii() and port.isdigit()):
            raise ConfigError([f"--probes: must be like controller=HOST:PORT, is {part!r}"])
        found[name] = where
    return found


def as_json(findings: Sequence[Finding]) -> str:
    """For programs."""
    return json.dumps({"checks": [asdict(finding) for finding in findings]}, indent=4) + "\n"


def as_text(findings: Sequence[Finding]) -> str:
    """A line a finding, and a line for what to do."""
    lines = []
    for finding in findings:
        lines.append(f"{finding.state:4}  {finding.check}: {finding.found}")
        if finding.todo:
            lines.append(f"      → {finding.todo}")
    return "".join(f"{line}\n" for line in lines)
