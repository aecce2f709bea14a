"""The Kubernetes client: a plain blocking interface, in batches of plain data.

Requests run in an engine on asyncio, in a process of its own (``isolated=True``: a busy
parent and its I/O would starve each other under one GIL) or in a thread. Any number of
threads may share a client. A call that cannot be made because the I/O process died raises
UnavailableError; the process is started again, and watches begin anew with RELISTED.

Timeouts are seconds, and are for the whole call: it returns by then, whatever happened.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self

from hekla.domain.errors import UnavailableError
from hekla.kube import errors, writes
from hekla.kube.connect import KubeconfigSource
from hekla.kube.events import decode_page
from hekla.kube.fence import Companion, Fence, Progress
from hekla.kube.link import Aside, Link, Receiver, ThreadLink
from hekla.kube.process import START_TIMEOUT, ProcessLink
from hekla.kube.replies import read_outcome
from hekla.kube.requests import Binding, Deletion, Patch, Reply
from hekla.kube.resources import PODS, Resource
from hekla.kube.service import Settings
from hekla.kube.session import Limits
from hekla.kube.subscription import LogStream, Stream, Subscription
from hekla.kube.wire import (
    Call,
    Failed,
    FromEngine,
    Get,
    List,
    Listing,
    Logs,
    Outcome,
    Returned,
    Watch,
    Write,
    Writes,
)

Selector = str | Mapping[str, str]
"""Text as the API takes it, or a mapping of what must be equal."""

Replies = list[Reply]
"""One for each item asked for, in the same order."""

TIMEOUT: Final = 30.0
GRACE: Final = 2.0  # seconds an answer of the engine may be late


class KubeClient:
    """Talks to one API server. A context manager."""

    def __init__(
        self, settings: Settings, aside: Aside, *, isolated: bool, service: str = "kube"
    ) -> None:
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._calls: dict[int, Future[Any]] = {}
        self._streams: dict[int, Stream] = {}
        self._closed = False
        receiver = Receiver(self._receive, self._found, self._lost)
        self._link: Link = (
            ProcessLink(settings, aside, receiver, service=service)
            if isolated
            else ThreadLink(settings, aside, receiver)
        )

    @classmethod
    def start(
        cls,
        kubeconfig: str | None = None,
        *,
        isolated: bool = True,
        fence: Fence | None = None,
        progress: Progress | None = None,
        companion: Companion | None = None,
        concurrency: int = 32,
        qps: float | None = None,
        service: str = "kube",
    ) -> KubeClient:
        """A client by a kubeconfig file, or by what ``KUBECONFIG``, the home or the pod offers.

        The API server need not be there yet. Without a ``fence`` nothing is held back. The
        ``companion`` runs in the I/O process; ``service`` names log lines and the user agent.

        Raises:
            InvalidError: there is no usable configuration.
            UnavailableError: the I/O process does not start.
        """
        if companion is not None and (fence is None or progress is None):
            raise ValueError("a companion needs a fence and a progress")
        settings = Settings(
            connection=KubeconfigSource(kubeconfig).load(),
            kubeconfig=kubeconfig,
            limits=Limits(concurrency=concurrency, qps=qps),
            user_agent=f"hekla-{service}",
            fenced=fence is not None,
        )
        aside = Aside(fence or Fence(), progress or Progress(), companion)
        client = cls(settings, aside, isolated=isolated, service=service)
        if isinstance(client._link, ProcessLink) and not client._link.wait(START_TIMEOUT):
            client.close()
            raise UnavailableError("the Kubernetes I/O process does not start; see the log")
        return client

    def close(self) -> None:
        """End everything; calls under way raise UnavailableError, streams end."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            streams = list(self._streams.values())
        self._link.close()
        for stream in streams:
            stream.closed()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def io_pid(self) -> int | None:
        """The process id of the I/O process; None if there is none now."""
        return self._link.pid if isinstance(self._link, ProcessLink) else None

    def create_many(
        self,
        resource: Resource,
        objects: Iterable[Mapping[str, Any]],
        *,
        timeout: float = TIMEOUT,
    ) -> Replies:
        """Create objects; each has its ``metadata.namespace`` (else ``default``).

        201: made, by this call. 409: one of that name exists, and is the reply's object;
        compare ``hekla.io/attempt-uid`` to tell an earlier attempt of your own. A create that
        is not answered is looked for by name: with our ``hekla.io/attempt-uid`` it is a 201.
        0: see ``Reply``.
        """
        return self._write([writes.creation(resource, item) for item in objects], timeout)

    def delete_many(
        self, deletions: Iterable[Deletion], *, timeout: float = TIMEOUT, fenced: bool = False
    ) -> Replies:
        """Delete objects. 200 or 404: gone or going. 409: another uid has the name now."""
        return self._write(
            [writes.deletion(each, fenced=fenced) for each in deletions], timeout
        )

    def patch_many(
        self, patches: Iterable[Patch], *, timeout: float = TIMEOUT, fenced: bool = False
    ) -> Replies:
        """Merge into objects; a patch that is not answered is sent again."""
        return self._write([writes.merge(each, fenced=fenced) for each in patches], timeout)

    def bind_many(self, bindings: Iterable[Binding], *, timeout: float = TIMEOUT) -> Replies:
        """Bind pods while the fence is up. 2xx: the pod is bound to our node.

        409: it is bound elsewhere, or another pod has the name. A bind that is not answered is
        looked for; 0 with reason ``Timeout`` may still happen, with ``Fenced`` it will not.
        """
        return self._write([writes.binding(each) for each in bindings], timeout)

    # Reads.

    def get(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        timeout: float = TIMEOUT,
    ) -> Reply:
        """Read one object. 404: it does not exist. ``.found()`` gives it or raises."""
        request = Get(resource.path(namespace, name))
        return read_outcome(self._call(request, timeout))

    def version(self, *, timeout: float = TIMEOUT) -> str:
        """What the API server says it is: ``v1.35.0``.

        Raises:
            DomainError: it does not answer, or does not let us in.
        """
        found = read_outcome(self._call(Get("/version"), timeout)).found()
        return str(found.get("gitVersion", "unknown"))

    def served(self, api_version: str, *, timeout: float = TIMEOUT) -> frozenset[str]:
        """The plurals of the kinds that the API server has at ``batch.volcano.sh/v1alpha1``.

        None, if it does not know that version.

        Raises:
            DomainError: it does not answer, or does not let us in.
        """
        root = "/apis" if "/" in api_version else "/api"
        reply = read_outcome(self._call(Get(f"{root}/{api_version}"), timeout))
        if reply.status == HTTPStatus.NOT_FOUND:
            return frozenset()
        kinds = reply.found().get("resources") or []
        return frozenset(str(one.get("name")) for one in kinds)

    def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: Selector | None = None,
        field_selector: Selector | None = None,
        timeout: float = TIMEOUT,
    ) -> tuple[Sequence[dict[str, Any]], str]:
        """All objects as of one moment, and its resourceVersion.

        Raises:
            DomainError: the list could not be read.
        """
        query = _query(label_selector, field_selector)
        found = self._call(List(resource.collection(namespace), query), timeout)
        if isinstance(found, Outcome):
            reply = read_outcome(found)
            raise errors.error_for(reply.status, reply.reason, reply.message)
        assert isinstance(found, Listing)
        items = [item for page in found.pages for item in decode_page(page)]
        return items, found.resource_version

    def watch(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: Selector | None = None,
        field_selector: Selector | None = None,
        project: str | None = None,
    ) -> Subscription:
        """Everything that happens to objects, in batches, until it is closed.

        ``project`` names a function, ``module:function``, that is applied to every object in
        the I/O process and gives what crosses in its stead: something small that pickles, or
        None to leave the object out. One that it raises on is logged and left out.
        """
        watched = Watch(
            resource.collection(namespace), _query(label_selector, field_selector), project
        )
        subscription = Subscription(next(self._numbers), watched, self._link, self._forget)
        self._open(subscription)
        return subscription

    def logs(
        self,
        namespace: str,
        name: str,
        container: str | None = None,
        *,
        follow: bool = False,
        tail_lines: int | None = None,
    ) -> LogStream:
        """What a container wrote, in pieces as they come; closing the iterator ends it.

        Raises:
            DomainError: there is no log, or the connection broke.
        """
        wanted = {
            "container": container,
            "follow": "true" if follow else None,
            "tailLines": None if tail_lines is None else str(tail_lines),
        }
        query = tuple((key, value) for key, value in wanted.items() if value is not None)
        stream = LogStream(
            next(self._numbers),
            Logs(PODS.path(namespace, name, "log"), query),
            self._link,
            self._forget,
        )
        self._open(stream)
        return stream

    def _write(self, batch: Sequence[Write], timeout: float) -> Replies:
        if not batch:
            return []
        outcomes: Sequence[Outcome] = self._call(Writes([*batch]), timeout)
        return [read_outcome(outcome) for outcome in outcomes]

    def _call(self, request: Writes | Get | List, timeout: float) -> Any:
        number = next(self._numbers)
        deadline = time.monotonic() + timeout
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                raise UnavailableError("the Kubernetes client is closed")
            self._calls[number] = future
        try:
            self._link.send(Call(number, request, deadline), timeout)
            return future.result(max(0.0, deadline - time.monotonic()) + GRACE)
        except TimeoutError as error:
            raise UnavailableError("the Kubernetes I/O process does not answer") from error
        finally:
            with self._lock:
                self._calls.pop(number, None)

    def _open(self, stream: Stream) -> None:
        with self._lock:
            if self._closed:
                raise UnavailableError("the Kubernetes client is closed")
            self._streams[stream.number] = stream
        try:
            self._link.send(stream.opening(), TIMEOUT)
        except UnavailableError:
            if not stream.lasting:
                self._forget(stream.number)
                raise
            # A watch begins once an engine is there.

    def _forget(self, number: int) -> None:
        with self._lock:
            self._streams.pop(number, None)

    # Called by the link.

    def _receive(self, message: FromEngine) -> None:
        if isinstance(message, Returned | Failed):
            with self._lock:
                future = self._calls.pop(message.id, None)
            if future is None:
                return
            if isinstance(message, Returned):
                future.set_result(message.result)
            else:
                future.set_exception(UnavailableError(f"a fault of ours: {message.message}"))
            return
        with self._lock:
            stream = self._streams.get(message.id)
        if stream is not None:
            stream.receive(message)

    def _found(self) -> None:
        with self._lock:
            streams = [stream for stream in self._streams.values() if stream.lasting]
        for stream in streams:
            try:
                self._link.send(stream.opening(), 0)
            except UnavailableError:
                return  # lost again; the next one is told

    def _lost(self) -> None:
        with self._lock:
            calls, self._calls = self._calls, {}
            streams = list(self._streams.values())
        for future in calls.values():
            future.set_exception(UnavailableError("the Kubernetes I/O process died"))
        for stream in streams:
            stream.lost()


def _query(label: Selector | None, field: Selector | None) -> tuple[tuple[str, str], ...]:
    named = (("labelSelector", label), ("fieldSelector", field))
    return tuple((name, _text(selector)) for name, selector in named if selector)


def _text(selector: Selector) -> str:
    if isinstance(selector, str):
        return selector
    return ",".join(f"{key}={value}" for key, value in selector.items())
