"""``python -m services.scheduler``: put the parts together and run until told to stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from threading import Event
from typing import Final

from hekla import lifecycle
from hekla.kube.client import KubeClient
from hekla.kube.fence import Fence, Progress
from hekla.kube.rival import LOOK_EVERY, Rival
from hekla.lifecycle import Loop, Termination
from hekla.rpc import service
from hekla.rpc.channel import connect
from hekla.store import binds
from hekla.store.database import Database
from services.scheduler.binder import Binder
from services.scheduler.cache import Cache
from services.scheduler.campaign import LEASE, Campaign, new_holder
from services.scheduler.clients import Controller
from services.scheduler.config import SchedulerConfig
from services.scheduler.events import Kind
from services.scheduler.inbox import Inbox
from services.scheduler.loop import Figures, Scheduler
from services.scheduler.policies import Policies
from services.scheduler.projection import VOLUME_CLAIMS
from services.scheduler.readiness import Readiness
from services.scheduler.renewal import Renewal
from services.scheduler.servicer import SERVICES, register
from services.scheduler.sources import Stream, watching
from services.scheduler.telling import Conditions, Reports
from services.scheduler.topology import LOOK_EVERY as COUNT_EVERY, Topology

TICK: Final = timedelta(milliseconds=200)
"""Between two looks of a loop that nobody woke."""
PRUNE_INTERVAL: Final = timedelta(minutes=1)
PRUNE_AFTER: Final = timedelta(hours=1)
RELEASE_TIMEOUT: Final = timedelta(seconds=3)


def main(settings: SchedulerConfig) -> None:
    """Schedule, or stand by."""
    termination = Termination.by_signal()
    fence, progress, inbox = Fence(), Progress(), Inbox()
    policies = Policies(
        settings.conf,
        progress.move,
        provided=(VOLUME_CLAIMS,) if settings.shared_volumes else (),
    )
    holder = new_holder()
    database = Database(settings.database_url, pool_size=4)
    channel = connect(settings.controller, service="scheduler")
    controller = Controller(channel)
    streams = [Stream(kind, controller, inbox) for kind in (Kind.GROUP, Kind.QUEUE)]
    cache = Cache(settings.scheduler_name, progress.move)

    with ExitStack() as running:
        running.callback(database.close)
        client = running.enter_context(
            KubeClient.start(
                None if settings.kubeconfig is None else str(settings.kubeconfig),
                fence=fence,
                progress=progress,
                companion=Renewal(
                    database_url=settings.database_url,
                    lease=LEASE,
                    holder=holder,
                    ttl=settings.lease_ttl,
                    stall_timeout=settings.stall_timeout,
                ),
                concurrency=settings.kube_concurrency,
                service="scheduler",
            )
        )
        rival = Rival(client, names=[settings.scheduler_name])
        readiness = Readiness(database, cache, streams, rival.problem)
        binder = Binder(
            database,
            client,
            inbox.put,
            timeout=settings.bind_timeout,
            batch=settings.bind_batch,
        )
        campaign = Campaign(
            database,
            inbox,
            fence,
            holder=holder,
            ttl=settings.lease_ttl,
            takeover_pause=settings.bind_timeout,
            hindrance=readiness.to_lead,
            at_rest=binder.at_rest,
        )
        reports = Reports(controller.report, inbox.put)
        conditions = Conditions(
            client,
            inbox.put,
            batch=max(1, round(settings.condition_rate * TICK.total_seconds())),
        )
        scheduler = Scheduler(
            settings,
            cache=cache,
            inbox=inbox,
            policies=policies,
            fence=fence,
            progress=progress,
            campaign=campaign,
            binder=binder,
            reports=reports,
            conditions=conditions,
            stale=readiness.to_decide,
        )

        def loop(
            work: Callable[[], bool], name: str, idle: timedelta, wake: Event | None = None
        ) -> Loop:
            return running.enter_context(lifecycle.repeating(name, work, idle=idle, wake=wake))

        def drained() -> bool:
            return binder.done() and reports.done()

        def leave() -> None:
            """Carry out what is decided, then let another lead; the others have stopped."""
            reports.hurry()
            by = time.monotonic() + settings.drain_timeout.total_seconds()
            _wait(lambda: drained() or fence.left() == 0, by, progress)
            scheduler.resign()
            by = time.monotonic() + RELEASE_TIMEOUT.total_seconds()
            _wait(lambda: campaign.retired, by, progress)

        running.callback(inbox.close)
        loop(rival.look, "rival", LOOK_EVERY)
        topology = Topology(client, lambda: scheduler.figures.leading)
        running.callback(topology.close)
        loop(topology.look, "topology", COUNT_EVERY)
        running.enter_context(watching(client, topology.before(inbox.put)))
        for stream in streams:
            running.enter_context(stream.following())
        running.callback(channel.close)
        for stream in streams:
            running.callback(stream.stop)
        loop(campaign.look, "campaign", TICK)
        loop(_pruning(database, scheduler.figures), "prune", PRUNE_INTERVAL)
        loop(binder.look, "binds", TICK, binder.wake)
        loop(reports.look, "reports", TICK, reports.wake)
        loop(conditions.look, "conditions", TICK)
        running.callback(leave)
        thinking = loop(scheduler.step, "scheduler", timedelta())
        running.enter_context(
            service.listening(
                settings,
                termination,
                register=lambda server: register(server, cache, campaign, scheduler.figures),
                services=SERVICES,
                ready={
                    "schema": readiness.schema,
                    "volcano": readiness.alone,
                    "cache": readiness.filled,
                    "feed": readiness.fresh,
                    "scheduler": thinking.problem,
                },
            )
        )
        termination.wait()
        scheduler.retire()


def _pruning(database: Database, figures: Figures) -> Callable[[], bool]:
    """Forgets old binds while we lead."""

    def prune() -> bool:
        if figures.leading:
            with database.transaction() as session:
                binds.prune(session, older_than=PRUNE_AFTER)
        return False

    return prune


def _wait(done: Callable[[], bool], by: float, progress: Progress) -> None:
    while not done() and time.monotonic() < by:
        progress.move()
        time.sleep(0.02)


if __name__ == "__main__":
    service.run("scheduler", SchedulerConfig, main)
