"""``make soak``: the same file by ``kubectl apply``, again and again on fresh names.

One that fails is told with its message and what kubectl shows of it; the others go on. The exit
code is 1 if there was any.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import click

from tests.support import teams
from tests.support.kubectl import OURS, Kubectl
from tests.support.stack import running_stack


def main() -> int:
    """Run as often as is asked for."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--beside", type=int, default=3, help="rounds at once")
    options = parser.parse_args()
    began, failed, seconds = time.monotonic(), 0, []
    with tempfile.TemporaryDirectory(prefix="hekla-soak-") as folder:
        click.echo(f"starting a stack for {options.rounds} rounds, {options.beside} at once")
        with running_stack(Path(folder) / "home", crds=True) as stack:
            kubectl = Kubectl(OURS, stack.home / "kubeconfig", Path(folder) / "kubectl")
            with ThreadPoolExecutor(options.beside) as threads:
                rounds = [
                    threads.submit(teams.play, kubectl, f"soak{number}")
                    for number in range(options.rounds)
                ]
                for done, one in enumerate(as_completed(rounds), 1):
                    try:
                        seconds.append(one.result())
                        said = f"{seconds[-1]:.1f} s"
                    except (AssertionError, subprocess.TimeoutExpired) as error:
                        failed += 1
                        said = f"FAILED: {error}"
                    spent = time.monotonic() - began
                    click.echo(f"{done:4}/{options.rounds} after {spent:5.0f} s: {said}")
    if seconds:
        seconds.sort()
        click.echo(f"median {seconds[len(seconds) // 2]:.1f} s, longest {seconds[-1]:.1f} s")
    click.echo(f"{options.rounds - failed} of {options.rounds} went well")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
