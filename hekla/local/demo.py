"""``make demo``: two jobs through everything, as a user would run them, in a home of its own.

It uses the installed ``hekla`` command and the SDK, shows what happens while it happens, checks
phases and order against what the pods themselves wrote, and leaves nothing behind. With
``DEMO_WITHOUT=webhook`` (or controller, scheduler) that service is stopped first, and the demo
must fail and name it. ``DEMO_KEEP=1`` keeps the folder.
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
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import click
import yaml

from hekla.api.job import Job
from hekla.api.pod_group import PodGroup
from hekla.client import Change, Client
from hekla.client.endpoints import HOME_VARIABLE
from hekla.domain.errors import DomainError
from hekla.domain.phases import JobPhase, PodGroupPhase
from hekla.local import up
from hekla.local.endpoints import Home

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
COMMAND: Final = Path(sys.executable).parent / "hekla"
PATIENCE: Final = 20.0
"""Seconds that one job may take."""
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
        self._environ = {**ours, HOME_VARIABLE: str(self._home.folder)}

    def run(self, without: str) -> None:
        """Both jobs, from manifest to the end."""
        self._written.mkdir()
        _title("A local Kubernetes, Postgres and the four services")
        self._hekla("up", "--detach")
        if without:
            self._hekla("stop", without)
        with Client(environ=self._environ, patience=timedelta(seconds=3)) as client:
            self._single(client)
            self._gang(client)
        self._hekla("job", "list")

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
        _title(f"examples/job.yaml: one pod in queue 'test', which sleeps {SLEEP} here")
        documents = _documents("job.yaml")
        _containers(documents[1])[0]["command"] = ["sleep", SLEEP]
        self._apply(documents)

        seen = self._watch(client, "job-1")

        _check_order("job-1", seen)
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
            note = f'echo "$VC_TASK_INDEX" >> "{self._written}/{container["name"]}"\n'
            container["command"] = [shell, flag, note + script]
        self._apply(documents)

        seen = self._watch(client, "gang")

        _check_order("gang", seen)
        _check_phases(client.jobs.get("default", "gang"))
        for task, expected in {"server": ["0"], "worker": ["0", "1", "2"]}.items():
            found = sorted((self._written / task).read_text().split())
            _expect(found == expected, f"pods of {task} that wrote: {found}, not {expected}")
        attempts = client.jobs.attempts("default", "gang")
        _expect(len(attempts) == 4, f"there were {len(attempts)} attempts, not 4")
        workers = [attempt for attempt in attempts if attempt.task == "worker"]
        outcomes = sorted(attempt.outcome for attempt in workers)
        _expect(outcomes == ["Succeeded"] * 3, f"the workers' outcomes are {outcomes}")
        starts = [attempt.started_at for attempt in attempts if attempt.started_at]
        ends = [attempt.finished_at for attempt in workers if attempt.finished_at]
        _expect(len(starts) == 4 and len(ends) == 3, "not all starts and ends are known")
        printed = self._hekla("job", "logs", "gang", "--task", "worker")
        shares = [float(share) for share in re.findall(r"share \d of pi: (\S+)", printed)]
        _expect(abs(sum(shares) - 3.14159) < 1e-4, f"the shares {shares} do not make pi")

    def _apply(self, documents: Sequence[Mapping[str, Any]]) -> None:
        self._hekla("apply", "-f", "-", stdin=yaml.safe_dump_all(documents))

    def _hekla(self, *args: str, stdin: str | None = None) -> str:
        """Run the command line and show it; give what it printed."""
        click.echo(f"$ hekla {' '.join(args)}")
        done = subprocess.run(
            [str(COMMAND), *args],
            input=stdin,
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=None if args[0] == "up" else subprocess.PIPE,
            text=True,
            check=False,
        )
        click.echo(done.stdout, nl=False)
        if done.returncode != 0:
            reason = (done.stderr or "see above").strip().removeprefix("error: ")
            raise DemoError(f"'hekla {args[0]}' ended with {done.returncode}: {reason}")
        return done.stdout

    def _watch(self, client: Client, name: str) -> Sequence[str]:
        """Show each step of a job as it comes, to the last; give them in their order."""
        steps = _Steps(name)
        with _changes(client, name) as changes:
            deadline = time.monotonic() + PATIENCE
            while JobPhase.COMPLETED not in steps.seen:
                try:
                    change = changes.get(timeout=max(0.0, deadline - time.monotonic()))
                except queue.Empty:
                    raise DemoError(
                        f"{name} is not Completed after {PATIENCE:.0f} s; it got as far as"
                        f" {steps.seen[-1] if steps.seen else 'nothing'}"
                    ) from None
                if isinstance(change, DomainError):
                    raise DemoError(str(change))
                steps.take(change)
        return steps.seen


STEPS: Final = {
    "admitted": "the webhook has filled in defaults, the controller has stored it",
    "queued": "its pod group waits in the queue",
    "Inqueue": "the scheduler lets the group in, so that pods may be made",
    "scheduled": "every pod has a node",
    "Running": "the gang runs",
    "Completed": "and is done",
}
ORDER: Final = tuple(STEPS)


class _Steps:
    """Turns changes of a job and its group into steps, each told once."""

    def __init__(self, name: str) -> None:
        self.seen: list[str] = []
        self._name = name
        self._begun = time.monotonic()

    def take(self, found: Job | PodGroup) -> None:
        """Tell what is new in ``found``."""
        if isinstance(found, Job):
            self._job(found)
        elif found.metadata.name.startswith(f"{self._name}-"):
            self._group(found)

    def _job(self, job: Job) -> None:
        tasks = job.spec.tasks or []
        pods = sum(task.replicas for task in tasks)
        self._tell("admitted", f"{pods} pods, {job.spec.min_available} of them at once")
        past = {condition.status for condition in job.status.conditions or ()}
        past.add(job.status.state.phase)
        for phase in (JobPhase.RUNNING, JobPhase.COMPLETED):
            if phase in past:
                self._tell(phase, "")

    def _group(self, group: PodGroup) -> None:
        self._tell("queued", f"queue {group.spec.queue}")
        if group.status.phase in (PodGroupPhase.INQUEUE, PodGroupPhase.RUNNING):
            self._tell("Inqueue", "")
        if group.status.phase == PodGroupPhase.RUNNING:
            self._tell("scheduled", "")

    def _tell(self, step: str, detail: str) -> None:
        if step in self.seen:
            return
        self.seen.append(step)
        after = time.monotonic() - self._begun
        more = f" ({detail})" if detail else ""
        click.echo(f"  {after:5.1f} s  {self._name:6} {step:10} {STEPS[step]}{more}")


@contextmanager
def _changes(client: Client, name: str) -> Iterator[queue.Queue[Job | PodGroup | DomainError]]:
    """What becomes of a job and of pod groups, from two watches."""
    found: queue.Queue[Job | PodGroup | DomainError] = queue.Queue()
    over = timedelta(seconds=PATIENCE + 5)

    def pump(watch: Iterator[Change[Job]] | Iterator[Change[PodGroup]]) -> None:
        try:
            for change in watch:
                if change.object is not None:
                    found.put(change.object)
        except DomainError as error:
            found.put(error)

    for watch in (
        client.jobs.watch("default", name, timeout=over),
        client.pod_groups.watch("default", timeout=over),
    ):
        threading.Thread(target=pump, args=(watch,), daemon=True).start()
    yield found


def _check_order(name: str, seen: Sequence[str]) -> None:
    missing = [step for step in ORDER if step not in seen]
    _expect(not missing, f"{name} went without the steps {', '.join(missing)}")


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
