"""The controller in this process: its services on real sockets, its passes over pods in memory.

The webhook is the real one too, on a port of its own; who needs neither drives jobs with a
``Driver`` alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, cast
from uuid import UUID

import grpc
import pytest
from sqlalchemy import text

from hekla.api.convert import to_message
from hekla.api.job import Job
from hekla.api.pod_group import PodGroupCondition, PodGroupStatus
from hekla.domain.errors import NotFoundError
from hekla.domain.phases import JobAction, JobPhase, PodGroupPhase
from hekla.domain.trigger import Command
from hekla.kube.client import KubeClient
from hekla.kube.requests import Deletion, Reply
from hekla.lifecycle import repeating
from hekla.rpc.admission import Admission
from hekla.rpc.channel import connect
from hekla.rpc.server import serving
from hekla.store import commands, jobs, leases, pod_groups, queues
from hekla.store.database import Database
from hekla.store.hub import Hub
from hekla.store.jobs import StoredJob
from hekla.store.work import Claim
from hekla.v1 import (
    admission_service_pb2_grpc,
    job_pb2,
    job_service_pb2 as messages,
    job_service_pb2_grpc,
    pod_group_service_pb2_grpc,
    queue_service_pb2_grpc,
)
from services.controller.__main__ import SERVICES
from services.controller.acting import Actor
from services.controller.attempt_calls import AttemptCalls
from services.controller.job_calls import JobCalls
from services.controller.logs import PodLogs
from services.controller.many_calls import ManyCalls
from services.controller.observer import Observer
from services.controller.passes import Outcome, Passes, PassLog
from services.controller.pod_group_calls import SCHEDULER_LEASE, PodGroupCalls
from services.controller.queue_calls import QueueCalls
from services.controller.queue_counts import QueueCounts
from services.controller.rounds import Rounds
from services.controller.servicers.jobs import JobServicer
from services.controller.servicers.pod_groups import PodGroupServicer
from services.controller.servicers.queues import QueueServicer
from services.webhook.rules.world import Limits
from services.webhook.servicer import SERVICES as WEBHOOK_SERVICES, AdmissionServicer
from tests.support.objects import make_job
from tests.support.pod_api import Pod, PodApi

LEASE: Final = timedelta(seconds=30)
CHUNK: Final = 10
"""Jobs that CreateJobs stores in one transaction here."""
SOON: Final = 20.0
"""Seconds. Every call has a deadline; none comes near it."""


@dataclass(slots=True)
class Scene:
    """A controller that serves."""

    database: Database
    address: str
    webhook: str
    queue_calls: QueueCalls
    jobs: job_service_pb2_grpc.JobServiceStub
    queues: queue_service_pb2_grpc.QueueServiceStub
    groups: pod_group_service_pb2_grpc.PodGroupServiceStub
    hub: Hub
    stop: Callable[[], None]
    """Stop serving, as at the end of the process."""
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(10**6)))

    def create(self, job: Job | None = None, *, request_id: str = "") -> job_pb2.Job:
        """Have a job stored; by default one of one pod, with a name of its own."""
        given = job or make_job(f"j{next(self.numbers)}")
        request = messages.CreateJobRequest(job=message(given), request_id=request_id)
        return self.jobs.CreateJob(request, timeout=SOON).job

    def get(self, job: job_pb2.Job) -> job_pb2.Job:
        """The job as it is now, or as it was when it was removed."""
        request = messages.GetJobRequest(uid=job.metadata.uid)
        return self.jobs.GetJob(request, timeout=SOON).job

    def command(
        self, job: job_pb2.Job, action: str, *, index: int | None = None, **more: Any
    ) -> job_pb2.Job:
        """Ask for something by name."""
        request = messages.CommandJobRequest(
            namespace=job.metadata.namespace, name=job.metadata.name, action=action, **more
        )
        if index is not None:
            request.index = index
        return self.jobs.CommandJob(request, timeout=SOON).job

    def delete(self, job: job_pb2.Job, **more: Any) -> job_pb2.Job:
        """Ask for the job's removal, by name."""
        request = messages.DeleteJobRequest(
            namespace=job.metadata.namespace, name=job.metadata.name, **more
        )
        return self.jobs.DeleteJob(request, timeout=SOON).job


def message(job: Job) -> job_pb2.Job:
    """The job as it is sent."""
    return to_message(job, job_pb2.Job)


@contextmanager
def scene(
    database: Database,
    *,
    kube: KubeClient | None = None,
    webhook: bool = True,
    stream_permits: int = 64,
) -> Iterator[Scene]:
    """Serve everything over ``database``, pods by ``kube``."""
    with database.transaction() as session:
        queues.make_well_known(session)
    changed = threading.Event()
    database.on_change(changed.set)
    hub = Hub(
        database,
        {
            jobs.KIND: jobs.documents,
            pod_groups.KIND: pod_groups.documents,
            queues.KIND: queues.load,
        },
    )
    with ExitStack() as running:
        where = running.enter_context(webhook_at(database)) if webhook else "127.0.0.1:1"
        admission = Admission(where)
        running.callback(admission.close)
        pause = timedelta(milliseconds=100)
        running.enter_context(repeating("feed", hub.read_once, idle=pause, wake=changed))
        queue_calls = QueueCalls(database, admission, QueueCounts(database))
        logs = PodLogs(database, kube or cast("KubeClient", Pods()))

        def register(server: grpc.Server) -> None:
            job_service_pb2_grpc.add_JobServiceServicer_to_server(
                JobServicer(
                    JobCalls(database, admission),
                    ManyCalls(database, admission, chunk=CHUNK),
                    AttemptCalls(database),
                    hub,
                    logs,
                ),
                server,
            )
            queue_service_pb2_grpc.add_QueueServiceServicer_to_server(
                QueueServicer(queue_calls, hub), server
            )
            pod_group_service_pb2_grpc.add_PodGroupServiceServicer_to_server(
                PodGroupServicer(PodGroupCalls(database, admission), hub), server
            )

        listening = running.enter_context(ExitStack())
        server = listening.enter_context(
            serving(
                register,
                listen="127.0.0.1:0",
                threads=16,
                services=SERVICES,
                stream_permits=stream_permits,
            )
        )
        listening.callback(hub.stop)
        channel = running.enter_context(connect(server.address))
        yield Scene(
            database=database,
            address=server.address,
            webhook=where,
            queue_calls=queue_calls,
            jobs=job_service_pb2_grpc.JobServiceStub(channel),
            queues=queue_service_pb2_grpc.QueueServiceStub(channel),
            groups=pod_group_service_pb2_grpc.PodGroupServiceStub(channel),
            hub=hub,
            stop=listening.close,
        )


@contextmanager
def webhook_at(database: Database, listen: str = "127.0.0.1:0") -> Iterator[str]:
    """Serve admission; give its address."""

    def register(server: grpc.Server) -> None:
        admission_service_pb2_grpc.add_AdmissionServiceServicer_to_server(
            AdmissionServicer(database, Limits()), server
        )

    with serving(register, listen=listen, threads=8, services=WEBHOOK_SERVICES) as server:
        yield server.address


@contextmanager
def refused(code: grpc.StatusCode, *words: str) -> Iterator[None]:
    """The block's call is refused so, and the message has all of ``words``."""
    with pytest.raises(grpc.RpcError) as caught:
        yield
    call = cast("grpc.Call", caught.value)
    assert call.code() is code, call.details()
    for word in words:
        assert word in (call.details() or "")


class NoLog:
    """The log of a pod that is not there, as the client gives it."""

    def __init__(self, why: str) -> None:
        self._why = why

    def __iter__(self) -> Iterator[bytes]:
        raise NotFoundError(self._why)

    def close(self) -> None:
        """There is nothing to close."""


class Pods(PodApi):
    """Pods in memory, where some creates are refused."""

    def __init__(self) -> None:
        super().__init__()
        self.refuse: Callable[[Pod], Reply | None] = lambda _: None
        """The answer to a create that is not done; None lets it be done."""
        self.deleting: Callable[[Deletion], None] = lambda _: None
        """Called when a pod is asked to go."""
        self.deletes = 0
        """How often one was."""

    def logs(self, namespace: str, name: str, *_: Any, **__: Any) -> NoLog:
        """No pod here prints anything."""
        return NoLog(f"pod {namespace}/{name} has no log")

    def _create(self, pod: Pod) -> Reply:
        return self.refuse(pod) or super()._create(pod)

    def _delete(self, deletion: Deletion) -> Reply:
        self.deleting(deletion)
        self.deletes += 1
        return super()._delete(deletion)


_CLAIM_NOW: Final = text("""
    insert into work (kind, uid, due_at, claim_token, claimed_until)
    select :kind, uid, clock_timestamp(), gen_random_uuid(), clock_timestamp() + :lease
      from unnest(cast(:uids as text[])) as uid
    on conflict (kind, uid) do update
       set claim_token = excluded.claim_token, claimed_until = excluded.claimed_until,
           due_at = excluded.due_at, not_before = null, urgent = false
    returning kind, uid, claim_token, wake_seq, failures
""")


class Driver:
    """Makes passes when a test says so, and lets pods live."""

    def __init__(self, database: Database, pods: Pods | None = None) -> None:
        self.database = database
        self.pods = pods or Pods()
        client = cast("KubeClient", self.pods)
        self.observer = Observer(database, client)
        actor, told = Actor(client, lease=LEASE), PassLog("test")
        self.passes = Passes(database, actor, told, lease=LEASE)
        self.rounds = Rounds(database, actor, told, lease=LEASE)

    def claim(self, *uids: UUID | str) -> list[Claim]:
        """Claim these jobs, whatever they wait for."""
        with self.database.transaction() as session:
            values = {"kind": jobs.KIND, "uids": [str(uid) for uid in uids], "lease": LEASE}
            return [Claim(*row) for row in session.execute(_CLAIM_NOW, values)]

    def look(self, *uids: UUID | str) -> list[Outcome]:
        """One pass over each job, now."""
        return [self.passes.run(claim) for claim in self.claim(*uids)]

    def look_together(self, *uids: UUID | str) -> set[UUID]:
        """One look at all of the jobs, now; those that want a look of their own."""
        return {UUID(claim.uid) for claim in self.rounds.look(self.claim(*uids))}

    def admit(self, uid: UUID | str, phase: PodGroupPhase = PodGroupPhase.INQUEUE) -> None:
        """The scheduler's word on the job's group."""
        self.report(uid, PodGroupStatus(phase=phase))

    def report(self, uid: UUID | str, status: PodGroupStatus) -> None:
        """The scheduler's whole word on the job's group."""
        with self.database.transaction() as session:
            group = pod_groups.of_job(session, UUID(str(uid)))
            assert group is not None
            pod_groups.report(session, 1, {group.uid: status})

    def observe(self) -> None:
        """All that happened to pods is seen, and written down."""
        while self.pods.events:
            self.observer.take(self.pods.take_events())
            self.observer.release_once()

    def start(self, uid: UUID | str) -> None:
        """Let the job's pods be made and run."""
        self.look(uid)
        self.admit(uid, PodGroupPhase.RUNNING)
        self.look(uid)
        self.each("Pending", self.pods.start)
        self.look(uid)

    def end(self, uid: UUID | str, code: int = 0) -> None:
        """Let the running pods come to their end."""
        self.each("Running", lambda name: self.pods.end(name, code))
        self.look(uid)

    def each(self, phase: str, act: Callable[[str], None]) -> None:
        """Do it to every pod in that phase, and see it."""
        for name in self.names(phase):
            act(name)
        self.observe()

    def names(self, phase: str | None = None) -> list[str]:
        """Names of pods, or of those in one phase."""
        return sorted(
            name
            for name, pod in self.pods.pods.items()
            if phase in (None, pod["status"]["phase"])
        )

    def stop_pods(self, uid: UUID | str) -> None:
        """Kubelets end what was asked to go, until nothing is left to do."""
        for _ in range(20):
            leaving = [
                name
                for name, pod in self.pods.pods.items()
                if "deletionTimestamp" in pod["metadata"]
                and pod["status"]["phase"] == "Running"
            ]
            for name in leaving:
                self.pods.end(name, 143)
            self.observe()
            self.look(uid)
            if not leaving and not self.pods.events:
                return
        raise AssertionError(f"pods go on going: {self.names()}")

    def ask(self, uid: UUID | str, action: JobAction, **more: Any) -> None:
        """Command it."""
        with self.database.transaction() as session:
            commands.ask(session, UUID(str(uid)), Command(0, action, **more))

    def job(self, uid: UUID | str) -> StoredJob:
        """The job as it is."""
        with self.database.transaction() as session:
            return jobs.get_by_uid(session, UUID(str(uid)))

    def phase(self, uid: UUID | str) -> JobPhase:
        """Where the job stands."""
        return JobPhase(self.job(uid).job.status.state.phase or "")


def lead(database: Database) -> int:
    """Make somebody the leading scheduler; its epoch."""
    with database.transaction() as session:
        session.execute(text("update lease set released = true"))
        taken = leases.acquire(session, SCHEDULER_LEASE, holder="test", ttl=LEASE)
        assert taken is not None
        return taken.epoch


def unschedulable(message_: str) -> PodGroupStatus:
    """What the scheduler says of a group that it cannot place."""
    return PodGroupStatus(
        phase=PodGroupPhase.INQUEUE,
        conditions=[
            PodGroupCondition(
                type="Unschedulable", status="True", reason="NotEnough", message=message_
            )
        ],
    )


def until(stream: Iterable[Any], done: Callable[[Any], bool]) -> list[Any]:
    """Messages of a stream up to the first for which ``done`` holds."""
    seen = []
    for one in stream:
        seen.append(one)
        if done(one):
            return seen
    raise AssertionError(f"the stream ended after {seen}")
