"""Ending what containers leave behind: one look at all processes serves all who ask."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from hekla.local.runtimes import strays
from hekla.local.runtimes.environment import CONTAINER
from hekla.local.tasks import Tasks

_Mark = tuple[str, str | None]


class Sweeper:
    """Kills by the marks in the environment of processes."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._asked: dict[_Mark, asyncio.Future[None]] = {}
        self._working = False

    async def sweep(self, uid: str, container: str | None = None) -> None:
        """Return once no process of the pod is left, or none of that one container."""
        mark = (uid, container)
        if mark not in self._asked:
            self._asked[mark] = asyncio.get_running_loop().create_future()
        done = self._asked[mark]
        if not self._working:
            self._working = True
            self._tasks.spawn(self._work(), name="sweep")
        await asyncio.shield(done)

    async def _work(self) -> None:
        try:
            while self._asked:
                asked, self._asked = self._asked, {}
                await asyncio.to_thread(_kill, frozenset(asked))
                for done in asked.values():
                    done.set_result(None)
        finally:
            self._working = False


def _kill(marks: frozenset[_Mark]) -> None:
    def ours(_pid: int, environ: Mapping[str, str]) -> bool:
        uid = environ.get(strays.POD_UID, "")
        return (uid, None) in marks or (uid, environ.get(CONTAINER)) in marks

    strays.kill_where(ours)
