"""Calls of JobFlowService."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Final

from hekla.api.convert import to_message, to_model
from hekla.api.job_flow import JobFlow
from hekla.client.calls import Caller, pages, request_id
from hekla.client.follow import followed
from hekla.client.records import Admitted, Change, Listing
from hekla.domain import duration, names
from hekla.domain.errors import (
    NotFoundError,
    PreconditionError,
    TimedOutError,
    UnavailableError,
)
from hekla.domain.phases import FlowPhase
from hekla.v1 import job_flow_pb2, job_flow_service_pb2 as pb
from hekla.v1.job_flow_service_pb2_grpc import JobFlowServiceStub

DELETED: Final = "Deleted"
"""Waited for as if it were a phase: the flow is gone, and its jobs."""
FINISHED: Final = "Finished"
"""Waited for as if it were a phase: Succeed or Failed."""
ENDS: Final = (FlowPhase.SUCCEED, FlowPhase.FAILED)


class JobFlows:
    """Flows: graphs of jobs."""

    def __init__(self, stub: JobFlowServiceStub, caller: Caller) -> None:
        self._stub = stub
        self._caller = caller

    def create(self, flow: JobFlow) -> Admitted[JobFlow]:
        """Submit a flow.

        Raises:
            InvalidError: it is refused; the violations say where and why.
            AlreadyExistsError: there is one of that name.
        """
        request = pb.CreateJobFlowRequest(
            job_flow=to_message(flow, job_flow_pb2.JobFlow), request_id=request_id()
        )
        answer = self._caller.unary(self._stub.CreateJobFlow, request)
        return Admitted(to_model(answer.job_flow, JobFlow), answer.warnings)

    def get(self, namespace: str, name: str) -> JobFlow:
        """One flow."""
        request = pb.GetJobFlowRequest(namespace=namespace, name=name)
        return to_model(self._caller.unary(self._stub.GetJobFlow, request).job_flow, JobFlow)

    def get_by_uid(self, uid: str) -> JobFlow:
        """One flow, also one that was deleted: then as it last was."""
        request = pb.GetJobFlowRequest(uid=uid)
        return to_model(self._caller.unary(self._stub.GetJobFlow, request).job_flow, JobFlow)

    def list(
        self,
        namespace: str = "",
        *,
        phases: Iterable[FlowPhase] = (),
        label_selector: str = "",
        limit: int | None = None,
    ) -> Listing[JobFlow]:
        """Flows; without a namespace those of all."""
        wanted = [str(phase) for phase in phases]

        def fetch(token: str, size: int) -> tuple[Sequence[JobFlow], str, str]:
            request = pb.ListJobFlowsRequest(
                namespace=namespace,
                phases=wanted,
                label_selector=label_selector,
                page_size=size,
                page_token=token,
            )
            answer = self._caller.unary(self._stub.ListJobFlows, request)
            flows = [to_model(flow, JobFlow) for flow in answer.job_flows]
            return flows, answer.next_page_token, answer.cursor

        return Listing(*pages(fetch, limit))

    def cursor(self, namespace: str = "") -> str:
        """Where to watch from so that nothing is missed from now on."""
        request = pb.ListJobFlowsRequest(namespace=namespace, page_size=1)
        return self._caller.unary(self._stub.ListJobFlows, request).cursor

    def watch(
        self,
        namespace: str = "",
        name: str = "",
        *,
        cursor: str = "",
        timeout: timedelta | None = None,
        on_outage: Callable[[UnavailableError], None] | None = None,
    ) -> Iterator[Change[JobFlow]]:
        """Changes after ``cursor``; without one begin with all that exist.

        Raises:
            CursorExpiredError: list again, and watch from there.
        """

        def opened(cursor: str, left: float | None) -> Iterator[pb.WatchJobFlowsResponse]:
            request = pb.WatchJobFlowsRequest(namespace=namespace, name=name, cursor=cursor)
            return self._caller.stream(self._stub.WatchJobFlows, request, left)

        def item(message: pb.WatchJobFlowsResponse) -> JobFlow | None:
            if not message.HasField("job_flow"):
                return None
            return to_model(message.job_flow, JobFlow)

        return self._caller.watch(
            opened, item, cursor=cursor, timeout=timeout, on_outage=on_outage
        )

    def update(
        self, flow: JobFlow, *, expected_generation: int | None = None
    ) -> Admitted[JobFlow]:
        """Change a flow's labels, annotations and retain policy; its steps must stay."""
        request = pb.UpdateJobFlowRequest(
            job_flow=to_message(flow, job_flow_pb2.JobFlow),
            request_id=request_id(),
            expected_generation=expected_generation,
        )
        answer = self._caller.unary(self._stub.UpdateJobFlow, request)
        return Admitted(to_model(answer.job_flow, JobFlow), answer.warnings)

    def delete(self, namespace: str, name: str, *, uid: str = "") -> JobFlow:
        """Ask for a flow's removal; it is gone when its jobs are."""
        request = pb.DeleteJobFlowRequest(
            namespace=namespace, name=name, uid=uid, request_id=request_id()
        )
        return to_model(self._caller.unary(self._stub.DeleteJobFlow, request).job_flow, JobFlow)

    def follow(
        self,
        namespace: str,
        name: str,
        *,
        timeout: timedelta | None = None,
        on_outage: Callable[[UnavailableError], None] | None = None,
    ) -> Generator[tuple[JobFlow, bool]]:
        """A flow as it is, and then each time it changes, and whether it is gone.

        Outages are waited out, and cursors that grew too old replaced. ``on_outage`` as for
        ``watch``.

        Raises:
            NotFoundError: there is no such flow.
        """
        # The cursor comes first: what changes after it is watched, what changed before is read.
        cursor = self.cursor(namespace)
        flow = self.get(namespace, name)
        yield flow, False
        yield from followed(self, flow, cursor=cursor, timeout=timeout, on_outage=on_outage)

    def wait(
        self,
        namespace: str,
        name: str,
        wanted: str,
        *,
        timeout: timedelta | None = None,
        on_sighting: Callable[[JobFlow], None] = lambda _flow: None,
        on_outage: Callable[[UnavailableError], None] = lambda _error: None,
    ) -> JobFlow:
        """Wait until a flow is in a phase, through outages; give it as it is then.

        ``wanted`` is a phase, ``"Finished"`` for Succeed or Failed, or ``"Deleted"``. Running
        counts as reached once the flow succeeded.

        Raises:
            NotFoundError: there is no such flow, unless ``wanted`` is ``"Deleted"``.
            PreconditionError: it cannot come any more: the flow ended otherwise.
            TimedOutError: it did not come in ``timeout``.
        """
        key = names.Key(namespace, name)
        flow, outage = JobFlow(), ""

        def away(error: UnavailableError) -> None:
            nonlocal outage
            outage = str(error)
            on_outage(error)

        try:
            for flow, gone in self.follow(namespace, name, timeout=timeout, on_outage=away):
                outage = ""
                on_sighting(flow)
                came = _came(flow, wanted, gone=gone)
                if came:
                    return flow
                if came is False:
                    end = "was deleted" if gone else f"is {phase(flow)}"
                    raise PreconditionError(
                        f"job flow {key} {end} and will not be {wanted}{_why(flow)}"
                    )
        except NotFoundError:
            if wanted != DELETED:
                raise
            return flow
        span = f" after {duration.format(timeout)}" if timeout else ""
        why = outage or f"job flow {key} is {phase(flow)}{_why(flow)}"
        raise TimedOutError(f"timed out{span}: {why}")


def phase(flow: JobFlow) -> str:
    """A flow's phase in one word; ``Terminating`` while its removal is under way."""
    if flow.metadata.deletion_timestamp is not None:
        return FlowPhase.TERMINATING
    return flow.status.state.phase or FlowPhase.PENDING


def _came(flow: JobFlow, wanted: str, *, gone: bool) -> bool | None:
    """Whether what is waited for has come; False if it never will, None if it may."""
    now = flow.status.state.phase or FlowPhase.PENDING
    reached = {now, phase(flow)} | ({FlowPhase.RUNNING} if now == FlowPhase.SUCCEED else set())
    if wanted in reached or (wanted == FINISHED and now in ENDS):
        return True
    if gone:
        return wanted == DELETED
    over = now in ENDS or flow.metadata.deletion_timestamp is not None
    return False if over and wanted not in (DELETED, FlowPhase.TERMINATING) else None


def _why(flow: JobFlow) -> str:
    said = flow.status.state.message
    return f": {said}" if said else ""
