"""Domain errors and gRPC's statuses, both ways: one table.

Every status we send carries a ``google.rpc.Status``, with ``BadRequest`` field violations and
``RetryInfo`` where there are any; a client turns it back into the error it was.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NoReturn, cast

import grpc
from google.protobuf.message import Message
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from hekla.domain.errors import (
    AlreadyExistsError,
    ConflictError,
    CursorExpiredError,
    DeniedError,
    DomainError,
    ExhaustedError,
    InvalidError,
    NotFoundError,
    NotServedError,
    PreconditionError,
    UnavailableError,
    Violation,
)

Code = grpc.StatusCode

STATUS: Final[Mapping[type[DomainError], grpc.StatusCode]] = {
    NotFoundError: Code.NOT_FOUND,
    AlreadyExistsError: Code.ALREADY_EXISTS,
    InvalidError: Code.INVALID_ARGUMENT,
    ConflictError: Code.ABORTED,
    PreconditionError: Code.FAILED_PRECONDITION,
    DeniedError: Code.PERMISSION_DENIED,
    ExhaustedError: Code.RESOURCE_EXHAUSTED,
    UnavailableError: Code.UNAVAILABLE,
    CursorExpiredError: Code.OUT_OF_RANGE,
    NotServedError: Code.UNIMPLEMENTED,
}

_ERROR: Final[Mapping[grpc.StatusCode, type[DomainError]]] = {
    **{status: error for error, status in STATUS.items()},
    Code.DEADLINE_EXCEEDED: UnavailableError,
    Code.CANCELLED: UnavailableError,
    Code.UNAUTHENTICATED: DeniedError,
}

LONGEST_MESSAGE: Final = 1000
LARGEST_DETAILS: Final = 2000
"""Bytes. A status travels as a trailer, twice and encoded, and clients take 8 KiB of those."""

log = logging.getLogger(__name__)


def to_status(error: DomainError) -> status_pb2.Status:
    """What a caller is told of ``error``, cut to what fits into a trailer."""
    code = next(
        (code for kind, code in STATUS.items() if isinstance(error, kind)), Code.INTERNAL
    )
    status = status_pb2.Status(
        code=_number(code), message=_cut(str(error) or type(error).__name__, LONGEST_MESSAGE)
    )
    if isinstance(error, InvalidError) and error.violations:
        _attach(status, _bad_request(error.violations))
    if isinstance(error, ExhaustedError) and error.retry_after is not None:
        advice = error_details_pb2.RetryInfo()
        advice.retry_delay.FromTimedelta(error.retry_after)
        _attach(status, advice)
    return status


def end_call(context: grpc.ServicerContext, error: Exception, method: str) -> NoReturn:
    """End the call with the status that ``error`` stands for.

    A ``DomainError`` is the caller's to know: its message is sent. Anything else is ours: it is
    logged with its traceback, and the caller is told no more than ``INTERNAL``.
    """
    if isinstance(error, NotImplementedError) and code_of(context) is Code.UNIMPLEMENTED:
        error = NotServedError(f"{method} is not yet served")  # a generated method, not ours
    if isinstance(error, DomainError):
        status = to_status(error)
    elif code_of(context) is not None:
        raise error  # somebody ended the call already; gRPC knows
    else:
        log.error("unexpected error", exc_info=error, extra={"method": method})
        status = status_pb2.Status(
            code=code_pb2.INTERNAL, message="internal error; the log of the service says more"
        )
    context.abort_with_status(rpc_status.to_status(status))


def code_of(context: grpc.ServicerContext) -> grpc.StatusCode | None:
    """The status the call has been given so far; the type stubs do not know of it."""
    return cast("grpc.StatusCode | None", cast("Any", context).code())


def raise_domain(error: grpc.RpcError, peer: str = "the service") -> NoReturn:
    """Raise the domain error that a server sent, or the one its silence stands for."""
    call = cast("grpc.Call", error)  # what stubs raise is both
    kind = _ERROR.get(call.code(), DomainError)
    status = _details(call)
    if status is None and kind is UnavailableError:
        raise UnavailableError(_silence(call, peer)) from error
    message = call.details() or call.code().name
    if kind is InvalidError:
        raise InvalidError(message, _violations(status)) from error
    if kind is ExhaustedError:
        raise _exhausted(message, status) from error
    raise kind(message) from error


@contextmanager
def translated(peer: str = "the service") -> Iterator[None]:
    """Let the calls of this block raise domain errors. ``peer`` names who is called."""
    try:
        yield
    except grpc.RpcError as error:
        raise_domain(error, peer)


def _silence(call: grpc.Call, peer: str) -> str:
    if call.code() is Code.DEADLINE_EXCEEDED:
        return f"{peer} did not answer in time"
    if call.code() is Code.CANCELLED:
        return f"the call to {peer} was cancelled"
    reason = (call.details() or "no reason given").rpartition(": ")[2]  # after gRPC's preamble
    return f"{peer} cannot be reached: {reason.lower()}"


def _details(call: grpc.Call) -> status_pb2.Status | None:
    try:
        return cast("status_pb2.Status | None", rpc_status.from_call(call))
    except ValueError:  # a proxy changed the code or the message under way
        return None


def _violations(status: status_pb2.Status | None) -> Sequence[Violation]:
    found = error_details_pb2.BadRequest()
    for detail in status.details if status else ():
        if detail.Unpack(found):
            return [Violation(one.field, one.description) for one in found.field_violations]
    return ()


def _exhausted(message: str, status: status_pb2.Status | None) -> ExhaustedError:
    advice = error_details_pb2.RetryInfo()
    for detail in status.details if status else ():
        if detail.Unpack(advice):
            return ExhaustedError(message, retry_after=advice.retry_delay.ToTimedelta())
    return ExhaustedError(message)


def _bad_request(violations: Sequence[Violation]) -> error_details_pb2.BadRequest:
    found = error_details_pb2.BadRequest()
    for shown, one in enumerate(violations):
        path, message = _cut(one.path, 300), _cut(one.message, 500)
        if found.ByteSize() + len(path.encode()) + len(message.encode()) > LARGEST_DETAILS:
            found.field_violations.add(description=f"and {len(violations) - shown} more")
            break
        found.field_violations.add(field=path, description=message)
    return found


def _attach(status: status_pb2.Status, detail: Message) -> None:
    status.details.add().Pack(detail)


def _cut(text: str, longest: int) -> str:
    """``text`` in at most ``longest`` bytes of valid UTF-8."""
    data = text.encode("utf-8", "replace")
    if len(data) <= longest:
        return data.decode()
    return data[: longest - 3].decode("utf-8", "ignore") + "…"


def _number(code: grpc.StatusCode) -> Any:
    return code.value[0]
