"""``make soak``: the same file by ``kubectl apply``, again and again on fresh names.

One that fails is told with its message and what both doors show of it; the others go on. The
exit code is 1 if there was any, and then the stack's folder is kept.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import click

from tests.support import teams
from tests.support.kubectl import OURS, Kubectl
from tests.support.stack import Stack, running_stack


def main() -> int:
    """Run as often as is asked for."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--beside", type=int, default=3, help="rounds at once")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="hekla-soak-"))
    click.echo(f"starting a stack for {options.rounds} rounds, {options.beside} at once")
    with running_stack(folder / "home", crds=True) as stack:
        kubectl = Kubectl(OURS, stack.home / "kubeconfig", folder / "kubectl")
        failed = _soaked(stack, kubectl, rounds=options.rounds, beside=options.beside)
    click.echo(f"{options.rounds - failed} of {options.rounds} went well")
    if failed:
        click.echo(f"kept {folder}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def _soaked(stack: Stack, kubectl: Kubectl, *, rounds: int, beside: int) -> int:
    """How many rounds failed."""
    began, failed, seconds = time.monotonic(), 0, []
    with ThreadPoolExecutor(beside) as threads:
        started = {
            threads.submit(teams.play, kubectl, name): name
            for name in (f"soak{number}" for number in range(rounds))
        }
        for done, one in enumerate(as_completed(started), 1):
            try:
                seconds.append(one.result())
                said = f"{seconds[-1]:.1f} s"
            except (AssertionError, subprocess.TimeoutExpired) as error:
                failed += 1
                said = f"FAILED: {error}\n{_shown(stack, kubectl, started[one])}"
            spent = time.monotonic() - began
            click.echo(f"{done:4}/{rounds} after {spent:5.0f} s: {said}")
    if seconds:
        seconds.sort()
        click.echo(f"median {seconds[len(seconds) // 2]:.1f} s, longest {seconds[-1]:.1f} s")
    return failed


def _shown(stack: Stack, kubectl: Kubectl, name: str) -> str:
    """What both doors show of a round."""
    flow = f"{name}-pipeline"
    words = ("get", "queue,vcjob,jobflow,podgroup,pods", "-o", "wide")
    return "\n".join(
        (
            kubectl.run(*words).stdout,
            kubectl.run("get", "jobflow", flow, "-o", "yaml").stdout,
            stack.run("jobflow", "get", flow, "-o", "yaml").stdout,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
