"""How fast the store is: ``python -m tests.benchmarks.bench_store [--no-sync]``.

It starts a Postgres of its own, which syncs each commit as that of services does. Clients are
threads of this process and share the machine with the server.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from uuid import uuid4

from sqlalchemy import text

from hekla.api.job import JobStatus
from hekla.domain.attempt import Kill, Slot
from hekla.store import attempts, batch, feed, jobs, observations, pod_groups, queues, work
from hekla.store.database import Database
from hekla.store.hub import Hub
from hekla.store.migrate import migrate
from hekla.store.nudge import Nudge
from tests.support.objects import make_job, make_task
from tests.support.postgres import server
from tests.support.store import rows_of, sight

MINUTE = timedelta(minutes=1)
BATCH = 50
OBJECTS = 5_000
PODS = 10_000


def say(what: str, figure: float, unit: str) -> None:
    """Print one figure."""
    sys.stdout.write(f"{what:<66} {figure:>10,.1f} {unit}\n")
    sys.stdout.flush()


def timed(act: Callable[[], object]) -> float:
    """How many seconds it takes."""
    before = time.perf_counter()
    act()
    return time.perf_counter() - before


def median_ms(act: Callable[[], object], times: int = 9) -> float:
    """How many milliseconds it takes, mostly."""
    return 1000 * statistics.median(timed(act) for _ in range(times))


@contextmanager
def long_snapshot(database: Database) -> Iterator[None]:
    """A snapshot that is held open: no dead row after it can be removed."""
    with database.engine.connect() as connection:
        connection.execution_options(isolation_level="REPEATABLE READ")
        connection.execute(text("select 1"))
        connection.execute(text("set idle_in_transaction_session_timeout = 0"))
        yield


def empty(database: Database) -> None:
    """Nothing is stored."""
    with database.transaction() as session:
        session.execute(text("truncate job, attempt, pod_group, trigger, command, job_event,"
                             " work, change, queue"))  # fmt: skip


def claims(database: Database) -> None:
    """Objects that are woken, claimed and forgotten over and over."""
    uids = [str(uuid4()) for _ in range(OBJECTS)]
    for held in (False, True):
        for size, looks in ((BATCH, 4 * OBJECTS), (1, OBJECTS // 5)):
            empty(database)
            done = 0

            def look(size: int = size, looks: int = looks) -> None:
                nonlocal done
                while done < looks:
                    with database.transaction() as session:
                        found = work.claim(session, ["thing"], limit=size, lease=MINUTE)
                    if not found:
                        with database.transaction() as session:
                            work.wake(session, "thing", *uids)
                        continue
                    done += len(found)
                    with database.transaction() as session:
                        for one in found:
                            work.release(session, one)

            with long_snapshot(database) if held else nullcontext():
                seconds = timed(look)
            how = f"in batches of {size}" if size > 1 else "one at a time"
            snapshot = ", a snapshot held open" if held else ""
            say(f"claims {how}{snapshot}", done / seconds, "/s")


def inserts(database: Database) -> None:
    """Jobs stored as CreateJobs does it, in chunks of 1,000."""

    def store(thread: int) -> None:
        for chunk in range(4):
            wanted = [(uuid4(), make_job(f"j{thread}-{chunk}-{n}")) for n in range(1_000)]
            with database.transaction() as session:
                jobs.insert_many(session, wanted)

    for count in (1, 2):
        empty(database)
        threads = [threading.Thread(target=store, args=(number,)) for number in range(count)]

        def run(threads: list[threading.Thread] = threads) -> None:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        say(f"jobs stored, {count} thread(s)", count * 4_000 / timed(run), "/s")

    def singly() -> None:
        for number in range(300):
            with database.transaction() as session:
                jobs.insert_many(session, [(uuid4(), make_job(f"single{number}"))])

    say("jobs stored one a transaction", 300 / timed(singly), "/s")


def reading(database: Database) -> None:
    """From a commit to a watcher, with others' changes in the ring."""
    empty(database)
    with database.transaction() as session:
        session.execute(
            text(
                "insert into change (slot, kind, uid, version, type)"
                " select i % 4, 'thing', i::text, 1, 'MODIFIED'"
                " from generate_series(1, 500000) i"
            )
        )
        queues.make_well_known(session)
        [job] = jobs.insert_many(session, [(uuid4(), make_job("j"))])
    with database.transaction() as session:
        cursor = feed.start(session)

    def read() -> None:
        with database.transaction() as session:
            feed.since(session, cursor)

    say("a read of the feed with no news, 500,000 changes in the ring", median_ms(read), "ms")
    with long_snapshot(database):
        say("the same, a snapshot held open", median_ms(read), "ms")

    hub = Hub(database, {jobs.KIND: jobs.documents, pod_groups.KIND: pod_groups.documents})
    hub.read_once()
    stop = threading.Event()
    with Nudge(database.url).running() as nudge:
        database.on_change(nudge.poke)

        def follow() -> None:
            heard = 0
            while not stop.is_set():
                if not hub.read_once():
                    heard = nudge.wait(heard, 0.1)

        reader = threading.Thread(target=follow)
        reader.start()
        stream = hub.watch(jobs.KIND, str(cursor), going=lambda: True)
        next(stream)
        lags = []
        stored = job
        for number in range(60):
            with database.transaction() as session:
                version = jobs.record(
                    session, stored, status=JobStatus(running=number), counters={},
                    started_at=None, finished_at=None,
                )  # fmt: skip
            committed = time.perf_counter()
            for _, item in stream:
                if item is not None and item.object.metadata.resource_version == str(version):
                    break
            lags.append(1000 * (time.perf_counter() - committed))
            with database.transaction() as session:
                stored = jobs.get_by_uid(session, job.uid)
        stop.set()
        reader.join()
        stream.close()
    say("from commit to watcher, median", statistics.median(lags), "ms")
    say("from commit to watcher, 95 of 100", statistics.quantiles(lags, n=20)[-1], "ms")


def passes(database: Database) -> None:
    """What a pass over a job of 10,000 running pods reads."""
    empty(database)
    with database.transaction() as session:
        task = make_task(replicas=PODS)
        [job] = jobs.insert_many(session, [(uuid4(), make_job("j", task))])

    def all_missing() -> list[Slot]:
        with database.transaction() as session:
            return list(
                batch.answer(
                    session, attempts.missing(job.uid, [("t", PODS)], pause=MINUTE, limit=PODS)
                )
            )

    slots = all_missing()

    def plan() -> None:
        for start in range(0, PODS, 500):
            with database.transaction() as session:
                attempts.plan(
                    session, job, slots[start : start + 500], version=0, group=uuid4()
                )

    say("attempts planned, 500 a slice", PODS / timed(plan), "/s")
    rows = rows_of(database, job.uid)
    seen = [sight(row, phase="Running", resource_version=1) for row in rows]

    def observe() -> None:
        for start in range(0, PODS, 500):
            with database.transaction() as session:
                observations.observe(session, seen[start : start + 500])

    say("pods observed, 500 a batch", PODS / timed(observe), "/s")
    with database.transaction() as session:
        session.execute(text("analyze attempt"))

    def read() -> None:
        with database.transaction() as session:
            attempts.counts(session, job.uid)
            batch.answer(
                session, attempts.missing(job.uid, [("t", PODS)], pause=MINUTE, limit=500)
            )
            attempts.unhandled(session, job.uid, limit=500)
            attempts.to_create(session, job.uid, limit=500)
            attempts.to_delete(session, job.uid, limit=500)

    say(f"what a pass reads of {PODS:,} running pods", median_ms(read), "ms")

    def doom() -> None:
        with database.transaction() as session:
            attempts.doom(session, job.uid, Kill("Test", ended=True))

    say(f"{PODS:,} pods marked for removal", 1000 * timed(doom), "ms")


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-sync", action="store_true", help="do not wait for the disk")
    with server(durable=not parser.parse_args().no_sync) as own:
        url = own.make_database("bench")
        migrate(url)
        for measure in (claims, inserts, reading, passes):
            database = Database(url, statement_timeout="60s")
            measure(database)
            database.close()


if __name__ == "__main__":
    main()
