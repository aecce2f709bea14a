"""The controller, as the flow service calls it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from google.protobuf.message import Message

from hekla.api.convert import to_message, to_model
from hekla.api.job import Job
from hekla.domain.errors import InvalidError, NotFoundError
from hekla.domain.names import Key
from hekla.rpc.attended import attended
from hekla.rpc.channel import connect
from hekla.rpc.errors import translated
from hekla.v1 import job_pb2, job_service_pb2 as messages, job_service_pb2_grpc as stubs

PEER: Final = "the controller"
STREAM_SPAN: Final = 3600.0
"""Seconds after which the stream is opened anew: every call has an end."""
READ_TIMEOUT: Final = 10.0
OWNER_KIND: Final = "JobFlow"

BOOKMARK: Final = "BOOKMARK"
"""No job: everything up to the cursor was told."""
DELETED: Final = "DELETED"

Answer = TypeVar("Answer", bound=Message)

log = logging.getLogger(__name__)


class News(NamedTuple):
    """One message of the stream of jobs."""

    cursor: str
    type: str
    job: Job | None


class Controller:
    """Calls of JobService. All raise what the controller answers, or UnavailableError."""

    def __init__(self, address: str) -> None:
        self._channel = connect(address, service="flow")
        self._stub = stubs.JobServiceStub(self._channel)

    def close(self) -> None:
        """Give the connection back; streams end."""
        self._channel.close()

    def create(self, job: Job, *, request_id: str, timeout: float) -> Job:
        """Have a job made; asked again with the same id, the one that was."""
        request = messages.CreateJobRequest(
            job=to_message(job, job_pb2.Job), request_id=request_id
        )
        with translated(PEER):
            return to_model(self._stub.CreateJob(request, timeout=timeout).job, Job)

    def delete(self, key: Key, uid: UUID, *, request_id: str, timeout: float) -> Job:
        """Have a job removed."""
        request = messages.DeleteJobRequest(
            namespace=key.namespace, name=key.name, uid=str(uid), request_id=request_id
        )
        with translated(PEER):
            return to_model(self._stub.DeleteJob(request, timeout=timeout).job, Job)

    def named(self, key: Key) -> Job | None:
        """The job of that name, if there is one."""
        request = messages.GetJobRequest(namespace=key.namespace, name=key.name)
        return self._found(request)

    def remembered(self, uid: UUID) -> Job | None:
        """The job of that uid, also one that was removed: then as it last was."""
        return self._found(messages.GetJobRequest(uid=str(uid)))

    def _found(self, request: messages.GetJobRequest) -> Job | None:
        try:
            with translated(PEER):
                return to_model(self._stub.GetJob(request, timeout=READ_TIMEOUT).job, Job)
        except NotFoundError:
            return None

    @contextmanager
    def watch(self, cursor: str) -> Iterator[Iterator[News]]:
        """What happens to jobs of flows after ``cursor``; from "", all there are first.

        Raises:
            CursorExpiredError: watch from "".
            UnavailableError: the stream ended; go on from the last cursor.
        """
        request = messages.WatchJobsRequest(cursor=cursor, owner_kind=OWNER_KIND)
        call = self._stub.WatchJobs(request, timeout=STREAM_SPAN)
        with translated(PEER), attended(call, _read(call)) as news:
            yield news


def _read(call: Iterable[messages.WatchJobsResponse]) -> Iterator[News]:
    for message in call:
        job = None
        if message.HasField("job"):
            try:
                job = to_model(message.job, Job)
            except InvalidError as error:
                job_name = message.job.metadata.name
                log.error("job left out", extra={"job": job_name, "error": str(error)})
        yield News(message.cursor, message.type, job)
