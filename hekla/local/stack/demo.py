"""``make demo``: jobs and a flow through everything, as a user runs them, in a home of its own.

It uses the installed ``hekla`` command and the SDK, shows what happens while it happens, checks
phases and order against what the pods themselves wrote, and leaves nothing behind. With
``DEMO_WITHOUT=webhook`` (or controller, scheduler, flow) that service is stopped first, and
the demo must fail and name it. ``DEMO_KEEP=1`` keeps the folder.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
import yaml

from hekla.api.job import Job
from hekla.client import Attempt, Client
from hekla.client.endpoints import HOME_VARIABLE
from hekla.domain.errors import DomainError
from hekla.domain.phases import JobPhase
from hekla.local.stack import up
from hekla.local.stack.demo_steps import Steps, changes_of
from hekla.local.stack.endpoints import Home

EXAMPLES: Final = Path(__file__).parents[3] / "examples"
COMMAND: Final = Path(sys.executable).parent / "hekla"
KUBECTL: Final = Path(sys.executable).parent / "kubectl"
"""A development dependency."""
PATIENCE: Final = 15.0
"""Seconds that may pass between two steps of a job."""
FLOW_PATIENCE: Final = 30.0
"""Seconds that the flow may take."""
SLEEP: Final = "3s"
"""Instead of job-1's ten minutes."""
KEPT: Final = ("HEKLA_POSTGRES_BIN",)


class DemoError(Exception):
    """Something is not as it should be."""


def main() -> int:
    """Run the demo; the exit code says whether everything was as it should be."""
    begun = time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="hekla-demo-"))
    demo = Demo(folder)
    code = 1
    try:
        demo.run(os.environ.get("DEMO_WITHOUT", ""))
        code = 0
    except (DemoError, DomainError) as error:
        click.echo(f"\ndemo failed: {error}", err=True)
        for problem in demo.problems():
            click.echo(f"  {problem}", err=True)
    except KeyboardInterrupt:
        click.echo("\ninterrupted", err=True)
    finally:
        demo.clean_up()
    if code == 0:
        click.echo(f"\nAll as it should be, in {time.monotonic() - begun:.0f} s. Next: make up")
    return code


class Demo:
    """One run, in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._home = Home(folder / "home")
        self._written = folder / "written"
        ours = {name: value for name, value in os.environ.items() if _kept(name)}
        self._environ = {
            **ours,
            HOME_VARIABLE: str(self._home.folder),
            "KUBECONFIG": str(self._home.kubeconfig),
        }

    def run(self, without: str) -> None:
        """Both jobs and the flow, from manifest to the end."""
        self._written.mkdir()
        _title("A local Kubernetes, Postgres and the four services")
        self._hekla("up", "--detach")
        if without:
            self._hekla("stop", without)
        with Client(environ=self._environ, patience=timedelta(seconds=3)) as client:
            self._single(client)
            self._gang(client)
            self._flow(client)
        self._hekla("job", "list")
        self._hekla("jobflow", "list")

    def problems(self) -> Sequence[str]:
        """What is not ready now: most likely the reason."""
        try:
            standing = up.status(self._home) or []
        except DomainError:
            return []
        return [f"{unit.name}: {unit.problem}" for unit in standing if unit.problem]

    def clean_up(self) -> None:
        """Leave no process, no port and no file."""
        up.down(self._home, report=lambda _line: None)
        if os.environ.get("DEMO_KEEP"):
            click.echo(f"kept {self._folder}", err=True)
        else:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _single(self, client: Client) -> None:
        _title(f"examples/job.yaml, by kubectl: one pod in queue 'test', sleeping {SLEEP}")
        documents = _documents("job.yaml")
        _containers(documents[1])[0]["command"] = ["sleep", SLEEP]

        self._through(client, "job-1", documents, partial(self._kubectl, "create"))

        self._kubectl("get", "vcjob,queue,pods")
        job = client.jobs.get("default", "job-1")
        _check_phases(job)
        _expect(job.spec.queue == "test", "job-1 is not in queue test")
        [attempt] = client.jobs.attempts("default", "job-1")
        _expect(bool(attempt.node), "the attempt names no node")
        _expect(attempt.outcome == "Succeeded", f"the attempt is {attempt.outcome or 'open'}")
        _expect(attempt.exit_codes == {"nginx": 0}, f"exit codes are {attempt.exit_codes}")
        times = (attempt.created_at, attempt.started_at, attempt.finished_at)
        known = [instant for instant in times if instant is not None]
        _expect(len(known) == 3 and known == sorted(known), f"the attempt's times are {times}")
        took = (known[2] - known[1]).total_seconds()
        _expect(took >= 3, f"the pod ran for {took} s, and was to sleep {SLEEP}")

    def _gang(self, client: Client) -> None:
        _title("examples/gang.yaml: a server and three workers, together or not at all")
        documents = _documents("gang.yaml")
        for container in _containers(documents[0]):
            shell, flag, script = container["command"]
            note = (
                f'echo "$VC_TASK_INDEX $(date +%s.%N)" >> "{self._written}/{container["name"]}"'
            )
            container["command"] = [shell, flag, f"{note}\n{script}"]

        self._through(client, "gang", documents, partial(self._hekla, "apply"))

        _check_phases(client.jobs.get("default", "gang"))
        attempts = client.jobs.attempts("default", "gang")
        _expect(len(attempts) == 4, f"there were {len(attempts)} attempts, not 4")
        for task, count in {"server": 1, "worker": 3}.items():
            self._check_written(task, [one for one in attempts if one.task == task], count)
        workers = [attempt for attempt in attempts if attempt.task == "worker"]
        outcomes = sorted(attempt.outcome for attempt in workers)
        _expect(outcomes == ["Succeeded"] * 3, f"the workers' outcomes are {outcomes}")
        printed = self._hekla("job", "logs", "gang", "--task", "worker")
        shares = [float(share) for share in re.findall(r"share \d of pi: (\S+)", printed)]
        _expect(abs(sum(shares) - 3.14159) < 1e-4, f"the shares {shares} do not make pi")

    def _flow(self, client: Client) -> None:
        _title("examples/ml-pipeline.yaml: three jobs, each after the one before")
        documents = _documents("ml-pipeline.yaml")
        lines = self._written / "pipeline"
        *templates, flow = documents
        for template in templates:
            [container] = _containers(template)
            shell, flag, script = container["command"]
            note = f'echo "{template["metadata"]["name"]}" >> "{lines}"'
            container["command"] = [shell, flag, f"{note}\n{script}"]

        name = flow["metadata"]["name"]
        text = yaml.safe_dump_all(documents)
        waiting = ("--wait", "--timeout", f"{FLOW_PATIENCE:.0f}s")
        self._hekla("jobflow", "run", "-f", "-", *waiting, stdin=text)

        found = client.job_flows.get("default", name)
        steps = [step["name"] for step in flow["spec"]["flows"]]
        completed = found.status.completed_jobs or []
        _expect(completed == [f"{name}-{step}" for step in steps], f"completed: {completed}")
        pods = {step: client.jobs.attempts("default", f"{name}-{step}") for step in steps}
        expected = [step for step in steps for _ in pods[step]]
        written = lines.read_text().split()
        _expect(written == expected, f"the steps ran as {written}, not {expected}")
        _expect(len(written) == 4, f"{len(written)} pods ran, not 4")

    def _check_written(self, task: str, attempts: Sequence[Attempt], count: int) -> None:
        """Each pod wrote once, after its attempt was recorded and before its end was."""
        lines = [line.split() for line in (self._written / task).read_text().splitlines()]
        indices = sorted(int(index) for index, _ in lines)
        expected = list(range(count))
        _expect(indices == expected, f"pods of {task} that wrote: {indices}, not {expected}")
        times = {int(index): float(at) for index, at in lines}
        for attempt in attempts:
            at, created, end = times[attempt.index], attempt.created_at, attempt.finished_at
            _expect(created is not None and end is not None, f"{attempt.pod_name} has no times")
            if created is None or end is None:
                continue
            in_order = (
                created.timestamp() <= at <= end.timestamp() + 1
            )  # ends are whole seconds
            _expect(
                in_order, f"{attempt.pod_name} ran at {at}, its record is {created} to {end}"
            )

    def _through(
        self,
        client: Client,
        name: str,
        documents: Sequence[Mapping[str, Any]],
        submit: Callable[..., str],
    ) -> None:
        """Submit a manifest and show each step of its job as it comes, to the last."""
        steps = Steps(name)
        with changes_of(client, name) as changes, ThreadPoolExecutor(1) as beside:
            text = yaml.safe_dump_all(documents)
            applied = beside.submit(submit, "-f", "-", stdin=text)
            while not steps.over:
                if applied.done() and (error := applied.exception()) is not None:
                    raise error
                try:
                    change = changes.get(timeout=0.1)
                except queue.Empty:
                    if time.monotonic() - steps.last_at > PATIENCE:
                        raise DemoError(
                            f"nothing happens to {name} for {PATIENCE:.0f} s;"
                            f" it got as far as: {steps.last}"
                        ) from None
                    continue
                if isinstance(change, DomainError):
                    raise DemoError(str(change))
                steps.take(change)
            applied.result()

    def _hekla(self, *args: str, stdin: str | None = None) -> str:
        """Run the command line and show it; give what it printed."""
        return self._ran(COMMAND, args, stdin)

    def _kubectl(self, *args: str, stdin: str | None = None) -> str:
        """Run kubectl and show it; give what it printed."""
        # It keeps what it learns of a server below HOME, and no other may know of ours.
        return self._ran(KUBECTL, args, stdin, HOME=str(self._folder))

    def _ran(self, program: Path, args: Sequence[str], stdin: str | None, **more: str) -> str:
        command = f"{program.name} {' '.join(args)}"
        click.echo(f"$ {command}")
        try:
            done = subprocess.run(
                [str(program), *args],
                input=stdin or "",
                env={**self._environ, **more},
                stdout=subprocess.PIPE,
                stderr=None if args[0] == "up" else subprocess.PIPE,
                text=True,
                check=False,
            )
        except FileNotFoundError:
            raise DemoError(f"{program} is not there; 'make setup' installs it") from None
        click.echo(done.stdout, nl=False)
        if done.returncode != 0:
            reason = (done.stderr or "see above").strip().removeprefix("error: ")
            raise DemoError(
                f"'{program.name} {args[0]}' ended with {done.returncode}: {reason}"
            )
        return done.stdout


def _check_phases(job: Job) -> None:
    """The job's own history: it was in each phase, in this order."""
    found = [str(condition.status) for condition in job.status.conditions or ()]
    expected = [str(p) for p in (JobPhase.PENDING, JobPhase.RUNNING, JobPhase.COMPLETED)]
    _expect(
        [phase for phase in found if phase in expected] == expected,
        f"{job.metadata.name} went through {', '.join(found)}, not {', '.join(expected)}",
    )
    _expect(job.status.retry_count == 0, f"it was restarted {job.status.retry_count} times")


def _expect(true: bool, otherwise: str) -> None:  # noqa: FBT001  # reads as a sentence
    if not true:
        raise DemoError(otherwise)


def _documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


def _containers(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    tasks = job["spec"]["tasks"]
    return [container for task in tasks for container in task["template"]["spec"]["containers"]]


def _kept(name: str) -> bool:
    return name in KEPT or not name.startswith(("HEKLA_", "KUBECONFIG", "DEMO_"))


def _title(text: str) -> None:
    click.echo(f"\n{text}")


if __name__ == "__main__":
    sys.exit(main())
