"""Following a job and all that its pods print, from their first line to the job's end.

Threads watch and read; the main one writes, so that it learns at once when nobody reads any
more, and Ctrl-C reaches it.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import BinaryIO, Final

import click

from hekla.api.job import Job
from hekla.cli.logs import MOST_FOLLOWED, Lines
from hekla.cli.wait import line, pods_of
from hekla.client import Client, PodView, Sighting
from hekla.client.waiting import Waited, wait_for
from hekla.domain.errors import DomainError, UnavailableError
from hekla.domain.phases import FINISHED, PodPhase

STARTED: Final = frozenset({PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED})
LAST_WORDS: Final = timedelta(seconds=5)
"""For how long logs may still come once the job is over."""

News = bytes | Sighting | Waited | DomainError
"""Something printed, a state of the job, the end, or why there will be none."""


class Readers:
    """A thread for each pod that has started, which hands on whole lines."""

    def __init__(self, client: Client, job: Job, hand_on: Callable[[News], None]) -> None:
        self._client = client
        self._job = job
        self._hand_on = hand_on
        self._several = pods_of(job) > 1
        self._known: set[str] = set()
        self._threads: list[threading.Thread] = []

    def look(self) -> None:
        """Begin to read the pods that have started since the last look."""
        metadata = self._job.metadata
        for pod in self._client.jobs.pods(metadata.namespace, metadata.name):
            attempt = pod.attempt
            if attempt.uid in self._known or attempt.phase not in STARTED:
                continue
            self._known.add(attempt.uid)
            if len(self._known) <= MOST_FOLLOWED:
                thread = threading.Thread(target=self._read, args=(pod,), daemon=True)
                self._threads.append(thread)
                thread.start()
            elif len(self._known) == MOST_FOLLOWED + 1:
                click.echo(
                    f"only the first {MOST_FOLLOWED} pods are followed; 'hekla job logs' shows"
                    " the others",
                    err=True,
                )

    @property
    def reading(self) -> bool:
        """Whether any log is not at its end."""
        return any(thread.is_alive() for thread in self._threads)

    def _read(self, pod: PodView) -> None:
        name = pod.attempt.pod_name
        lines = Lines(f"[{name}] ".encode() if self._several else b"")
        try:
            for data in self._client.jobs.logs(pod.namespace, name, follow=True):
                self._hand_on(lines.add(data))
        except DomainError as error:
            click.echo(f"logs of {name}: {error}", err=True)
        self._hand_on(lines.end())


def follow(
    client: Client,
    job: Job,
    cursor: str,
    wanted: str,
    *,
    timeout: timedelta | None,
    out: BinaryIO,
) -> Waited:
    """Write all that the job's pods print until a wait for ``wanted`` ends.

    Raises:
        BrokenPipeError: nobody reads what is written.
        DomainError: the job cannot be watched.
    """
    news: queue.Queue[News] = queue.Queue(maxsize=1000)
    readers = Readers(client, job, news.put)

    def watch() -> None:
        try:
            news.put(
                wait_for(
                    client.jobs,
                    job,
                    wanted,
                    cursor=cursor,
                    timeout=timeout,
                    on_sighting=news.put,
                    on_outage=_tell_outage,
                )
            )
        except DomainError as error:
            news.put(error)

    threading.Thread(target=watch, daemon=True).start()
    told = ""
    while True:
        one = news.get()
        match one:
            case bytes():
                _write(out, one)
            case Sighting():
                readers.look()
                if one.job.status.state.phase not in FINISHED:
                    told = _tell(line(one.job), told)
            case Waited():
                if not one.gone:
                    readers.look()
                _drain(news, readers, out)
                _tell(line(one.job), told)
                return one
            case DomainError():
                raise one


def _tell(text: str, told: str) -> str:
    """Tell of the job, unless that was told last."""
    if text != told:
        click.echo(text, err=True)
    return text


def _drain(news: queue.Queue[News], readers: Readers, out: BinaryIO) -> None:
    """Write the last lines."""
    until = time.monotonic() + LAST_WORDS.total_seconds()
    while (readers.reading and time.monotonic() < until) or not news.empty():
        try:
            one = news.get(timeout=0.05)
        except queue.Empty:
            continue
        if isinstance(one, bytes):
            _write(out, one)


def _write(out: BinaryIO, data: bytes) -> None:
    if data:
        out.write(data)
        out.flush()


def _tell_outage(error: UnavailableError) -> None:
    click.echo(f"{error}; trying again", err=True)
