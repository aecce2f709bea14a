"""What the mirror adds: ``python -m tests.benchmarks.bench_mirror``.

Custom resources to rows, and a row's new phase to the status that kubectl shows, one at a time
on a quiet system; then many at once. The local cluster, Postgres and the mirror share the
machine; each figure is from the answer to the write on one side to what a watcher, or a query,
sees on the other.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from sqlalchemy import text

from hekla.api.decode import encode
from hekla.domain.names import Key
from hekla.domain.phases import JobPhase
from hekla.kube.resources import JOBS
from hekla.store import jobs, mirrored
from hekla.store.database import Database
from hekla.store.migrate import migrate
from tests.benchmarks.figures import Figure, publish
from tests.support.mirror_scene import MirrorScene, lasting, mirror_scene
from tests.support.postgres import Server, server
from tests.support.waiting import wait_until

SINGLE: Final = 60
MANY: Final = 1_000
LIMIT: Final = 150.0  # ms, p50


class Shown:
    """When each job's custom resource first showed each phase."""

    def __init__(self, scene: MirrorScene) -> None:
        self._subscription = scene.kube.watch(JOBS)
        self._seen: dict[tuple[str, str], float] = {}
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for batch in self._subscription:
            at = time.perf_counter()
            with self._changed:
                for event in batch:
                    if event.type == "RELISTED":
                        continue
                    status = event.object.get("status") or {}
                    phase = (status.get("state") or {}).get("phase") or ""
                    self._seen.setdefault((event.object["metadata"]["name"], phase), at)
                self._changed.notify_all()

    def at(self, name: str, phase: str) -> float:
        """The instant, once it is there."""
        with self._changed:
            assert self._changed.wait_for(lambda: (name, phase) in self._seen, 20), name
            return self._seen[name, phase]

    def close(self) -> None:
        """See no more."""
        self._subscription.close()


def inward(scene: MirrorScene) -> Iterator[float]:
    """Milliseconds from a custom resource to its row, one by one."""
    for _ in range(SINGLE):
        name = scene.name()
        scene.submit(lasting(name))
        began = time.perf_counter()
        key = Key("default", name)
        while True:
            with scene.database.transaction() as session:
                if mirrored.jobs_named(session, [key]):
                    break
        yield (time.perf_counter() - began) * 1000


def outward(scene: MirrorScene) -> Iterator[float]:
    """Milliseconds from a row's new phase to the status of its custom resource."""
    shown = Shown(scene)
    for number in range(SINGLE):
        name = f"job-{number}"
        set_running(scene, [name])
        began = time.perf_counter()
        yield (shown.at(name, "Running") - began) * 1000
    shown.close()


def set_running(scene: MirrorScene, names: Sequence[str]) -> None:
    """Have jobs be Running, as a pass would record it."""
    with scene.database.transaction() as session:
        for name in names:
            stored = jobs.get(session, Key("default", name))
            state = stored.job.status.state.model_copy(update={"phase": JobPhase.RUNNING.value})
            jobs.record(
                session,
                stored,
                status=stored.job.status.model_copy(update={"state": state}),
                counters=stored.counters,
                started_at=stored.created_at,
                finished_at=None,
            )


def many(scene: MirrorScene) -> tuple[float, float]:
    """Custom resources taken in a second, and statuses shown in a second."""
    names = [scene.name() for _ in range(MANY)]
    bodies: list[dict[str, Any]] = []
    for name in names:
        body = encode(lasting(name))
        body.pop("status", None)
        bodies.append(body)
    began = time.perf_counter()
    for start in range(0, MANY, 100):
        replies = scene.kube.create_many(JOBS, bodies[start : start + 100])
        assert all(reply.ok for reply in replies)

    def rows() -> bool:
        with scene.database.transaction() as session:
            count = session.execute(text("select count(*) from job")).scalar_one()
        return int(count) >= MANY + SINGLE

    wait_until(rows, timeout=60, what="all rows")
    taken = MANY / (time.perf_counter() - began)
    shown = Shown(scene)
    for name in names:
        wait_until(lambda: scene.phase(name) == "Pending", timeout=60, what=name)  # noqa: B023
    began = time.perf_counter()
    for start in range(0, MANY, 100):
        set_running(scene, names[start : start + 100])
    last = max(shown.at(name, "Running") for name in names)
    shown.close()
    return taken, MANY / (last - began)


def main() -> None:
    """Print the figures; exit with 1 if a floor is missed."""
    with tempfile.TemporaryDirectory() as home, server(durable=True) as postgres:
        url = Server(postgres.url("postgres")).make_database("mirror")
        migrate(url)
        database = Database(url)
        with mirror_scene(database, Path(home)) as scene:
            scene.start()
            scene.submit(lasting("first"))
            scene.wait_for_phase("first", "Pending")
            into = sorted(inward(scene))
            time.sleep(2)
            out = sorted(outward(scene))
            taken, told = many(scene)
        database.close()
    figures = [
        Figure("custom resource to row, p50", statistics.median(into), "ms", LIMIT, 50),
        Figure("custom resource to row, p95", into[int(SINGLE * 0.95)], "ms", 500, 150),
        Figure("new phase to status, p50", statistics.median(out), "ms", LIMIT, 50),
        Figure("new phase to status, p95", out[int(SINGLE * 0.95)], "ms", 500, 150),
        Figure("jobs taken, 1,000 at once", taken, "/s", 100, 400, more_is_better=True),
        Figure("statuses shown, 1,000 at once", told, "/s", 150, 200, more_is_better=True),
    ]
    sys.exit(0 if publish("mirror", figures) else 1)


if __name__ == "__main__":
    main()
