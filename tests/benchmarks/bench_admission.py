"""How fast admission is: ``python -m tests.benchmarks.bench_admission``.

In process on one core, then ``Review`` through gRPC with a server in another process' place:
threads of this one, which share its interpreter.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import grpc

from hekla.api import convert, decode, document
from hekla.api.job import DependsOn, Job
from hekla.rpc.channel import connect
from hekla.rpc.server import serving
from hekla.v1 import admission_service_pb2 as messages, admission_service_pb2_grpc, job_pb2
from services.webhook.convert import review
from services.webhook.rules.admission import Operation
from services.webhook.rules.world import Limits
from services.webhook.servicer import SERVICES
from tests.support.objects import make_queue
from tests.support.worlds import FixedWorld

EXAMPLE: Final = Path(__file__).resolve().parents[2] / "examples" / "job.yaml"
WORLD: Final = FixedWorld(make_queue("test"))
LIMITS: Final = Limits()
MOST_MS: Final = 3.0
MOST_LARGE_MS: Final = 300.0
LEAST_PER_SECOND: Final = 300.0
TASKS: Final = 1000
REVIEWS: Final = 3000
THREADS: Final = 8


def example() -> Job:
    """The job of the examples."""
    read = [decode.read(each.value) for each in document.load(EXAMPLE.read_bytes())]
    [job] = [each for each in read if isinstance(each, Job)]
    return job


def request(job: Job) -> messages.AdmissionRequest:
    """A request to create it."""
    return messages.AdmissionRequest(
        operation=Operation.CREATE, job=convert.to_message(job, job_pb2.Job)
    )


def large(tasks: int) -> Job:
    """The example with many tasks, each after the one before."""
    job = example()
    [first, *_] = job.spec.tasks or []
    listed = [
        first.model_copy(
            update={
                "name": f"t{n}",
                "depends_on": DependsOn(name=[f"t{n - 1}"]) if n else None,
            }
        )
        for n in range(tasks)
    ]
    spec = job.spec.model_copy(update={"tasks": listed, "min_available": 1})
    return job.model_copy(update={"spec": spec})


def milliseconds(act: Callable[[], Any], times: int) -> list[float]:
    """How long ``act`` took, each time."""
    took = []
    for _ in range(times):
        start = time.perf_counter()
        act()
        took.append((time.perf_counter() - start) * 1000)
    return took


class FixedServicer(admission_service_pb2_grpc.AdmissionServiceServicer):
    """Reviews in a world that never changes, so that admission is what is measured."""

    def Review(  # noqa: N802 - gRPC calls it so
        self,
        request: messages.ReviewRequest,
        context: grpc.ServicerContext,
    ) -> messages.ReviewResponse:
        answers = [review(each, WORLD, LIMITS) for each in request.requests]
        return messages.ReviewResponse(responses=answers)


def per_second() -> float:
    """Reviews through gRPC."""

    def register(server: grpc.Server) -> None:
        admission_service_pb2_grpc.add_AdmissionServiceServicer_to_server(
            FixedServicer(), server
        )

    asked = messages.ReviewRequest(requests=[request(example())])
    with (
        serving(register, listen="127.0.0.1:0", threads=THREADS, services=SERVICES) as server,
        connect(server.address) as channel,
        ThreadPoolExecutor(THREADS) as threads,
    ):
        stub = admission_service_pb2_grpc.AdmissionServiceStub(channel)
        stub.Review(asked, timeout=10)
        start = time.perf_counter()
        for answer in threads.map(lambda _: stub.Review(asked, timeout=30), range(REVIEWS)):
            assert answer.responses[0].allowed
        return REVIEWS / (time.perf_counter() - start)


def main() -> int:
    """Say what was measured; 1 if a floor is missed."""
    asked = request(example())
    assert review(asked, WORLD, LIMITS).allowed
    one = statistics.median(milliseconds(lambda: review(asked, WORLD, LIMITS), 500))
    thousand, once = _large(TASKS)
    _, twice = _large(2 * TASKS)
    rate = per_second()
    sys.stdout.write(
        f"review of the examples' job, p50  {one:8.2f} ms  (at most {MOST_MS})\n"
        f"review of {TASKS} tasks            {thousand:8.1f} ms  (at most {MOST_LARGE_MS})\n"
        f"twice as many tasks take          {twice / once:8.2f} times the work\n"
        f"reviews through gRPC              {rate:8.0f} /s  (at least {LEAST_PER_SECOND})\n"
    )
    met = one <= MOST_MS and thousand <= MOST_LARGE_MS and rate >= LEAST_PER_SECOND
    return 0 if met else 1


def _large(tasks: int) -> tuple[float, float]:
    """The time that a job of so many tasks takes, and the work that it is."""
    many = request(large(tasks))
    assert review(many, WORLD, LIMITS).allowed
    work = []
    for _ in range(3):
        start = time.thread_time()
        review(many, WORLD, LIMITS)
        work.append(time.thread_time() - start)
    return min(milliseconds(lambda: review(many, WORLD, LIMITS), 5)), min(work)


if __name__ == "__main__":
    sys.exit(main())
