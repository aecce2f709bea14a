"""One file: a queue, a priority, templates, a flow and a job; from ``apply`` to ``delete``."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Final

from tests.support.kubectl import Kubectl

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "kubectl" / "team.yaml"
PATIENCE: Final = 60
MADE: Final = (
    "queue.scheduling.volcano.sh/{name}",
    "priorityclass.scheduling.k8s.io/{name}-urgent",
    "jobtemplate.flow.volcano.sh/{name}-prepare",
    "jobtemplate.flow.volcano.sh/{name}-train",
    "jobflow.flow.volcano.sh/{name}-pipeline",
    "job.batch.volcano.sh/{name}-report",
)
"""What kubectl calls its objects."""
_PHASE: Final = "--for=jsonpath={.status.state.phase}="


def manifest(name: str) -> str:
    """The example, under another name."""
    return re.sub(r"\bteam\b", name, EXAMPLE.read_text())


def play(kubectl: Kubectl, name: str) -> float:
    """Apply it, see all of it through, and delete it; return how many seconds that took.

    Raises:
        AssertionError: something is not as it should be.
    """
    began = time.monotonic()
    text, timeout = manifest(name), f"--timeout={PATIENCE}s"
    applied = kubectl.ok("apply", "-f", "-", stdin=text).splitlines()
    assert applied == [f"{made.format(name=name)} created" for made in MADE], applied
    kubectl.ok("wait", f"{_PHASE}Completed", f"vcjob/{name}-report", timeout)
    kubectl.ok("wait", f"{_PHASE}Succeed", f"jobflow/{name}-pipeline", timeout)
    again = kubectl.ok("apply", "-f", "-", stdin=text).splitlines()
    assert again == [f"{made.format(name=name)} unchanged" for made in MADE], again
    kubectl.ok("delete", "-f", "-", timeout, stdin=text)
    left = kubectl.names("queue,priorityclass,vcjob,jobflow,jobtemplate,podgroup,pods")
    mine = [found for found in left if re.search(rf"/{name}(-|$)", found)]
    assert not mine, f"left: {mine}"
    return time.monotonic() - began
