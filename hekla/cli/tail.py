"""Following a job and all that its pods print, from their first line to the job's end."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import BinaryIO, Final

import click

from hekla.api.job import Job
from hekla.cli.logs import MOST_FOLLOWED, Lines
from hekla.cli.wait import line, pods_of
from hekla.client import Client, PodView, Sighting
from hekla.client.waiting import Waited, wait_for
from hekla.domain.errors import DomainError
from hekla.domain.phases import PodPhase

STARTED: Final = frozenset({PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED})
LAST_WORDS: Final = timedelta(seconds=5)
"""For how long logs may still come once the job is over."""


class Tail:
    """Writes what the pods of a job print, each line with its pod if there are several."""

    def __init__(self, client: Client, job: Job, out: BinaryIO) -> None:
        self._client = client
        self._job = job
        self._several = pods_of(job) > 1
        self._known: set[str] = set()
        self._pieces: queue.Queue[bytes | None] = queue.Queue(maxsize=1000)
        self._readers: list[threading.Thread] = []
        self._out = out
        self._broken: OSError | None = None
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._writer.start()

    def look(self) -> None:
        """Begin to read the pods that have started since the last look.

        Raises:
            OSError: nobody reads what is written any more.
        """
        if self._broken is not None:
            raise self._broken
        metadata = self._job.metadata
        for pod in self._client.jobs.pods(metadata.namespace, metadata.name):
            attempt = pod.attempt
            if attempt.uid in self._known or attempt.phase not in STARTED:
                continue
            self._known.add(attempt.uid)
            if len(self._known) > MOST_FOLLOWED:
                if len(self._known) == MOST_FOLLOWED + 1:
                    click.echo(
                        f"only the first {MOST_FOLLOWED} pods are followed; 'hekla job logs'"
                        " shows the others",
                        err=True,
                    )
                continue
            reader = threading.Thread(target=self._read, args=(pod,), daemon=True)
            self._readers.append(reader)
            reader.start()

    def end(self) -> None:
        """Wait for the last lines."""
        until = time.monotonic() + LAST_WORDS.total_seconds()
        for reader in self._readers:
            reader.join(max(0.0, until - time.monotonic()))
        self._pieces.put(None)
        self._writer.join(LAST_WORDS.total_seconds())
        if self._broken is not None:
            raise self._broken

    def _read(self, pod: PodView) -> None:
        name = pod.attempt.pod_name
        lines = Lines(f"[{name}] ".encode() if self._several else b"")
        try:
            for data in self._logs(pod):
                self._pieces.put(lines.add(data))
        except DomainError as error:
            click.echo(f"logs of {name}: {error}", err=True)
        self._pieces.put(lines.end())

    def _logs(self, pod: PodView) -> Iterator[bytes]:
        return self._client.jobs.logs(pod.namespace, pod.attempt.pod_name, follow=True)

    def _write(self) -> None:
        while (piece := self._pieces.get()) is not None:
            if self._broken is None and piece:
                try:
                    self._out.write(piece)
                    self._out.flush()
                except OSError as error:
                    self._broken = error


def follow(
    client: Client,
    job: Job,
    cursor: str,
    wanted: str,
    *,
    timeout: timedelta | None,
    out: BinaryIO,
) -> Waited:
    """Write all that the job's pods print until a wait for ``wanted`` ends."""
    tail = Tail(client, job, out)
    last = ""

    def on_sighting(sighting: Sighting) -> None:
        nonlocal last
        if (text := line(sighting.job)) != last:
            click.echo(text, err=True)
            last = text
        tail.look()

    waited = wait_for(
        client.jobs,
        job,
        wanted,
        cursor=cursor,
        timeout=timeout,
        on_sighting=on_sighting,
        on_outage=lambda error: click.echo(f"{error}; trying again", err=True),
    )
    if not waited.gone:
        tail.look()
    tail.end()
    return waited
