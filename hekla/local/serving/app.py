"""The HTTP side: an ASGI callable without a framework.

Reads a request whole, finds what it names, calls the verb, and answers with the bytes that
the storage keeps anyway. Watches and logs stream.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, Protocol, TypeVar

import orjson

from hekla.local.answers.forms import Form, Plain
from hekla.local.answers.paging import Page, Pages
from hekla.local.discovery import openapi
from hekla.local.discovery.groups import Discovery
from hekla.local.discovery.openapi import OpenApi
from hekla.local.kinds import errors, metadata
from hekla.local.kinds.registry import DEFINITIONS, NAMESPACES, PODS, Kind, Object, Registry
from hekla.local.rules import definitions
from hekla.local.serving import accepting, routing, streams
from hekla.local.serving.accesses import Accesses
from hekla.local.serving.faults import Faults
from hekla.local.serving.routing import Request, Target
from hekla.local.serving.strictness import Strictness
from hekla.local.serving.watches import Watches
from hekla.local.storage import selection
from hekla.local.storage.journal import JournalError
from hekla.local.storage.memory import Entry, Storage
from hekla.local.verbs import binding as bindings, drafts, eviction
from hekla.local.verbs.deletions import Deletion
from hekla.local.verbs.objects import Objects
from hekla.local.verbs.steps import Writing, at_once, carry_out
from hekla.local.webhooks.dispatch import Reviews, Webhooks

BODY_LIMIT: Final = 3 * 1024 * 1024
EVICTION: Final = "policy/v1"
_TOGETHER: Final = 200
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})

T = TypeVar("T")
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

log = logging.getLogger(__name__)


class Logs(Protocol):
    """Where the output of containers is found."""

    async def stream(self, pod: Entry, request: Request, send: streams.Body) -> None:
        """Send what one container has written, and what it will if asked to follow.

        Raises:
            ApiError: before anything was sent: there is no such container, or no output yet.
        """


class App:
    """Serves the API on whatever server calls it."""

    def __init__(
        self,
        *,
        registry: Registry,
        storage: Storage,
        objects: Objects,
        watches: Watches,
        faults: Faults,
        logs: Logs,
        webhooks: Webhooks,
    ) -> None:
        self._registry = registry
        self._storage = storage
        self._objects = objects
        self._watches = watches
        self._faults = faults
        self._logs = logs
        self._webhooks = webhooks
        self._accesses = Accesses()
        self._pages = Pages(time.monotonic)
        self._discovery = Discovery(registry)
        self._openapi = OpenApi(registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        sent = streams.Body(receive, send)
        try:
            try:
                await self._answer(await _read(scope, receive), sent)
            except errors.ApiError as error:
                await sent.json(error.code, error.status())
            except JournalError as error:
                await sent.json(500, errors.internal(str(error)).status())
        except streams.ClientGoneError:
            pass
        except Exception:  # one request that fails by our fault must not end the others
            log.exception("request failed", extra={"path": scope["path"]})
            if not sent.started:
                await sent.json(500, errors.internal("see the log").status())

    async def _answer(self, request: Request, sent: streams.Body) -> None:
        sent.warnings = request.warnings
        target = routing.find(self._registry, request.path)
        if target is None:
            await self._answer_page(request, sent)
            return
        self._accesses.note(target, request)
        if request.method == "GET":
            await self._read(target, request, sent)
        elif request.method == "DELETE" and target.name is None:
            await sent.whole(200, await self._delete_all(target, request))
        else:
            code, body = await self._write(target, request)
            await sent.whole(code, body)

    async def _answer_page(self, request: Request, sent: streams.Body) -> None:
        path = request.path.rstrip("/")
        if path in {"/healthz", "/readyz", "/livez"}:
            await sent.whole(200, b"ok", "text/plain")
        elif path == "/hekla/faults":
            if request.method == "POST":
                wrong = self._faults.change(request.json())
                if wrong:
                    raise errors.bad_request("; ".join(str(found) for found in wrong))
            await sent.json(200, self._faults.describe())
        elif path == "/hekla/accesses":
            await sent.json(200, self._accesses.describe())
        else:
            await self._answer_about(request, sent)

    async def _answer_about(self, request: Request, sent: streams.Body) -> None:
        """Answer with what the API says of itself."""
        path, found = request.path.strip("/"), None
        if request.method == "GET" and path.startswith(openapi.ALL):
            found = self._openapi.page(
                path,
                wanted_hash=request.query.get("hash", ""),
                compressed=b"gzip" in request.headers.get(b"accept-encoding", b""),
                known=request.headers.get(b"if-none-match", b"").decode("latin-1"),
            )
        elif request.method == "GET":
            found = self._discovery.page(path, request.accept)
        if found is None:
            raise errors.no_such_path(path)
        code = 200 if found.body else 304
        await sent.whole(code, found.body, found.content_type, found.headers)

    async def _read(self, target: Target, request: Request, sent: streams.Body) -> None:
        kind, namespace, name, subresource = target
        if subresource == "log" and name is not None:
            await self._logs.stream(
                self._objects.get(kind, namespace or "", name), request, sent
            )
        elif subresource not in {"", "status"}:
            raise errors.method_not_allowed(f"{kind.plural}/{subresource}")
        elif name is not None:
            entry = self._objects.get(kind, namespace or "", name)
            form = self._form(kind, request)
            await sent.whole(200, form.one(entry), form.content_type)
        elif request.flag("watch"):
            chosen, form = _selected(target, request), self._form(kind, request)
            await streams.watch(self._storage, self._watches, chosen, request, sent, form=form)
        else:
            form = self._form(kind, request)
            page = self._list(_selected(target, request), request)
            parts = []
            for part in form.many(page):
                parts.append(part)
                await asyncio.sleep(0)  # others get their turn in between
            await sent.whole(200, b"".join(parts), form.content_type)

    def _form(self, kind: Kind, request: Request) -> Form:
        return accepting.form_of(kind, request, self._objects.now)

    def _list(self, chosen: selection.Selection, request: Request) -> Page:
        version = self._storage.version
        wanted = request.number("resourceVersion") or 0
        if wanted > version:
            raise errors.too_new(wanted, version)
        if wanted != version and request.query.get("resourceVersionMatch") == "Exact":
            raise errors.expired(f"only the present state can be listed, not {wanted}")
        limit, token = request.number("limit"), request.query.get("continue", "")
        what = orjson.dumps(
            [
                chosen.kind.resource,
                chosen.namespace,
                *(request.query.get(key) for key in ("labelSelector", "fieldSelector")),
            ]
        ).decode()
        if token:
            return self._pages.following(what, token, limit)
        return self._pages.first(what, self._objects.select(chosen), version, limit)

    async def _write(self, target: Target, request: Request) -> tuple[int, bytes]:
        # Also a refusal waits: it may rest on a write that does not last yet.
        try:
            return await self._written(target, request)
        finally:
            await self._storage.settled()

    async def _delete_all(self, target: Target, request: Request) -> bytes:
        if target.kind.namespaced == (target.namespace is None) or target.kind is NAMESPACES:
            raise errors.method_not_allowed(f"all {target.kind.plural} at once")
        how = routing.deletion(request)
        chosen = self._objects.select(_selected(target, request))
        deleted: list[Entry] = []
        for begin in range(0, len(chosen), _TOGETHER):  # others get their turn in between
            for entry in chosen[begin : begin + _TOGETHER]:
                deleting = self._objects.deleting(entry.kind, entry.namespace, entry.name, how)
                try:
                    deleted.append((await self._carried_out(deleting, request)).entry)
                except errors.ApiError as error:
                    if error.code != 404:  # else somebody was faster
                        raise
            await self._storage.settled()
        return b"".join(Plain(target.kind).many(Page(deleted, self._storage.version)))

    async def _written(self, target: Target, request: Request) -> tuple[int, bytes]:
        kind, name, subresource = target.kind, target.name, target.subresource
        namespace = target.namespace or ""
        objects, dry_run = self._objects, request.dry_run
        code, answer, form = 200, b"", Plain(kind)
        told = Strictness(kind, request).told
        if kind is DEFINITIONS:
            request.warnings.extend(definitions.warnings(request.body))
        match request.method, subresource:
            case "POST", "" if name is None and (namespace or not kind.namespaced):
                body = request.json(nulls=drafts.keeps_nulls(kind))
                making = objects.creating(kind, namespace, body, dry_run=dry_run, told=told)
                code, answer = 201, form.one(await self._carried_out(making, request))
            case "POST", "binding" if name is not None:
                body, address = request.json(), (namespace, name)
                binding = bindings.binding(objects, address, body, dry_run=dry_run)
                # Kubernetes answers a Status here, which the official Python client chokes on.
                code, answer = 201, orjson.dumps(await self._carried_out(binding, request))
            case "POST", "eviction" if name is not None:
                body, how = _eviction(request, name)
                evicting = eviction.evicting(
                    self._storage, objects, (namespace, name), body, how
                )
                await self._carried_out(evicting, request)
                code, answer = 201, _success(kind, None)
            case "PUT", "" | "status" | "finalize" if name is not None:
                changing = objects.replacing(
                    kind,
                    namespace,
                    name,
                    request.json(nulls=drafts.keeps_nulls(kind)),
                    status=subresource == "status",
                    dry_run=dry_run,
                    told=told,
                )
                answer = form.one(await self._carried_out(changing, request))
            case "PATCH", "" | "status" if name is not None:
                changing = objects.patching(
                    kind,
                    namespace,
                    name,
                    request.patch(kind),
                    status=subresource == "status",
                    dry_run=dry_run,
                    told=told,
                )
                answer = form.one(await self._carried_out(changing, request))
            case "DELETE", "" if name is not None:
                deleting = objects.deleting(kind, namespace, name, routing.deletion(request))
                entry, gone = await self._carried_out(deleting, request)
                answer = _success(kind, entry) if gone and kind is not PODS else form.one(entry)
            case _:
                what = f"{kind.plural}/{subresource}" if subresource else kind.plural
                raise errors.method_not_allowed(what)
        return code, answer

    async def _carried_out(self, writing: Writing[T], request: Request) -> T:
        if not self._webhooks.any:
            return at_once(writing)
        return await carry_out(
            writing, Reviews(self._webhooks, request.options, request.warnings)
        )


def _selected(target: Target, request: Request) -> selection.Selection:
    return selection.parse(
        target.kind,
        target.namespace,
        request.query.get("labelSelector", ""),
        request.query.get("fieldSelector", ""),
    )


def _eviction(request: Request, name: str) -> tuple[Object, Deletion]:
    """An eviction, and how the pod that it is about is to be deleted."""
    body = request.json()
    if not isinstance(body, dict):
        raise errors.bad_request("the body must be a JSON object")
    given = body.get("metadata") or {}
    if (body.get("apiVersion", EVICTION), body.get("kind", "Eviction")) != (
        EVICTION,
        "Eviction",
    ):
        raise errors.bad_request(f"the body must be an Eviction of {EVICTION}")
    wrong = metadata.shape_error(given)
    if wrong:
        raise errors.bad_request(f"Eviction cannot be read: {wrong}")
    if given.get("name", name) != name:
        raise errors.bad_request(
            f"name in URL does not match name in Eviction object: {name}, {given['name']}"
        )
    body |= {"apiVersion": EVICTION, "kind": "Eviction"}
    return body, routing.deletion(request, body.get("deleteOptions") or {})


def _success(kind: Kind, entry: Entry | None) -> bytes:
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
    }
    if entry is not None:
        details = {"name": entry.name, "kind": kind.plural, "uid": entry.uid}
        status["details"] = details | ({"group": kind.group} if kind.group else {})
    return orjson.dumps(status)


async def _read(scope: Scope, receive: Receive) -> Request:
    headers: dict[bytes, bytes] = dict(scope["headers"])
    _check_sender(headers)
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length) > BODY_LIMIT:
        raise errors.too_large(BODY_LIMIT)
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise streams.ClientGoneError
        body += message.get("body", b"")
        if len(body) > BODY_LIMIT:
            raise errors.too_large(BODY_LIMIT)
        if not message.get("more_body"):
            break
    content_type = headers.get(b"content-type", b"").decode("latin-1")
    return Request(
        scope["method"],
        scope["path"],
        routing.read_query(scope["query_string"]),
        content_type.partition(";")[0].strip().lower(),
        body,
        headers.get(b"user-agent", b"").decode("latin-1"),
        headers.get(b"accept", b"").decode("latin-1"),
        headers,
    )


def _check_sender(headers: dict[bytes, bytes]) -> None:
    # There is no login on loopback, so a web page in the user's browser must not get in:
    # neither by itself (it sends Origin) nor by a name that it points here.
    host = headers.get(b"host", b"localhost").decode("latin-1")
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name not in _LOOPBACK or b"origin" in headers:
        raise errors.ApiError(403, "Forbidden", "only local programs may use this server")
