"""What containers wrote: read from their files, also after they, or we, are gone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

from hekla.local.kinds import errors
from hekla.local.kinds.registry import PODS, Object
from hekla.local.rules.pods import FINISHED
from hekla.local.runtimes.launches import ContainerFolder, Launch
from hekla.local.serving.routing import Request
from hekla.local.serving.streams import Body
from hekla.local.storage.memory import Entry, Storage

_CHUNK: Final = 256 * 1024
_LOOK: Final = 0.2
"""Seconds between two looks at a log that is followed."""
_NOT_KEPT: Final = ("timestamps", "sinceSeconds", "sinceTime")


class Logs:
    """The logs below one folder."""

    def __init__(self, storage: Storage, folder: Path) -> None:
        self._storage = storage
        self._folder = folder
        self._closed = asyncio.Event()

    def close(self) -> None:
        """End the logs that are followed, for the server stops."""
        self._closed.set()

    async def stream(self, pod: Entry, request: Request, sent: Body) -> None:
        """See ``app.Logs``."""
        for name in _NOT_KEPT:
            if request.flag(name):
                why = f"{name} is not supported: the local cluster keeps no times of lines"
                raise errors.bad_request(why)
        name = _container(pod, request.query.get("container", ""))
        previous = request.flag("previous")
        log = self._log(pod, name, previous=previous)
        tail, limit = request.number("tailLines"), request.number("limitBytes")
        follow = request.flag("follow") and not previous
        if log is None and not follow:
            what = "previous terminated container" if previous else "container"
            raise errors.bad_request(
                f'{what} "{name}" in pod "{pod.name}" is waiting to start: no log yet'
            )
        await sent.begin("text/plain")
        await self._copy(
            pod, name, sent, tail=tail, limit=limit, follow=follow, previous=previous
        )
        await sent.end()

    async def _copy(
        self,
        pod: Entry,
        name: str,
        sent: Body,
        *,
        tail: int | None,
        limit: int | None,
        follow: bool,
        previous: bool,
    ) -> None:
        log = self._log(pod, name, previous=previous)
        offset = _tail_offset(log, tail) if log is not None and tail is not None else 0
        gone = asyncio.ensure_future(sent.gone())
        closed = asyncio.ensure_future(self._closed.wait())
        cut: set[asyncio.Future[Any]] = {gone, closed}
        try:
            while not (gone.done() or closed.done()):
                # Looked at before the file, so that nothing is written between.
                over = not follow or self._over(pod, name, log)
                log = log or self._log(pod, name)
                if log is not None:
                    offset, limit = await _send_from(log, offset, limit, sent)
                if over or limit == 0:
                    return
                await asyncio.wait(cut, timeout=_LOOK, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            closed.cancel()

    def _log(self, pod: Entry, name: str, *, previous: bool = False) -> Path | None:
        logs = ContainerFolder(self._folder / pod.uid / name).logs()
        wanted = 2 if previous else 1
        return logs[-wanted] if len(logs) >= wanted else None

    def _over(self, pod: Entry, name: str, log: Path | None) -> bool:
        """Whether the container writes no more to that log."""
        if log is not None and Launch(log.parent).ended() is not None:
            return True
        entry = self._storage.get(PODS, pod.namespace, pod.name)
        if entry is None or entry.uid != pod.uid or entry.field("status.phase") in FINISHED:
            return True
        status = entry.object().get("status", {})
        for field in ("containerStatuses", "initContainerStatuses"):
            for container in status.get(field, []):
                if container.get("name") == name:
                    return "terminated" in container.get("state", {})
        return False


def _container(pod: Entry, wanted: str) -> str:
    names = [container["name"] for container in _spec(pod)["containers"]]
    if not wanted and len(names) == 1:
        return str(names[0])
    if not wanted:
        listed = " ".join(names)
        raise errors.bad_request(
            f"a container name must be specified for pod {pod.name}, choose one of: [{listed}]"
        )
    names += [container["name"] for container in _spec(pod).get("initContainers") or []]
    if wanted not in names:
        raise errors.bad_request(f"container {wanted} is not valid for pod {pod.name}")
    return wanted


def _spec(pod: Entry) -> Object:
    spec: Object = pod.object()["spec"]
    return spec


async def _send_from(
    log: Path, offset: int, limit: int | None, sent: Body
) -> tuple[int, int | None]:
    """Send what ``log`` holds from ``offset``; where it ends, and what the limit leaves."""
    try:
        with log.open("rb") as file:
            file.seek(offset)
            while part := file.read(_CHUNK if limit is None else min(_CHUNK, limit)):
                await sent.write(part)
                offset += len(part)
                limit = None if limit is None else limit - len(part)
    except FileNotFoundError:
        return offset, 0  # the pod is gone
    return offset, limit


def _tail_offset(log: Path, lines: int) -> int:
    """Where the last ``lines`` lines of a file begin."""
    with log.open("rb") as file:
        end = at = file.seek(0, 2)
        found = 0
        while at > 0:
            size = min(_CHUNK, at)
            at -= size
            file.seek(at)
            part = file.read(size)
            position = size
            while (position := part.rfind(b"\n", 0, position)) >= 0:
                if at + position == end - 1:
                    continue  # the end of the last line begins none
                found += 1
                if found == lines:
                    return at + position + 1
        return end if lines == 0 else 0
