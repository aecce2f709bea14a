"""JobService. Errors are the interceptor's business."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import grpc

from hekla.api.convert import to_message, to_model
from hekla.api.job import Job
from hekla.domain.attempt import Outcome
from hekla.domain.errors import InvalidError, Violation
from hekla.domain.phases import JobPhase, PodPhase
from hekla.domain.trigger import Command
from hekla.store import asked, attempt_pages, events, jobs
from hekla.store.hub import Hub, Item
from hekla.store.jobs import Period
from hekla.store.watching import metadata_of, owners_of, queue_of, stream
from hekla.v1 import job_pb2, job_service_pb2 as messages, job_service_pb2_grpc as stubs
from services.controller import convert, logs
from services.controller.attempt_calls import MOST_PODS_LISTED, AttemptCalls
from services.controller.job_calls import JobCalls
from services.controller.job_commands import action_of
from services.controller.many_calls import ManyCalls

EVENT_TYPES: Final = (events.NORMAL, events.WARNING)


class JobServicer(stubs.JobServiceServicer):
    """Serves ``hekla.v1.JobService``."""

    def __init__(
        self,
        calls: JobCalls,
        many: ManyCalls,
        attempts: AttemptCalls,
        hub: Hub,
        pod_logs: logs.PodLogs,
    ) -> None:
        self._calls = calls
        self._attempts = attempts
        self._many = many
        self._hub = hub
        self._logs = pod_logs

    def CreateJob(
        self, request: messages.CreateJobRequest, context: grpc.ServicerContext
    ) -> messages.CreateJobResponse:
        job = _given(request.job, request.HasField("job"))
        made = self._calls.create(job, asked.asking(request))
        return messages.CreateJobResponse(job=_message(made.job), warnings=made.warnings)

    def CreateJobs(
        self, request: messages.CreateJobsRequest, context: grpc.ServicerContext
    ) -> messages.CreateJobsResponse:
        made = self._many.create(
            _given(request.template, request.HasField("template"), "template"),
            list(request.suffixes),
            asked.asking(request),
            going=context.is_active,
        )
        return messages.CreateJobsResponse(
            uids=[str(uid) for uid in made.uids], warnings=made.warnings
        )

    def GetJob(
        self, request: messages.GetJobRequest, context: grpc.ServicerContext
    ) -> messages.GetJobResponse:
        uid = asked.uid(request.uid)
        key = None if uid else asked.key(request.namespace, request.name)
        return messages.GetJobResponse(job=_message(self._calls.get(uid=uid, key=key)))

    def ListJobs(
        self, request: messages.ListJobsRequest, context: grpc.ServicerContext
    ) -> messages.ListJobsResponse:
        page = self._calls.page(
            namespace=asked.text(request.namespace, "namespace"),
            queue=asked.text(request.queue, "queue"),
            phases=asked.among(request.phases, list(JobPhase), "phases"),
            labels=request.label_selector,
            created=Period(
                asked.instant(request.created_after, "created_after"),
                asked.instant(request.created_before, "created_before"),
            ),
            finished=Period(
                asked.instant(request.finished_after, "finished_after"),
                asked.instant(request.finished_before, "finished_before"),
            ),
            after=asked.token_to_place(request.page_token),
            limit=asked.page_size(request.page_size),
        )
        return messages.ListJobsResponse(
            jobs=[_message(job) for job in page.jobs],
            next_page_token=asked.place_to_token(page.end) if page.end else "",
            cursor=str(page.cursor),
        )

    def WatchJobs(
        self, request: messages.WatchJobsRequest, context: grpc.ServicerContext
    ) -> Iterator[messages.WatchJobsResponse]:
        def wanted(item: Item) -> bool:
            namespace, name = metadata_of(item)
            return (
                request.namespace in ("", namespace)
                and request.name in ("", name)
                and request.queue in ("", queue_of(item))
                and (not request.owner_kind or _owned_by(item, request.owner_kind))
            )

        def respond(
            cursor: str, type_: str, job: job_pb2.Job | None
        ) -> messages.WatchJobsResponse:
            return messages.WatchJobsResponse(cursor=cursor, type=type_, job=job)

        return stream(
            self._hub,
            jobs.KIND,
            request.cursor,
            context.is_active,
            wanted=wanted,
            labels=request.label_selector,
            render=_render,
            respond=respond,
        )

    def UpdateJob(
        self, request: messages.UpdateJobRequest, context: grpc.ServicerContext
    ) -> messages.UpdateJobResponse:
        job = _given(request.job, request.HasField("job"))
        expected = (
            request.expected_generation if request.HasField("expected_generation") else None
        )
        changed = self._calls.update(job, asked.asking(request), expected_generation=expected)
        return messages.UpdateJobResponse(job=_message(changed.job), warnings=changed.warnings)

    def DeleteJob(
        self, request: messages.DeleteJobRequest, context: grpc.ServicerContext
    ) -> messages.DeleteJobResponse:
        job = self._calls.delete(
            asked.key(request.namespace, request.name),
            asked.asking(request),
            uid=asked.uid(request.uid),
        )
        return messages.DeleteJobResponse(job=_message(job))

    def CommandJob(
        self, request: messages.CommandJobRequest, context: grpc.ServicerContext
    ) -> messages.CommandJobResponse:
        command = Command(
            id=0,
            action=action_of(request.action),
            task=asked.text(request.task, "task"),
            index=request.index if request.HasField("index") else None,
            reason=asked.text(request.reason, "reason"),
            message=asked.text(request.message, "message"),
        )
        job = self._calls.command(
            asked.key(request.namespace, request.name),
            command,
            asked.asking(request),
            uid=asked.uid(request.uid),
        )
        return messages.CommandJobResponse(job=_message(job))

    def ListAttempts(
        self, request: messages.ListAttemptsRequest, context: grpc.ServicerContext
    ) -> messages.ListAttemptsResponse:
        uid = asked.uid(request.uid)
        page = self._attempts.attempts(
            uid=uid,
            key=None if uid else asked.key(request.namespace, request.name),
            task=asked.text(request.task, "task"),
            outcomes=asked.among(request.outcomes, list(Outcome), "outcomes"),
            after=asked.token_to_place(request.page_token),
            limit=asked.page_size(request.page_size),
        )
        return messages.ListAttemptsResponse(
            attempts=[
                *[convert.attempt_to_message(row) for row in page.present],
                *[convert.past_attempt_to_message(row) for row in page.past],
            ],
            next_page_token=asked.place_to_token(page.end) if page.end else "",
            job_uid=str(page.job),
        )

    def ListPods(
        self, request: messages.ListPodsRequest, context: grpc.ServicerContext
    ) -> messages.ListPodsResponse:
        limit = asked.page_size(request.page_size) if request.page_size else MOST_PODS_LISTED
        page = self._attempts.pods(
            namespace=asked.text(request.namespace, "namespace"),
            job=asked.text(request.job, "job"),
            task=asked.text(request.task, "task"),
            phases=asked.among(request.phases, [attempt_pages.PLANNED, *PodPhase], "phases"),
            after=convert.token_to_pod(request.page_token),
            limit=limit,
        )
        return messages.ListPodsResponse(
            pods=[
                messages.PodView(
                    namespace=row.namespace, job=name, attempt=convert.attempt_to_message(row)
                )
                for name, row in page.pods
            ],
            next_page_token=convert.pod_to_token(page.end) if page.end else "",
        )

    def GetLogs(
        self, request: messages.GetLogsRequest, context: grpc.ServicerContext
    ) -> Iterator[messages.GetLogsResponse]:
        wanted = logs.Wanted(
            namespace=asked.path_part(request.namespace, "namespace") or "default",
            job=asked.text(request.job, "job"),
            task=asked.text(request.task, "task"),
            index=request.index if request.HasField("index") else None,
            pod=asked.path_part(request.pod, "pod"),
            container=asked.path_part(request.container, "container"),
            follow=request.follow,
            tail_lines=request.tail_lines if request.HasField("tail_lines") else None,
        )
        for pod, data in self._logs.read(wanted, context):
            yield messages.GetLogsResponse(pod=pod, data=data)

    def ListJobEvents(
        self, request: messages.ListJobEventsRequest, context: grpc.ServicerContext
    ) -> messages.ListJobEventsResponse:
        uid = asked.uid(request.uid)
        key = None if uid else asked.key(request.namespace, request.name)
        types = asked.among([request.type] if request.type else [], EVENT_TYPES, "type")
        limit = asked.page_size(request.page_size) if request.page_size else events.KEPT
        first = convert.token_to_number(request.page_token)
        found = [
            event
            for event in self._attempts.events(uid=uid, key=key)
            if not types or event.type in types
        ]
        last = first + limit
        return messages.ListJobEventsResponse(
            events=[convert.event_to_message(event) for event in found[first:last]],
            next_page_token=asked.name_to_token(str(last)) if last < len(found) else "",
        )


def _message(job: Job) -> job_pb2.Job:
    return to_message(job, job_pb2.Job)


def _render(stored: object) -> job_pb2.Job:
    return _message(stored if isinstance(stored, Job) else Job.model_validate(stored))


def _owned_by(item: Item, kind: str) -> bool:
    return any(owner == kind for owner, _ in owners_of(item))


def _given(message: job_pb2.Job, present: bool, path: str = "job") -> Job:  # noqa: FBT001
    if not present:
        raise InvalidError.of([Violation(path, "is required")])
    return to_model(message, Job)
