"""``hekla job view``: all that is worth knowing of one job, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import click

from hekla.api.job import Job, TaskSpec
from hekla.cli import kinds, options
from hekla.cli.table import plain, table
from hekla.cli.wait import pods_of, why_pending
from hekla.client import Client, JobEvent
from hekla.client.waiting import phase
from hekla.domain import timestamps
from hekla.domain.ages import age
from hekla.domain.errors import NotServedError

MOST_EVENTS = 20


@click.command("view", epilog=options.examples("hekla job view job-1"))
@options.job_name
@options.namespace
@options.with_client
def view(client: Client, *, name: str, namespace: str) -> None:
    """Show all about a job, for people.

    That is its state and why, its tasks, its history and its events.

    For programs use 'hekla job get -o json'.
    """
    job = client.jobs.get(namespace, name)
    try:
        events = client.jobs.events(namespace, name)
    except NotServedError:
        events = []
    click.echo(report(job, events, why_pending(client, job), datetime.now(UTC)), nl=False)


def report(job: Job, events: Sequence[JobEvent], why: str, now: datetime) -> str:
    """The job in lines."""
    meta, spec, status = job.metadata, job.spec, job.status
    counts = {
        "pending": status.pending,
        "running": status.running,
        "succeeded": status.succeeded,
        "failed": status.failed,
        "terminating": status.terminating,
        "unknown": status.unknown,
    }
    pods = ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "none"
    facts = {
        "Name": meta.name,
        "Namespace": meta.namespace,
        "UID": meta.uid,
        "Created": _instant(meta.creation_timestamp, now),
        "Labels": _pairs(meta.labels),
        "Annotations": _pairs(meta.annotations),
        "Queue": spec.queue,
        "Scheduler": spec.scheduler_name or "",
        "Priority class": spec.priority_class_name or "",
        "Plugins": ", ".join(sorted(spec.plugins or {})),
        "Minimum": f"{spec.min_available or 0} of {pods_of(job)} pods together",
        "Phase": phase(job),
        "Since": _instant(status.state.last_transition_time, now),
        "Reason": status.state.reason or "",
        "Message": why or status.state.message or "",
        "Pods": pods,
        "Retries": f"{status.retry_count} of {spec.max_retry}",
        "Took": status.running_duration or "",
    }
    lines = [
        f"{f'{word}:':16}{plain(text)}"
        for word, text in facts.items()
        if text or word == "Name"
    ]
    lines += _section("Tasks", [_task(job, task) for task in spec.tasks or ()], TASKS)
    lines += _section(
        "History",
        [
            (it.status or "", _instant(it.last_transition_time, now))
            for it in status.conditions or ()
        ],
        ("PHASE", "SINCE"),
    )
    rows = [kinds.event(event, now).row for event in events[-MOST_EVENTS:]]
    lines += _section("Events", rows, kinds.EVENTS.header)
    return "\n".join(lines) + "\n"


TASKS = ("NAME", "REPLICAS", "MIN", "PODS", "IMAGE", "AFTER")


def _task(job: Job, task: TaskSpec) -> Sequence[str]:
    states = (job.status.task_status_count or {}).get(task.name)
    pods = ", ".join(
        f"{n} {word}" for word, n in ((states and states.phase) or {}).items() if n
    )
    template = task.template or {}
    containers = (template.get("spec") or {}).get("containers") or []
    images = [str(it.get("image", "")) for it in containers if isinstance(it, Mapping)]
    after = (task.depends_on.name or []) if task.depends_on else []
    least = "-" if task.min_available is None else str(task.min_available)
    return (
        task.name,
        str(task.replicas),
        least,
        pods or "-",
        ", ".join(images) or "-",
        ", ".join(after) or "-",
    )


def _section(title: str, rows: Sequence[Sequence[str]], header: Sequence[str]) -> Sequence[str]:
    if not rows:
        return []
    return ["", f"{title}:", *(f"  {line}" for line in table(header, rows).splitlines())]


def _pairs(pairs: Mapping[str, str] | None) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted((pairs or {}).items()))


def _instant(text: str | None, now: datetime) -> str:
    return f"{text} ({age(timestamps.from_text(text), now)} ago)" if text else ""
