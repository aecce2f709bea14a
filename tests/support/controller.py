# ruff: noqa: N802  # methods are named by the protos
"""A controller in memory, to hold the client and the command line against.

It keeps the contract of the protos where a client can tell: versions, cursors, deletion that
takes its time. It plans nothing; tests move jobs along themselves.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import grpc

from hekla.domain import timestamps
from hekla.domain.errors import (
    AlreadyExistsError,
    CursorExpiredError,
    ExhaustedError,
    InvalidError,
    NotFoundError,
    PreconditionError,
    Violation,
)
from hekla.rpc.server import serving
from hekla.v1 import job_pb2, job_service_pb2 as jobs, queue_pb2, queue_service_pb2 as queues
from hekla.v1.job_service_pb2_grpc import JobServiceServicer, add_JobServiceServicer_to_server
from hekla.v1.queue_service_pb2_grpc import (
    QueueServiceServicer,
    add_QueueServiceServicer_to_server,
)

Key = tuple[str, str]


class Controller(JobServiceServicer, QueueServiceServicer):
    """Jobs and queues in memory."""

    def __init__(self) -> None:
        self.jobs: dict[Key, job_pb2.Job] = {}
        self.queues: dict[str, queue_pb2.Queue] = {}
        self.pods: list[jobs.PodView] = []
        self.logs: dict[str, list[bytes]] = {}
        self.requests: list[str] = []
        """The request ids that came, in order."""
        self.watches = 0
        """How many streams were opened so far."""
        self.oldest = 0
        self.crowded = 0
        """How many streams more are ended after their first changes: nobody has read enough."""
        self._feed: list[jobs.WatchJobsResponse] = []
        self._changed = threading.Condition()

    def move(self, name: str, phase: str, namespace: str = "default") -> None:
        """Bring a job into a phase, as the real one would: with a condition."""
        with self._changed:
            job = self.jobs[namespace, name]
            job.status.state.phase = phase
            job.status.conditions.add(status=phase)
            self._record("MODIFIED", job)

    def remove(self, name: str, namespace: str = "default") -> None:
        """End a job's removal."""
        with self._changed:
            self._record("DELETED", self.jobs.pop((namespace, name)))

    def forget_changes(self) -> None:
        """Let every cursor so far be too old."""
        with self._changed:
            self.oldest = len(self._feed)

    def add_pod(self, job: str, task: str, index: int, *printed: bytes) -> None:
        """Let a job have a pod that printed something."""
        pod = f"{job}-{task}-{index}"
        self.logs[pod] = list(printed)
        attempt = job_pb2.Attempt(
            uid=f"a-{pod}", task=task, index=index, run=0, pod_name=pod, phase="Running"
        )
        self.pods.append(jobs.PodView(namespace="default", job=job, attempt=attempt))

    def _record(self, kind: str, job: job_pb2.Job) -> None:
        cursor = str(len(self._feed) + 1)
        self._feed.append(jobs.WatchJobsResponse(cursor=cursor, type=kind, job=job))
        self._changed.notify_all()

    def _job(self, namespace: str, name: str) -> job_pb2.Job:
        found = self.jobs.get((namespace, name))
        if found is None:
            raise NotFoundError(f"job {namespace}/{name} does not exist")
        return found

    # ---- jobs

    def CreateJob(
        self, request: jobs.CreateJobRequest, context: grpc.ServicerContext
    ) -> jobs.CreateJobResponse:
        self.requests.append(request.request_id)
        metadata = request.job.metadata
        if not metadata.name:
            metadata.name = f"{metadata.generate_name}{len(self.jobs)}"
        key = (metadata.namespace, metadata.name)
        names = [task.name for task in request.job.spec.tasks]
        if len(names) != len(set(names)):
            raise InvalidError.of([Violation("spec.tasks[1].name", f"is {names[1]} already")])
        with self._changed:
            if key in self.jobs:
                raise AlreadyExistsError(f"job {key[0]}/{key[1]} exists")
            job = job_pb2.Job()
            job.CopyFrom(request.job)
            job.metadata.uid = str(uuid.uuid4())
            job.metadata.generation = 1
            job.metadata.creation_timestamp = timestamps.to_text(datetime.now(UTC))
            job.status.state.phase = "Pending"
            self.jobs[key] = job
            self._record("ADDED", job)
        warnings = ["spec.volumes: is not served yet"] if job.spec.volumes else []
        return jobs.CreateJobResponse(job=job, warnings=warnings)

    def GetJob(
        self, request: jobs.GetJobRequest, context: grpc.ServicerContext
    ) -> jobs.GetJobResponse:
        with self._changed:
            return jobs.GetJobResponse(job=self._job(request.namespace, request.name))

    def ListJobs(
        self, request: jobs.ListJobsRequest, context: grpc.ServicerContext
    ) -> jobs.ListJobsResponse:
        with self._changed:
            found = [
                job
                for (namespace, _), job in sorted(self.jobs.items())
                if request.namespace in ("", namespace)
            ]
            start = int(request.page_token or 0)
            page = found[start : start + request.page_size]
            more = start + len(page) < len(found)
            return jobs.ListJobsResponse(
                jobs=page,
                cursor=str(len(self._feed)),
                next_page_token=str(start + len(page)) if more else "",
            )

    def WatchJobs(
        self, request: jobs.WatchJobsRequest, context: grpc.ServicerContext
    ) -> Iterator[jobs.WatchJobsResponse]:
        self.watches += 1
        at = int(request.cursor or 0)
        while context.is_active():
            with self._changed:
                if at < self.oldest:
                    raise CursorExpiredError("the cursor is too old")
                new = self._feed[at:]
                if not new:
                    self._changed.wait(0.05)
            at += len(new)
            for change in new:
                metadata = change.job.metadata
                if request.name in ("", metadata.name):
                    yield change
            if new and self.crowded:
                self.crowded -= 1
                raise ExhaustedError("the watcher reads too slowly; resume")

    def UpdateJob(
        self, request: jobs.UpdateJobRequest, context: grpc.ServicerContext
    ) -> jobs.UpdateJobResponse:
        self.requests.append(request.request_id)
        with self._changed:
            job = self._job(request.job.metadata.namespace, request.job.metadata.name)
            if job.spec != request.job.spec:
                changed = job_pb2.Job()
                changed.CopyFrom(job)
                changed.spec.CopyFrom(request.job.spec)
                changed.metadata.generation += 1
                self.jobs[job.metadata.namespace, job.metadata.name] = job = changed
                self._record("MODIFIED", job)
            return jobs.UpdateJobResponse(job=job)

    def DeleteJob(
        self, request: jobs.DeleteJobRequest, context: grpc.ServicerContext
    ) -> jobs.DeleteJobResponse:
        self.requests.append(request.request_id)
        with self._changed:
            job = self._job(request.namespace, request.name)
            job.metadata.deletion_timestamp = timestamps.to_text(datetime.now(UTC))
            self._record("MODIFIED", job)
            return jobs.DeleteJobResponse(job=job)

    def CommandJob(
        self, request: jobs.CommandJobRequest, context: grpc.ServicerContext
    ) -> jobs.CommandJobResponse:
        with self._changed:
            job = self._job(request.namespace, request.name)
        self.requests.append(request.action)
        return jobs.CommandJobResponse(job=job)

    def CreateJobs(
        self, request: jobs.CreateJobsRequest, context: grpc.ServicerContext
    ) -> jobs.CreateJobsResponse:
        self.requests.append(request.request_id)
        return jobs.CreateJobsResponse(uids=[f"uid-{suffix}" for suffix in request.suffixes])

    def ListAttempts(
        self, request: jobs.ListAttemptsRequest, context: grpc.ServicerContext
    ) -> jobs.ListAttemptsResponse:
        found = [pod.attempt for pod in self.pods if pod.job == request.name]
        return jobs.ListAttemptsResponse(attempts=found)

    def ListJobEvents(
        self, request: jobs.ListJobEventsRequest, context: grpc.ServicerContext
    ) -> jobs.ListJobEventsResponse:
        self._job(request.namespace, request.name)
        told = job_pb2.JobEvent(
            type="Normal", reason="Running", message="was Pending", at="2026-01-02T03:04:05Z"
        )
        return jobs.ListJobEventsResponse(events=[told])

    def ListPods(
        self, request: jobs.ListPodsRequest, context: grpc.ServicerContext
    ) -> jobs.ListPodsResponse:
        found = [pod for pod in self.pods if request.job in ("", pod.job)]
        return jobs.ListPodsResponse(pods=found)

    def GetLogs(
        self, request: jobs.GetLogsRequest, context: grpc.ServicerContext
    ) -> Iterator[jobs.GetLogsResponse]:
        if request.pod not in self.logs:
            raise PreconditionError(f"pod {request.pod} waits to start")
        for data in self.logs[request.pod]:
            yield jobs.GetLogsResponse(data=data, pod=request.pod)

    # ---- queues

    def CreateQueue(
        self, request: queues.CreateQueueRequest, context: grpc.ServicerContext
    ) -> queues.CreateQueueResponse:
        name = request.queue.metadata.name
        if name in self.queues:
            raise AlreadyExistsError(f"queue {name} exists")
        self.queues[name] = request.queue
        return queues.CreateQueueResponse(queue=request.queue)

    def GetQueue(
        self, request: queues.GetQueueRequest, context: grpc.ServicerContext
    ) -> queues.GetQueueResponse:
        if request.name not in self.queues:
            raise NotFoundError(f"queue {request.name} does not exist")
        return queues.GetQueueResponse(queue=self.queues[request.name])

    def ListQueues(
        self, request: queues.ListQueuesRequest, context: grpc.ServicerContext
    ) -> queues.ListQueuesResponse:
        return queues.ListQueuesResponse(queues=self.queues.values(), cursor="0")

    def UpdateQueue(
        self, request: queues.UpdateQueueRequest, context: grpc.ServicerContext
    ) -> queues.UpdateQueueResponse:
        self.queues[request.queue.metadata.name] = request.queue
        return queues.UpdateQueueResponse(queue=request.queue)

    def WatchQueues(
        self, request: queues.WatchQueuesRequest, context: grpc.ServicerContext
    ) -> Iterator[queues.WatchQueuesResponse]:
        for queue in self.queues.values():
            yield queues.WatchQueuesResponse(cursor="1", type="ADDED", queue=queue)

    def CommandQueue(
        self, request: queues.CommandQueueRequest, context: grpc.ServicerContext
    ) -> queues.CommandQueueResponse:
        if request.name not in self.queues:
            raise NotFoundError(f"queue {request.name} does not exist")
        queue = self.queues[request.name]
        queue.status.state = {"OpenQueue": "Open", "CloseQueue": "Closed"}[request.action]
        return queues.CommandQueueResponse(queue=queue)

    def DeleteQueue(
        self, request: queues.DeleteQueueRequest, context: grpc.ServicerContext
    ) -> queues.DeleteQueueResponse:
        if any(job.spec.queue == request.name for job in self.jobs.values()):
            raise PreconditionError(f"queue {request.name} has jobs")
        if self.queues.pop(request.name, None) is None:
            raise NotFoundError(f"queue {request.name} does not exist")
        return queues.DeleteQueueResponse()


@contextmanager
def controller_at(listen: str, served: Controller) -> Iterator[str]:
    """Serve ``served``; give its address."""

    def register(server: grpc.Server) -> None:
        add_JobServiceServicer_to_server(served, server)
        add_QueueServiceServicer_to_server(served, server)

    with serving(
        register,
        listen=listen,
        threads=8,
        services=("hekla.v1.JobService", "hekla.v1.QueueService"),
        drain_timeout=timedelta(),
    ) as server:
        yield server.address
