"""``python -m services.flow``: put the parts together and run until told to stop."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from typing import Final

import grpc

from hekla.lifecycle import Termination, repeating
from hekla.rpc import service
from hekla.rpc.admission import Admission
from hekla.store import feed_reader, job_flows, job_templates, migrate, work
from hekla.store.database import Database
from hekla.store.dispatcher import Dispatcher
from hekla.store.hub import Hub
from hekla.store.nudge import FLOW_CHANNEL, Nudge
from hekla.telemetry import metrics
from hekla.v1 import (
    cron_job_service_pb2,
    cron_job_service_pb2_grpc,
    job_flow_service_pb2,
    job_flow_service_pb2_grpc,
    job_template_service_pb2,
    job_template_service_pb2_grpc,
)
from services.flow.acting import Actor
from services.flow.clients import Controller
from services.flow.config import FlowConfig
from services.flow.flow_calls import FlowCalls
from services.flow.mirror.running import Mirroring
from services.flow.observer import Observer
from services.flow.passes import KINDS, Passes, tell_owner
from services.flow.servicers.cron_jobs import CronJobServicer
from services.flow.servicers.job_flows import JobFlowServicer
from services.flow.servicers.job_templates import JobTemplateServicer
from services.flow.template_calls import TemplateCalls

SERVICES: Final = (
    job_flow_service_pb2.DESCRIPTOR.services_by_name["JobFlowService"].full_name,
    job_template_service_pb2.DESCRIPTOR.services_by_name["JobTemplateService"].full_name,
    cron_job_service_pb2.DESCRIPTOR.services_by_name["CronJobService"].full_name,
)


def registering(
    of_flows: JobFlowServicer, of_templates: JobTemplateServicer
) -> Callable[[grpc.Server], None]:
    """Adds the servicers to a server."""

    def register(server: grpc.Server) -> None:
        job_flow_service_pb2_grpc.add_JobFlowServiceServicer_to_server(of_flows, server)
        job_template_service_pb2_grpc.add_JobTemplateServiceServicer_to_server(
            of_templates, server
        )
        cron_job_service_pb2_grpc.add_CronJobServiceServicer_to_server(
            CronJobServicer(),  # type: ignore[abstract] # it serves nothing yet
            server,
        )

    return register


def main(settings: FlowConfig) -> None:
    """Drive flows."""
    termination = Termination.by_signal()
    database = Database(settings.database_url, pool_size=settings.pool_size)
    direct = settings.database_direct_url or settings.database_url
    nudge = Nudge(direct, FLOW_CHANNEL)
    database.on_change(nudge.poke)
    hub = Hub(
        database, {job_flows.KIND: job_flows.load, job_templates.KIND: job_templates.load}
    )

    def measure() -> bool:
        for kind in KINDS:
            with database.transaction() as session:
                due, oldest = work.depth(session, [kind])
            metrics.work_due.labels(kind).set(due)
            metrics.work_oldest_due_seconds.labels(kind).set(oldest)
        return False

    def schema() -> str | None:
        migrate.check(database)
        return None

    metrics.feed_lag_seconds.set_function(lambda: hub.seconds_behind)
    with ExitStack() as running:
        running.callback(database.close)
        admission = Admission(settings.webhook, service="flow")
        running.callback(admission.close)
        controller = Controller(settings.controller)
        mirroring = Mirroring.start(
            running,
            settings.kubeconfig,
            database=database,
            admission=admission,
            hub=hub,
        )
        running.enter_context(nudge.running())
        observer = Observer(database, controller)
        lease = settings.claim_lease
        passes = Passes(
            database,
            Actor(controller, lease=lease),
            replica=f"{socket.gethostname()}:{os.getpid()}",
            lease=lease,
            mirrored=mirroring.mirrored,
        )
        dispatcher = Dispatcher(
            database,
            nudge,
            passes.run,
            kinds=KINDS,
            workers=settings.workers,
            max_requeues=settings.max_requeue_num,
            lease=lease,
            tell=partial(tell_owner, failures=settings.max_requeue_num),
        )
        running.enter_context(observer.following())
        running.callback(controller.close)
        running.callback(observer.stop)
        running.enter_context(dispatcher.draining())
        nothing = timedelta(0)
        running.enter_context(feed_reader.reading(hub, nudge, stop=termination))
        running.enter_context(repeating("claims", dispatcher.claim_once, idle=nothing))
        running.enter_context(repeating("figures", measure, idle=timedelta(seconds=5)))
        register = registering(
            JobFlowServicer(  # type: ignore[abstract] # CommandJobFlow is not served yet
                FlowCalls(database, admission, mirroring.flows), hub
            ),
            JobTemplateServicer(TemplateCalls(database, admission, mirroring.templates), hub),
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
                    "jobs": observer.problem,
                    "mirror": mirroring.problem,
                },
            )
        )
        running.callback(hub.stop)
        running.callback(nudge.hurry)
        termination.wait()


if __name__ == "__main__":
    service.run("flow", FlowConfig, main)
