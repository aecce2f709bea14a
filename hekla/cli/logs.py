"""Printing what pods printed: one pod as it is, several with each line's pod before it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

from hekla.client import Client, PodView
from hekla.domain.errors import DomainError, PreconditionError

MOST_FOLLOWED: Final = 50
"""Pods followed at once; each takes a stream of the controller's."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Which part of the logs is wanted."""

    container: str = ""
    follow: bool = False
    tail: int | None = None


class Lines:
    """Puts pieces of one pod's output together to whole lines with a prefix."""

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._rest = b""

    def add(self, data: bytes) -> bytes:
        """The lines that ``data`` completes."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        return b"".join(self._prefix + line + b"\n" for line in whole)

    def end(self) -> bytes:
        """What is left, as a line."""
        rest, self._rest = self._rest, b""
        return self._prefix + rest + b"\n" if rest else b""


def chosen(pods: Sequence[PodView], task: str | None, index: int | None) -> Sequence[PodView]:
    """The pods of a task and an index, by task and index; of one place the newest run only."""
    newest: dict[tuple[str, int], PodView] = {}
    for pod in sorted(pods, key=lambda pod: (pod.attempt.run, pod.attempt.pod_name)):
        attempt = pod.attempt
        if task in (None, attempt.task) and index in (None, attempt.index):
            newest[(attempt.task, attempt.index)] = pod
    return [newest[place] for place in sorted(newest)]


def show(client: Client, pods: Sequence[PodView], wish: Wish, out: BinaryIO) -> Sequence[str]:
    """Print the logs of ``pods``; give what went wrong, if there are several."""
    if len(pods) == 1:
        for data in _read(client, pods[0], wish):
            _write(out, data)
        return []
    if wish.follow and len(pods) > MOST_FOLLOWED:
        raise PreconditionError(
            f"{len(pods)} pods are too many to follow, {MOST_FOLLOWED} is the most;"
            " name a --task or an --index"
        )
    return _followed(client, pods, wish, out) if wish.follow else _each(client, pods, wish, out)


def _read(client: Client, pod: PodView, wish: Wish) -> Iterator[bytes]:
    return client.jobs.logs(
        pod.namespace,
        pod.attempt.pod_name,
        container=wish.container,
        follow=wish.follow,
        tail_lines=wish.tail,
    )


def _each(client: Client, pods: Sequence[PodView], wish: Wish, out: BinaryIO) -> Sequence[str]:
    failures = []
    for pod in pods:
        lines = _lines(pod)
        try:
            for data in _read(client, pod, wish):
                _write(out, lines.add(data))
        except DomainError as error:
            failures.append(f"{pod.attempt.pod_name}: {error}")
        _write(out, lines.end())
    return failures


def _followed(
    client: Client, pods: Sequence[PodView], wish: Wish, out: BinaryIO
) -> Sequence[str]:
    """Several at once: a thread reads each, this one writes."""
    pieces: queue.Queue[tuple[int, bytes | DomainError | None]] = queue.Queue(maxsize=1000)
    for number, pod in enumerate(pods):
        threading.Thread(
            target=_pump, args=(_read(client, pod, wish), number, pieces.put), daemon=True
        ).start()
    lines = [_lines(pod) for pod in pods]
    failures: list[str] = []
    open_streams = len(pods)
    while open_streams:
        number, piece = pieces.get()
        if isinstance(piece, bytes):
            _write(out, lines[number].add(piece))
            continue
        open_streams -= 1
        _write(out, lines[number].end())
        if piece is not None:
            failures.append(f"{pods[number].attempt.pod_name}: {piece}")
    return failures


def _pump(
    source: Iterator[bytes],
    number: int,
    put: Callable[[tuple[int, bytes | DomainError | None]], None],
) -> None:
    end: DomainError | None = None
    try:
        for data in source:
            put((number, data))
    except DomainError as error:
        end = error
    put((number, end))


def _lines(pod: PodView) -> Lines:
    return Lines(f"[{pod.attempt.pod_name}] ".encode())


def _write(out: BinaryIO, data: bytes) -> None:
    if data:
        out.write(data)
        out.flush()
