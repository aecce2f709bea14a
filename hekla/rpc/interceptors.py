"""What surrounds every method: figures, errors, malformed requests.

One wrapper each for methods that answer once and methods that stream. Health and reflection
are left as they are: they answer their own errors, and probes would drown the figures.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeAlias

import grpc
from google.protobuf.message import DecodeError

from hekla.domain.errors import InvalidError, UnavailableError
from hekla.rpc.callers import Callers, caller_of, is_service
from hekla.rpc.errors import code_of, end_call
from hekla.rpc.streams import Streams, on_threads
from hekla.telemetry import metrics

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Unary = Callable[[Any, grpc.ServicerContext], Any]
Stream = Callable[[Any, grpc.ServicerContext], Iterator[Any]]

OWN_ERRORS: Final = ("/grpc.health.", "/grpc.reflection.")
NO_DEADLINE: Final = 10 * 365 * 86_400
"""Seconds. A call without a deadline has one in some hundred years."""

log = logging.getLogger(__name__)


class Malformed:
    """Stands for a request that is no message of its type."""

    def __init__(self, error: DecodeError) -> None:
        self.error = InvalidError(f"the request is malformed: {error}")


class Surround(grpc.ServerInterceptor):
    """Puts the wrappers around each method; one for each server."""

    def __init__(self, streams: Streams, callers: Callers) -> None:
        self._streams = streams
        self._callers = callers
        self._conversing = ThreadPoolExecutor(2, thread_name_prefix="conversing")
        self._without_deadline: set[str] = set()

    def shutdown(self) -> None:
        """Let go of the threads, once the server has stopped."""
        self._conversing.shutdown(wait=False)
        self._streams.threads.shutdown(wait=False)

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Handler | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """The method that was asked for, wrapped."""
        handler = continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or method.startswith(OWN_ERRORS):
            return self._apart(handler)
        name = method.removeprefix("/")
        if handler.unary_unary is not None:
            return grpc.unary_unary_rpc_method_handler(
                self._unary(handler.unary_unary, name),
                _tolerant(handler.request_deserializer),
                handler.response_serializer,
            )
        if handler.unary_stream is not None:
            return grpc.unary_stream_rpc_method_handler(
                self._stream(handler.unary_stream, name),
                _tolerant(handler.request_deserializer),
                handler.response_serializer,
            )
        raise TypeError(f"{name} streams requests, which no method of ours does")

    def _apart(self, handler: Handler | None) -> Handler | None:
        """``handler``, on threads of its own if it converses, as reflection does."""
        if handler is None or handler.stream_stream is None:
            return handler
        behaviour = handler.stream_stream

        def call(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
            return behaviour(requests, context)

        on_threads(call, self._conversing)
        return grpc.stream_stream_rpc_method_handler(
            call, handler.request_deserializer, handler.response_serializer
        )

    def _unary(self, behaviour: Unary, method: str) -> Unary:
        def limited(request: Any, context: grpc.ServicerContext) -> Any:
            self._callers.take(caller_of(context))
            return behaviour(request, context)

        def call(request: Any, context: grpc.ServicerContext) -> Any:
            started = time.perf_counter()
            self._note_deadline(context, method)
            try:
                if isinstance(request, Malformed):
                    end_call(context, request.error, method)
                if not context.is_active():
                    end_call(context, UnavailableError("nobody waits any more"), method)
                return _guarded(limited, request, context, method)
            finally:
                metrics.rpc_seconds.labels(method).observe(time.perf_counter() - started)
                _count(context, method)

        return call

    def _stream(self, behaviour: Stream, method: str) -> Stream:
        def call(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            try:
                if isinstance(request, Malformed):
                    end_call(context, request.error, method)
                caller = caller_of(context)
                self._callers.take(caller)
                with self._callers.streaming(caller):
                    yield from self._streams.run(
                        behaviour, request, context, method, to_service=is_service(caller)
                    )
            except Exception as error:
                end_call(context, error, method)
            finally:
                _count(context, method)

        on_threads(call, self._streams.threads)
        return call

    def _note_deadline(self, context: grpc.ServicerContext, method: str) -> None:
        remaining: float | None = context.time_remaining()
        if method in self._without_deadline or (remaining or NO_DEADLINE) < NO_DEADLINE:
            return
        self._without_deadline.add(method)
        log.warning("call without a deadline", extra={"method": method, "peer": context.peer()})


def _guarded(behaviour: Unary, request: Any, context: grpc.ServicerContext, method: str) -> Any:
    try:
        return behaviour(request, context)
    except Exception as error:
        end_call(context, error, method)


def _count(context: grpc.ServicerContext, method: str) -> None:
    code = code_of(context) or grpc.StatusCode.OK
    metrics.rpc_handled.labels(method, code.name).inc()


def _tolerant(deserialize: Callable[[bytes], Any] | None) -> Callable[[bytes], Any] | None:
    """Gives what cannot be read as a ``Malformed``: gRPC would call it an error of ours."""
    if deserialize is None:
        return None

    def read(data: bytes) -> Any:
        try:
            return deserialize(data)
        except DecodeError as error:
            return Malformed(error)

    return read
