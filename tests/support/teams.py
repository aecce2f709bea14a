"""One file: a queue, a priority, templates, a flow and a job; from ``apply`` to ``delete``."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Final

from tests.support.kubectl import Kubectl
from tests.support.waiting import wait_until

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
    # Admission completes a job's tasks, and kubectl puts its own list in their place.
    told = {line for line in again if not line.startswith("job.batch.")}
    assert told == {f"{made.format(name=name)} unchanged" for made in MADE[:-1]}, again
    kubectl.ok("delete", "-f", "-", timeout, stdin=text)
    # The jobs of a flow end after it.
    wait_until(lambda: not _left(kubectl, name), timeout=PATIENCE, what="nothing to be left")
    return time.monotonic() - began


def _left(kubectl: Kubectl, name: str) -> list[str]:
    found = kubectl.names("queue,priorityclass,vcjob,jobflow,jobtemplate,podgroup,pods")
    return [one for one in found if re.search(rf"/{name}(-|$)", one)]
