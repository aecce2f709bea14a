"""What pods printed: of one, or of all of a job or task, as they come."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import grpc

from hekla.domain.errors import (
    DomainError,
    ExhaustedError,
    InvalidError,
    NotFoundError,
    Violation,
)
from hekla.domain.names import Key
from hekla.kube.client import KubeClient
from hekla.kube.subscription import LogStream
from hekla.store import attempt_pages, jobs
from hekla.store.database import Database

MOST_FOLLOWED: Final = 50
MOST_PODS: Final = 10_000
POLL_SECONDS: Final = 0.5
AHEAD: Final = 64
"""Pieces read ahead of a client that follows several pods."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which logs."""

    namespace: str
    job: str = ""
    task: str = ""
    index: int | None = None
    pod: str = ""
    container: str = ""
    follow: bool = False
    tail_lines: int | None = None


class PodLogs:
    """Reads logs through the API server."""

    def __init__(self, database: Database, kube: KubeClient) -> None:
        self._database = database
        self._kube = kube

    def read(
        self, wanted: Wanted, context: grpc.ServicerContext
    ) -> Iterator[tuple[str, bytes]]:
        """Pieces of logs, each with its pod's name.

        Raises:
            InvalidError: the request names neither a pod nor a job.
            NotFoundError: there is no such pod.
        """
        if wanted.tail_lines is not None and wanted.tail_lines < 0:
            raise InvalidError.of(
                [Violation("tail_lines", f"must be >= 0, is {wanted.tail_lines}")]
            )
        pods = [wanted.pod] if wanted.pod else self._pods(wanted)
        if wanted.follow and len(pods) > 1:
            yield from self._follow(pods, wanted, context)
            return
        for pod in pods:
            stream = self._open(pod, wanted)
            with closing(stream):
                context.add_callback(stream.close)
                for data in stream:
                    yield pod, data

    def _pods(self, wanted: Wanted) -> Sequence[str]:
        if not wanted.job:
            raise InvalidError.of([Violation("job", "is required unless pod is given")])
        key = Key(wanted.namespace, wanted.job)
        with self._database.transaction() as session:
            stored = jobs.get(session, key)
            rows = attempt_pages.present(session, job=stored.uid, limit=MOST_PODS)
        found = sorted(
            (row.task, row.index, row.pod_name)
            for row in rows
            if row.pod_uid is not None
            and wanted.task in ("", row.task)
            and wanted.index in (None, row.index)
        )
        if not found:
            what = "".join(
                [
                    f" of task {wanted.task}" if wanted.task else "",
                    f" at index {wanted.index}" if wanted.index is not None else "",
                ]
            )
            raise NotFoundError(f"job {key} has no pod{what} now")
        return [name for _, _, name in found]

    def _open(self, pod: str, wanted: Wanted) -> LogStream:
        return self._kube.logs(
            wanted.namespace,
            pod,
            wanted.container or None,
            follow=wanted.follow,
            tail_lines=wanted.tail_lines,
        )

    def _follow(
        self, pods: Sequence[str], wanted: Wanted, context: grpc.ServicerContext
    ) -> Iterator[tuple[str, bytes]]:
        if len(pods) > MOST_FOLLOWED:
            raise ExhaustedError(
                f"{len(pods)} pods are too many to follow at once (at most {MOST_FOLLOWED});"
                " name a task or an index"
            )
        pieces: queue.Queue[tuple[str, bytes | None]] = queue.Queue(AHEAD)
        streams = [self._open(pod, wanted) for pod in pods]

        def close() -> None:
            for stream in streams:
                stream.close()

        def copy(pod: str, stream: LogStream) -> None:
            try:
                for data in stream:
                    pieces.put((pod, data))
            except DomainError as error:
                pieces.put((pod, f"[the log broke off: {error}]\n".encode()))
            finally:
                pieces.put((pod, None))

        context.add_callback(close)
        for pod, stream in zip(pods, streams, strict=True):
            threading.Thread(
                target=copy, args=(pod, stream), name=f"log-{pod}", daemon=True
            ).start()
        left = len(pods)
        try:
            while left and context.is_active():
                try:
                    pod, piece = pieces.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    continue
                if piece is None:
                    left -= 1
                else:
                    yield pod, piece
        finally:
            close()
            while left:  # let the copying threads put what they still have, and end
                left -= pieces.get()[1] is None
