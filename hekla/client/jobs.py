"""Calls of JobService."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from hekla.api.convert import to_message, to_model
from hekla.api.job import Job
from hekla.client import waiting
from hekla.client.calls import Caller, instant, pages, request_id
from hekla.client.follow import Sighting, follow
from hekla.client.live import live
from hekla.client.records import Admitted, Attempt, Change, JobEvent, Listing, PodView
from hekla.client.waiting import DELETED, Verdict
from hekla.domain.errors import (
    NotFoundError,
    PreconditionError,
    TimedOutError,
    UnavailableError,
)
from hekla.domain.phases import JobAction, JobPhase, PodPhase
from hekla.v1 import job_pb2, job_service_pb2 as pb
from hekla.v1.job_service_pb2_grpc import JobServiceStub

CHUNK: Final = 1000
"""Jobs that one CreateJobs call makes at most."""
BY_USER: Final = "UserRequest"
"""The reason of what a person asked for."""


class Jobs:
    """Jobs: submission, life cycle, history."""

    def __init__(self, stub: JobServiceStub, caller: Caller) -> None:
        self._stub = stub
        self._caller = caller

    def create(self, job: Job) -> Admitted[Job]:
        """Submit a job.

        Raises:
            InvalidError: it is refused; the violations say where and why.
            AlreadyExistsError: there is one of that name.
        """
        request = pb.CreateJobRequest(job=to_message(job, job_pb2.Job), request_id=request_id())
        answer = self._caller.unary(self._stub.CreateJob, request)
        return Admitted(to_model(answer.job, Job), answer.warnings)

    def create_many(self, template: Job, suffixes: Iterable[str]) -> Sequence[str]:
        """Submit a job for each suffix, named ``<template's name>-<suffix>``; give the uids."""
        names = list(suffixes)
        uids: list[str] = []
        for start in range(0, len(names), CHUNK):
            request = pb.CreateJobsRequest(
                template=to_message(template, job_pb2.Job),
                suffixes=names[start : start + CHUNK],
                request_id=request_id(),
            )
            uids += self._caller.unary(self._stub.CreateJobs, request).uids
        return uids

    def get(self, namespace: str, name: str) -> Job:
        """One job."""
        request = pb.GetJobRequest(namespace=namespace, name=name)
        return to_model(self._caller.unary(self._stub.GetJob, request).job, Job)

    def get_by_uid(self, uid: str) -> Job:
        """One job, also one that was deleted: then as it last was."""
        request = pb.GetJobRequest(uid=uid)
        return to_model(self._caller.unary(self._stub.GetJob, request).job, Job)

    def list(
        self,
        namespace: str = "",
        *,
        queue: str = "",
        phases: Iterable[JobPhase | str] = (),
        label_selector: str = "",
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        finished_after: datetime | None = None,
        finished_before: datetime | None = None,
        limit: int | None = None,
    ) -> Listing[Job]:
        """Jobs; without a namespace those of all. No more than ``limit``, if it is given.

        Times are from ``…_after`` on and before ``…_before``; with either of ``finished_…``
        jobs that have not ended are left out.
        """
        wanted = [str(phase) for phase in phases]

        def fetch(token: str, size: int) -> tuple[Sequence[Job], str, str]:
            request = pb.ListJobsRequest(
                namespace=namespace,
                queue=queue,
                phases=wanted,
                label_selector=label_selector,
                page_size=size,
                page_token=token,
                created_after=instant(created_after),
                created_before=instant(created_before),
                finished_after=instant(finished_after),
                finished_before=instant(finished_before),
            )
            answer = self._caller.unary(self._stub.ListJobs, request)
            jobs = [to_model(job, Job) for job in answer.jobs]
            return jobs, answer.next_page_token, answer.cursor

        return Listing(*pages(fetch, limit))

    def cursor(self, namespace: str = "") -> str:
        """Where to watch from so that nothing is missed from now on."""
        request = pb.ListJobsRequest(namespace=namespace, page_size=1)
        return self._caller.unary(self._stub.ListJobs, request).cursor

    def watch(
        self,
        namespace: str = "",
        name: str = "",
        *,
        cursor: str = "",
        queue: str = "",
        label_selector: str = "",
        timeout: timedelta | None = None,
        on_outage: Callable[[UnavailableError], None] | None = None,
    ) -> Iterator[Change[Job]]:
        """Changes after ``cursor``; without one begin with all that exist.

        A job that does not match any more comes as DELETED.

        Raises:
            CursorExpiredError: list again, and watch from there.
        """

        def opened(cursor: str, left: float | None) -> Iterator[pb.WatchJobsResponse]:
            request = pb.WatchJobsRequest(
                namespace=namespace,
                name=name,
                cursor=cursor,
                queue=queue,
                label_selector=label_selector,
            )
            return self._caller.stream(self._stub.WatchJobs, request, left)

        def item(message: pb.WatchJobsResponse) -> Job | None:
            return to_model(message.job, Job) if message.HasField("job") else None

        return self._caller.watch(
            opened, item, cursor=cursor, timeout=timeout, on_outage=on_outage
        )

    def changes(
        self,
        namespace: str = "",
        name: str = "",
        *,
        queue: str = "",
        label_selector: str = "",
        timeout: timedelta | None = None,
        on_outage: Callable[[UnavailableError], None] | None = None,
    ) -> Iterator[Change[Job]]:
        """Jobs as they are, each as ADDED, and then every change: a watch that never expires.

        ``on_outage`` as for ``watch``; the first list is tried for as long as any call.
        """

        def listed() -> Listing[Job]:
            found = self.list(namespace, queue=queue, label_selector=label_selector)
            items = [job for job in found.items if name in ("", job.metadata.name)]
            return Listing(items, found.cursor)

        def watched(cursor: str, left: timedelta | None) -> Iterator[Change[Job]]:
            return self.watch(
                namespace,
                name,
                cursor=cursor,
                queue=queue,
                label_selector=label_selector,
                timeout=left,
                on_outage=on_outage,
            )

        return live(listed, watched, timeout=timeout)

    def follow(
        self,
        namespace: str,
        name: str,
        *,
        timeout: timedelta | None = None,
        on_outage: Callable[[UnavailableError], None] | None = None,
    ) -> Generator[Sighting]:
        """A job as it is, and then each time it changes; ends when it is gone.

        Outages are waited out, and cursors that grew too old replaced. ``on_outage`` as for
        ``watch``.

        Raises:
            NotFoundError: there is no such job.
        """
        job, cursor = waiting.begin(self, namespace, name)
        yield Sighting(job, gone=False)
        yield from follow(self, job, cursor=cursor, timeout=timeout, on_outage=on_outage)

    def wait(
        self,
        namespace: str,
        name: str,
        wanted: str,
        *,
        timeout: timedelta | None = None,
        on_sighting: Callable[[Sighting], None] = lambda _sighting: None,
    ) -> Job:
        """Wait until a job is or was in a phase, through outages; give it as it is then.

        ``wanted`` is a phase, ``"Finished"`` for any that is final, or ``"Deleted"``.

        Raises:
            NotFoundError: there is no such job, unless ``wanted`` is ``"Deleted"``.
            PreconditionError: it cannot come any more: the job ended otherwise.
            TimedOutError: it did not come in ``timeout``.
        """
        try:
            job, cursor = waiting.begin(self, namespace, name)
        except NotFoundError:
            if wanted != DELETED:
                raise
            return Job()
        waited = waiting.wait_for(
            self, job, wanted, cursor=cursor, timeout=timeout, on_sighting=on_sighting
        )
        if waited.verdict is Verdict.IMPOSSIBLE:
            raise PreconditionError(waiting.refusal(waited, wanted))
        if waited.verdict is Verdict.OPEN:
            raise TimedOutError(waiting.overdue(waited, timeout))
        return waited.job

    def update(self, job: Job, *, expected_generation: int | None = None) -> Admitted[Job]:
        """Change the parts of a job that may change."""
        request = pb.UpdateJobRequest(
            job=to_message(job, job_pb2.Job),
            request_id=request_id(),
            expected_generation=expected_generation,
        )
        answer = self._caller.unary(self._stub.UpdateJob, request)
        return Admitted(to_model(answer.job, Job), answer.warnings)

    def delete(self, namespace: str, name: str, *, uid: str = "") -> Job:
        """Ask for a job's removal; it is gone when its pods are."""
        request = pb.DeleteJobRequest(
            namespace=namespace, name=name, uid=uid, request_id=request_id()
        )
        return to_model(self._caller.unary(self._stub.DeleteJob, request).job, Job)

    def command(
        self,
        namespace: str,
        name: str,
        action: JobAction,
        *,
        reason: str = "",
        message: str = "",
        task: str = "",
        index: int | None = None,
    ) -> Job:
        """Ask for an action, of the job or of a task or pod of it."""
        request = pb.CommandJobRequest(
            namespace=namespace,
            name=name,
            action=str(action),
            reason=reason,
            message=message,
            task=task,
            index=index,
            request_id=request_id(),
        )
        return to_model(self._caller.unary(self._stub.CommandJob, request).job, Job)

    def suspend(self, namespace: str, name: str) -> Job:
        """Have a job's pods stopped, so that ``resume`` can start it again: AbortJob."""
        return self.command(namespace, name, JobAction.ABORT_JOB, reason=BY_USER)

    abort = suspend

    def resume(self, namespace: str, name: str) -> Job:
        """Have a suspended job go on where it left off: ResumeJob."""
        return self.command(namespace, name, JobAction.RESUME_JOB, reason=BY_USER)

    def restart(self, namespace: str, name: str) -> Job:
        """Have a job start anew, with all its pods: RestartJob."""
        return self.command(namespace, name, JobAction.RESTART_JOB, reason=BY_USER)

    def terminate(self, namespace: str, name: str) -> Job:
        """Have a job end for good, as one that did not succeed: TerminateJob."""
        return self.command(namespace, name, JobAction.TERMINATE_JOB, reason=BY_USER)

    def complete(self, namespace: str, name: str) -> Job:
        """Have a job end for good, as one that is done: CompleteJob."""
        return self.command(namespace, name, JobAction.COMPLETE_JOB, reason=BY_USER)

    def attempts(
        self,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        task: str = "",
        outcomes: Iterable[str] = (),
    ) -> Sequence[Attempt]:
        """Every life of every pod of a job; without a uid of the newest job of that name."""
        wanted = [str(outcome) for outcome in outcomes]

        def fetch(token: str, size: int) -> tuple[Sequence[Attempt], str, str]:
            request = pb.ListAttemptsRequest(
                namespace=namespace,
                name=name,
                uid=uid,
                page_size=size,
                page_token=token,
                task=task,
                outcomes=wanted,
            )
            answer = self._caller.unary(self._stub.ListAttempts, request)
            return [Attempt.of(one) for one in answer.attempts], answer.next_page_token, ""

        return pages(fetch)[0]

    def pods(
        self,
        namespace: str = "",
        job: str = "",
        *,
        task: str = "",
        phases: Iterable[PodPhase | str] = (),
    ) -> Sequence[PodView]:
        """The pods that jobs have now."""
        wanted = [str(phase) for phase in phases]

        def fetch(token: str, size: int) -> tuple[Sequence[PodView], str, str]:
            request = pb.ListPodsRequest(
                namespace=namespace,
                job=job,
                task=task,
                phases=wanted,
                page_size=size,
                page_token=token,
            )
            answer = self._caller.unary(self._stub.ListPods, request)
            return [PodView.of(pod) for pod in answer.pods], answer.next_page_token, ""

        return pages(fetch)[0]

    def logs(
        self,
        namespace: str,
        pod: str,
        *,
        container: str = "",
        follow: bool = False,
        tail_lines: int | None = None,
    ) -> Iterator[bytes]:
        """What a pod's container printed, in pieces."""
        request = pb.GetLogsRequest(
            namespace=namespace,
            pod=pod,
            container=container,
            follow=follow,
            tail_lines=tail_lines,
        )
        for answer in self._caller.stream(self._stub.GetLogs, request, None):
            yield answer.data

    def events(
        self,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        type: str = "",  # noqa: A002
    ) -> Sequence[JobEvent]:
        """What happened to a job, oldest first; only events of a ``type`` if it is given."""
        request = pb.ListJobEventsRequest(namespace=namespace, name=name, uid=uid, type=type)
        answer = self._caller.unary(self._stub.ListJobEvents, request)
        return [JobEvent.of(event) for event in answer.events]
