"""How fast the controller is: ``python -m tests.benchmarks.bench_controller [SECONDS]``.

The whole stack runs, as ``hekla up`` starts it, on nodes that only pretend; clients are
threads of this process and share the machine's cores with everything else.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import cast
from uuid import UUID, uuid4

from sqlalchemy import text

from hekla.domain.phases import PodGroupPhase
from hekla.kube.client import KubeClient
from hekla.rpc.channel import connect
from hekla.store import jobs, work
from hekla.store.database import Database
from hekla.store.migrate import migrate
from hekla.v1 import job_service_pb2 as messages
from hekla.v1.job_service_pb2_grpc import JobServiceStub
from services.controller.acting import Actor
from services.controller.passes import Passes, PassLog
from tests.support.controller_scene import Driver, Pods, message
from tests.support.factories import make_job as make_admitted, make_task as make_admitted_task
from tests.support.objects import make_job, make_task
from tests.support.postgres import server
from tests.support.stack import Stack, running_stack

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
WATCHERS = 256
LEASE = timedelta(seconds=30)


def main() -> None:
    """Print all figures."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    with tempfile.TemporaryDirectory(prefix="hekla-bench-") as folder:
        options = ("--nodes=3", "--runtime=simulate")
        environ = {
            f"HEKLA_CONTROLLER_{name}": str(WATCHERS + 44)
            for name in ("STREAM_PERMITS", "CALLER_STREAMS")
        }
        with running_stack(Path(folder), *options, environ=environ) as stack:
            idle(stack, seconds)
            create(stack, clients=1, seconds=seconds)
            create(stack, clients=32, seconds=seconds)
            create_many(stack)
            watched(stack, seconds=min(seconds, 10.0))
    with server() as postgres:
        url = postgres.make_database("bench")
        migrate(url)
        database = Database(url)
        passes(database)
        database.close()


def say(line: str) -> None:
    """Print one figure."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


# The process at rest.


def idle(stack: Stack, seconds: float) -> None:
    """Processor time of a controller that has nothing to do."""
    pid = stack.units()["controller"].pid
    assert pid is not None
    whole = [pid, *children(pid)]
    time.sleep(2)  # what starting left to do is done
    before = [processor_seconds(one) for one in whole]
    time.sleep(seconds)
    spent = [processor_seconds(one) - was for one, was in zip(whole, before, strict=True)]
    parts = ", ".join(f"{100 * part / seconds:.1f} %" for part in spent)
    say(f"idle controller: {100 * sum(spent) / seconds:.1f} % of a core ({parts}: main, I/O)")


def children(pid: int) -> Sequence[int]:
    """Processes that ``pid`` started."""
    listed = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(one) for path in listed for one in path.read_text().split()]


def processor_seconds(pid: int) -> float:
    """Processor time that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


# CreateJob.


def create(stack: Stack, *, clients: int, seconds: float) -> None:
    """CreateJob, Review included, while the stack runs what is created."""
    numbers = iter(range(10**9))
    lock = threading.Lock()
    until = time.monotonic() + seconds
    prefix = f"c{clients}"

    def client(_: int) -> list[float]:
        took = []
        with connect(stack.endpoint("controller")) as channel:
            stub = JobServiceStub(channel)
            while time.monotonic() < until:
                with lock:
                    name = f"{prefix}-{next(numbers)}"
                job = message(make_job(name, make_task("t", 1)))
                request = messages.CreateJobRequest(job=job, request_id=name)
                started = time.perf_counter()
                stub.CreateJob(request, timeout=30)
                took.append(time.perf_counter() - started)
        return took

    started = time.monotonic()
    with ThreadPoolExecutor(clients) as many:
        took = sorted(one for part in many.map(client, range(clients)) for one in part)
    spent = time.monotonic() - started
    say(
        f"CreateJob, {clients:2} clients: {len(took) / spent:6.0f} /s,"
        f" p50 {1e3 * quantile(took, 0.5):.1f} ms, p99 {1e3 * quantile(took, 0.99):.1f} ms"
    )


def create_many(stack: Stack, count: int = 10_000) -> None:
    """CreateJobs, Review included, while the stack runs what is created."""
    with connect(stack.endpoint("controller")) as channel:
        stub = JobServiceStub(channel)
        request = messages.CreateJobsRequest(
            template=message(make_job("many", make_task("t", 1))),
            suffixes=[str(number) for number in range(count)],
            request_id="many",
        )
        spent = timed(partial(stub.CreateJobs, request, timeout=120))
    say(f"CreateJobs, {count} jobs in one call: {count / spent:.0f} jobs/s")


def watched(stack: Stack, *, watchers: int = WATCHERS, seconds: float) -> None:
    """GetJob beside open watches, which all are told of everything that goes on."""
    address = stack.endpoint("controller")
    with connect(address) as channel:
        stub = JobServiceStub(channel)
        [job] = stub.ListJobs(messages.ListJobsRequest(page_size=1), timeout=30).jobs
        asked = messages.GetJobRequest(uid=job.metadata.uid)

        def unary() -> list[float]:
            until = time.monotonic() + seconds / 2
            took = []
            while time.monotonic() < until:
                took.append(timed(partial(stub.GetJob, asked, timeout=30)))
            return sorted(took)

        def told(took: Sequence[float], beside: str) -> None:
            say(
                f"GetJob, one client, {beside}: p50 {1e3 * quantile(took, 0.5):.1f} ms,"
                f" p99 {1e3 * quantile(took, 0.99):.1f} ms"
            )

        told(unary(), "no watches")
        cursor = stub.ListJobs(messages.ListJobsRequest(page_size=1), timeout=30).cursor
        request = messages.WatchJobsRequest(cursor=cursor, name="nobody")
        streams = [stub.WatchJobs(request, timeout=600) for _ in range(watchers)]
        for stream in streams:
            next(stream)
        told(unary(), f"{watchers} watches")
        for stream in streams:
            stream.cancel()


def quantile(ordered: Sequence[float], part: float) -> float:
    """The value below which that part of them lies."""
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


# Passes, over pods in memory.


def passes(database: Database) -> None:
    """Passes that find nothing to do, and passes that start jobs."""
    driver = Driver(database)
    for pods in (1, 100, 5_000):
        uid = submit(database, f"idle-{pods}", pods)
        driver.start(uid)
        took = [timed(partial(driver.look, uid)) for _ in range(20)]
        say(f"pass with nothing to do, {pods:5} pods: {1e3 * statistics.median(took):.1f} ms")
        driver.pods.pods.clear()
        driver.pods.events.clear()
        with database.transaction() as session:
            session.execute(
                text("truncate attempt, trigger, command, job_event, pod_group, job")
            )
    lives(database)


def lives(database: Database) -> None:
    """Jobs of one pod from submission until their pods are asked for, one after the other."""
    pods = Pods()
    actor = Actor(cast("KubeClient", pods), lease=LEASE)
    runner = Passes(database, actor, PassLog("bench"), lease=LEASE)
    uids = [submit(database, f"j{number}", 1) for number in range(100)]
    driver = Driver(database, pods)

    def round_() -> None:
        while claims := claim(database):
            for one in claims:
                runner.run(one)

    started = time.perf_counter()
    round_()
    for uid in uids:
        driver.admit(uid, PodGroupPhase.INQUEUE)
    round_()
    spent = time.perf_counter() - started
    assert len(pods.created) == len(uids)
    say(f"from stored to pods asked for, one worker: {len(uids) / spent:.0f} jobs/s")


def claim(database: Database) -> Sequence[work.Claim]:
    """Up to 16 due jobs."""
    with database.transaction() as session:
        return work.claim(session, [jobs.KIND], limit=16, lease=LEASE)


def submit(database: Database, name: str, pods: int) -> UUID:
    """A job as it is stored."""
    uid = uuid4()
    job = make_admitted(make_admitted_task("t", pods), name=name)
    with database.transaction() as session:
        jobs.insert_many(session, [(uid, job)])
    return uid


def timed(act: Callable[[], object]) -> float:
    """How many seconds it took."""
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
