"""``python -m services.controller``: put the parts together and run until told to stop.

With a word of ``TOOLS`` it serves nothing and does something else.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from uuid import uuid4

import grpc

from hekla.kube.client import KubeClient
from hekla.lifecycle import Termination, repeating
from hekla.rpc import service
from hekla.rpc.admission import Admission
from hekla.store import feed_reader, incarnation, jobs, migrate, pod_groups, queues
from hekla.store.database import Database, now
from hekla.store.dispatcher import Dispatcher
from hekla.store.hub import Hub
from hekla.store.maintenance import maintain_once
from hekla.store.nudge import Nudge
from hekla.v1 import (
    job_service_pb2,
    job_service_pb2_grpc,
    pod_group_service_pb2,
    pod_group_service_pb2_grpc,
    queue_service_pb2,
    queue_service_pb2_grpc,
)
from services.controller import replay, uninstall
from services.controller.acting import Actor
from services.controller.attempt_calls import AttemptCalls
from services.controller.config import ControllerConfig
from services.controller.doctor import report as doctor
from services.controller.figures import Figures
from services.controller.job_calls import JobCalls
from services.controller.logs import PodLogs
from services.controller.many_calls import ManyCalls
from services.controller.mirror.owning import Owning
from services.controller.mirror.running import mirroring
from services.controller.observer import Observer
from services.controller.passes import Passes, PassLog, tell_owner
from services.controller.pod_group_calls import PodGroupCalls
from services.controller.queue_calls import QueueCalls
from services.controller.queue_counts import QueueCounts
from services.controller.rounds import Rounds
from services.controller.servicers.jobs import JobServicer
from services.controller.servicers.pod_groups import PodGroupServicer
from services.controller.servicers.queues import QueueServicer

log = logging.getLogger(__name__)

SERVICES = (
    job_service_pb2.DESCRIPTOR.services_by_name["JobService"].full_name,
    queue_service_pb2.DESCRIPTOR.services_by_name["QueueService"].full_name,
    pod_group_service_pb2.DESCRIPTOR.services_by_name["PodGroupService"].full_name,
)


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Run an observer until the block ends."""
    thread = threading.Thread(target=observer.run, name="observer", daemon=True)
    thread.start()
    try:
        with repeating(
            "finalizers",
            observer.release_once,
            idle=timedelta(seconds=1),
            wake=observer.owing,
        ):
            yield
    finally:
        observer.stop()
        thread.join(timeout=10)


def dispatching(
    database: Database, nudge: Nudge, actor: Actor, replica: str, settings: ControllerConfig
) -> Dispatcher:
    """Has jobs looked at when they are due: together, or one by one."""
    told, lease = PassLog(replica), settings.claim_lease
    return Dispatcher(
        database,
        nudge,
        Passes(database, actor, told, lease=lease).run,
        kinds=[jobs.KIND],
        workers=settings.workers,
        max_requeues=settings.max_requeue_num,
        lease=lease,
        tell=partial(tell_owner, failures=settings.max_requeue_num),
        together=Rounds(database, actor, told, lease=lease).look,
    )


def maintaining(database: Database, history_kept: timedelta) -> Callable[[], bool]:
    """Keeps the store in order, by the clock that all replicas share."""

    def maintain_now() -> bool:
        with database.transaction() as session:
            today = now(session)
        done = maintain_once(database, today, history_kept=history_kept)
        if done:
            log.info("store maintained", extra={"done": dataclasses.asdict(done)})
        return False

    return maintain_now


def registering(
    of_jobs: JobServicer, of_queues: QueueServicer, of_pod_groups: PodGroupServicer
) -> Callable[[grpc.Server], None]:
    """Adds the servicers to a server."""

    def register(server: grpc.Server) -> None:
        job_service_pb2_grpc.add_JobServiceServicer_to_server(of_jobs, server)
        queue_service_pb2_grpc.add_QueueServiceServicer_to_server(of_queues, server)
        pod_group_service_pb2_grpc.add_PodGroupServiceServicer_to_server(of_pod_groups, server)

    return register


def main(settings: ControllerConfig) -> None:
    """Drive jobs."""
    termination = Termination.by_signal()
    database = Database(settings.database_url, pool_size=settings.pool_size)
    replica = f"{socket.gethostname()}:{os.getpid()}"
    migrate.check(database)
    incarnation.settle(database)
    with database.transaction() as session:
        queues.make_well_known(session)
    nudge = Nudge(settings.database_direct_url or settings.database_url)
    database.on_change(nudge.poke)
    hub = Hub(
        database,
        {
            jobs.KIND: jobs.documents,
            pod_groups.KIND: pod_groups.documents,
            queues.KIND: queues.load,
        },
    )

    def schema() -> str | None:
        migrate.check(database)
        return None

    with ExitStack() as running:
        running.callback(database.close)
        admission = Admission(settings.webhook, service="controller")
        running.callback(admission.close)
        kube = running.enter_context(
            KubeClient.start(settings.kubeconfig or None, service="controller")
        )
        running.enter_context(nudge.running())
        observer = Observer(database, kube)
        counts, closing = QueueCounts(database), threading.Event()
        mirrors = running.enter_context(
            mirroring(
                database,
                admission,
                kube,
                hub,
                holder=f"{replica}:{uuid4()}",
                status_rate=settings.mirror_statuses,
                counts=counts,
                closing=closing.set,
            )
        )
        actor = Actor(kube, lease=settings.claim_lease, owning=Owning(kube, mirrors.mirror))
        dispatcher = dispatching(database, nudge, actor, replica, settings)
        running.enter_context(observing(observer))
        running.enter_context(dispatcher.draining())
        queue_calls = QueueCalls(database, admission, counts, mirrors.queues, closing)
        maintain = maintaining(database, settings.history_retention)
        running.enter_context(feed_reader.reading(hub, nudge, stop=termination))
        running.enter_context(repeating("claims", dispatcher.claim_once, idle=timedelta()))
        running.enter_context(
            repeating("figures", Figures(database, hub).measure_once, idle=timedelta(seconds=5))
        )
        running.enter_context(repeating("maintenance", maintain, idle=timedelta(minutes=1)))
        running.enter_context(
            repeating("queues", queue_calls.settle_once, idle=timedelta(seconds=1))
        )

        register = registering(
            JobServicer(
                JobCalls(database, admission, door=mirrors.jobs),
                ManyCalls(database, admission),
                AttemptCalls(database),
                hub,
                PodLogs(database, kube),
            ),
            QueueServicer(queue_calls, hub),
            PodGroupServicer(PodGroupCalls(database, admission), hub),
        )
        running.enter_context(
            service.listening(
                settings,
                termination,
                register=register,
                services=SERVICES,
                ready={
                    "schema": schema,
                    "feed": partial(feed_reader.lag, hub),
                    "pods": observer.problem,
                    "mirror": mirrors.problem,
                },
            )
        )
        running.callback(hub.stop)
        running.callback(nudge.hurry)
        termination.wait()


TOOLS: Mapping[str, Callable[[Sequence[str]], None]] = {
    "plan": replay.main,
    "doctor": doctor.main,
    "uninstall": uninstall.main,
}


if __name__ == "__main__":
    tool = TOOLS.get(sys.argv[1]) if len(sys.argv) > 1 else None
    if tool is not None:
        tool(sys.argv[2:])
    else:
        service.run("controller", ControllerConfig, main)
