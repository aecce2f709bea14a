"""Client processes: each has threads that submit jobs, and notes what was answered when."""

from __future__ import annotations

import itertools
import multiprocessing
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Barrier
from typing import Final

import grpc

from hekla.rpc.channel import connect
from hekla.v1 import job_service_pb2 as messages
from hekla.v1.job_service_pb2_grpc import JobServiceStub
from tests.load.shapes import Shape, job_message

PROCESSES: Final = 2
OPEN_THREADS: Final = 32
"""Threads of a process in an open loop: arrivals beyond them are late, and count as such."""
REPEATED_EVERY: Final = 50
"""Each so many requests is sent twice, as by a client that lost the answer."""
START: Final = 60.0
"""Seconds in which all processes must have started."""
CALL: Final = 20.0
"""Seconds that one try of a call may take."""
PAUSE: Final = 0.25
_AGAIN: Final = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}


@dataclass(frozen=True, slots=True)
class Order:
    """What the clients have to do."""

    address: str
    prefix: str
    shape: Shape
    seconds: float
    """How long each pod lasts."""
    clients: int
    """Closed loop: how many submit one job after the other. 0: open loop."""
    rate: float
    """Open loop: jobs a second."""
    patience: float
    """Seconds for which a job is tried again while nobody answers."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A job that was submitted. Times are seconds since the epoch."""

    number: int
    due: float
    """When it was to be sent: in a closed loop when it was."""
    answered: float
    uid: str
    """Empty: it was refused, or nobody answered."""
    tries: int
    error: str = ""
    repeated_as: str | None = None
    """The uid that the same request got when it was sent again; None: it was not."""


class Clients:
    """The running clients."""

    def __init__(
        self,
        processes: Sequence[multiprocessing.process.BaseProcess],
        results: Queue[list[Sent]],
        answered: Synchronized[int],
    ) -> None:
        self._processes = processes
        self._results = results
        self._answered = answered
        self._sent: list[Sent] = []

    @property
    def answered(self) -> int:
        """How many jobs were answered so far."""
        return self._answered.value

    def pids(self) -> list[int]:
        """Of the processes."""
        return [process.pid for process in self._processes if process.pid is not None]

    def result(self) -> list[Sent]:
        """Wait for the end, and what was sent."""
        for _ in self._processes:
            self._sent += self._results.get()
        for process in self._processes:
            process.join()
        return sorted(self._sent, key=lambda sent: sent.number)


@contextmanager
def running(order: Order) -> Iterator[Clients]:
    """Have client processes carry out an order."""
    context = multiprocessing.get_context("spawn")
    results: Queue[list[Sent]] = context.Queue()
    answered = context.Value("i", 0)
    together = context.Barrier(PROCESSES)
    processes = [
        context.Process(
            target=submit_share,
            args=(order, at, together, answered, results),
            daemon=True,
        )
        for at in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    try:
        yield Clients(processes, results, answered)
    finally:
        for process in processes:
            process.kill()


def submit_share(
    order: Order,
    at: int,
    together: Barrier,
    answered: Synchronized[int],
    results: Queue[list[Sent]],
) -> None:
    """Submit this process' share of the jobs. Runs in a process of its own.

    Args:
        order: what all of them have to do.
        at: which of them this is.
        together: where they wait for each other before the first job.
        answered: counts jobs.
        results: takes what was sent.
    """
    of = together.parties
    numbers = iter(range(at, order.shape.jobs, of))
    threads = order.clients // of + (at < order.clients % of) if order.clients else OPEN_THREADS
    lock = threading.Lock()
    together.wait(START)
    began = time.time()

    def next_number() -> int | None:
        with lock:
            return next(numbers, None)

    def client() -> list[Sent]:
        sent = []
        with connect(order.address) as channel:
            stub = JobServiceStub(channel)
            for number in iter(next_number, None):
                due = time.time() if order.clients else began + number / order.rate
                time.sleep(max(0.0, due - time.time()))
                sent.append(submit(stub, order, number, due))
                with answered.get_lock():
                    answered.value += 1
        return sent

    with ThreadPoolExecutor(max(1, threads)) as pool:
        parts = [pool.submit(client) for _ in range(threads)]
        results.put(list(itertools.chain.from_iterable(part.result() for part in parts)))


def submit(stub: JobServiceStub, order: Order, number: int, due: float) -> Sent:
    """Submit one job, again and again while nobody answers, always as the same request."""
    job = job_message(order.prefix, number, order.shape, order.seconds)
    request = messages.CreateJobRequest(job=job, request_id=job.metadata.name)
    for tries in itertools.count(1):
        try:
            uid = stub.CreateJob(request, timeout=CALL).job.metadata.uid
            answered = time.time()
            repeated = None
            if number % REPEATED_EVERY == 0:
                repeated = stub.CreateJob(request, timeout=CALL).job.metadata.uid
        except grpc.RpcError as error:
            code = error.code()
            if code not in _AGAIN or time.time() - due > order.patience:
                text = f"{code.name}: {error.details()}"
                return Sent(number, due, time.time(), "", tries, text)
            time.sleep(PAUSE)
        else:
            return Sent(number, due, answered, uid, tries, "", repeated)
    raise AssertionError("counts for ever")
