"""What a scripted API server keeps: see ``kube_server``."""

from __future__ import annotations

import copy
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, NamedTuple

import orjson


class Where(NamedTuple):
    """What a path is about."""

    root: str
    namespace: str | None
    plural: str
    name: str | None
    part: str | None


def where(path: str) -> Where:
    """Take a path apart: ``/api/v1/namespaces/ns/pods/name/status``."""
    pieces = path.strip("/").split("/")
    skip = 2 if pieces[0] == "api" else 3
    root, rest = "/" + "/".join(pieces[:skip]), pieces[skip:]
    namespace = None
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    rest += [""] * (3 - len(rest))
    return Where(root, namespace, rest[0], rest[1] or None, rest[2] or None)


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asked."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


class Event(NamedTuple):
    version: int
    place: Where
    line: bytes


class RefusedError(Exception):
    def __init__(self, status: int, reason: str, message: str = "") -> None:
        super().__init__(message or reason)
        self.status = status
        self.reason = reason


class Objects:
    """Objects by path, under one resource version, and the events of what became of them."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.version = 100
        self.compacted = 0
        """Who has not got the events up to this version is too late."""
        self._objects: dict[str, dict[str, Any]] = {}
        self._events: list[Event] = []

    def told(self) -> None:
        """There is one event more."""

    def put(self, path: str, item: dict[str, Any]) -> dict[str, Any]:
        """Create or replace the object at ``path``, as somebody else would."""
        with self.lock:
            return self._store(path, copy.deepcopy(item))

    def remove(self, path: str) -> None:
        """Delete the object at ``path``, as somebody else would."""
        with self.lock:
            self._delete(path)

    def object(self, path: str) -> dict[str, Any] | None:
        with self.lock:
            return copy.deepcopy(self._objects.get(path))

    @contextmanager
    def forgetting(self) -> Iterator[None]:
        """Forget all events up to the end of the block: who has not got them is too late."""
        with self.lock:
            yield
            self.compacted = self.version
            self._events.clear()

    def answer(self, request: Request) -> tuple[int, bytes]:
        place = where(request.path)
        match request.method:
            case "GET" if place.name is None:
                return 200, self._list(place, request.query)
            case "GET":
                return 200, orjson.dumps(self._find(request.path))
            case "POST" if place.part == "binding":
                return self._bind(request, place)
            case "POST":
                name = request.body["metadata"].get("name") or f"generated-{self.version}"
                path = f"{request.path}/{name}"
                if path in self._objects:
                    raise RefusedError(409, "AlreadyExists", f'"{name}" already exists')
                return 201, orjson.dumps(self._store(path, request.body))
            case "PATCH":
                path = request.path.removesuffix("/status")
                merged = _merged(self._find(path), request.body)
                return 200, orjson.dumps(self._store(path, merged))
            case "DELETE":
                return self._remove(request)
        raise RefusedError(405, "MethodNotAllowed")

    def _find(self, path: str) -> dict[str, Any]:
        if path not in self._objects:
            raise RefusedError(404, "NotFound", f"{path} not found")
        return self._objects[path]

    def _bind(self, request: Request, place: Where) -> tuple[int, bytes]:
        path = request.path.removesuffix("/binding")
        pod = self._find(path)
        uid = request.body["metadata"].get("uid")
        if uid and uid != pod["metadata"]["uid"]:
            raise RefusedError(409, "Conflict", "uid mismatch")
        if pod.get("spec", {}).get("nodeName"):
            raise RefusedError(
                409, "Conflict", f"pod {place.name} is already assigned to a node"
            )
        node = request.body["target"]["name"]
        self._store(path, _merged(pod, {"spec": {"nodeName": node}}))
        return 201, orjson.dumps({"kind": "Status", "status": "Success"})

    def _remove(self, request: Request) -> tuple[int, bytes]:
        found = self._find(request.path)
        uid = ((request.body or {}).get("preconditions") or {}).get("uid")
        if uid and uid != found["metadata"]["uid"]:
            raise RefusedError(409, "Conflict", "uid mismatch")
        if found["metadata"].get("finalizers"):
            mark = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
            return 200, orjson.dumps(self._store(request.path, _merged(found, mark)))
        return 200, orjson.dumps(self._delete(request.path))

    def _store(self, path: str, item: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        old = self._objects.get(path)
        place = where(path)
        metadata = item.setdefault("metadata", {})
        metadata["name"] = place.name
        if place.namespace:
            metadata["namespace"] = place.namespace
        metadata["uid"] = old["metadata"]["uid"] if old else str(uuid.uuid4())
        metadata["resourceVersion"] = str(self.version)
        self._objects[path] = item
        self._tell("MODIFIED" if old else "ADDED", place, item)
        return item

    def _delete(self, path: str) -> dict[str, Any]:
        item = self._objects.pop(path)
        self.version += 1
        item = _merged(item, {"metadata": {"resourceVersion": str(self.version)}})
        self._tell("DELETED", where(path), item)
        return item

    def _tell(self, kind: str, place: Where, item: dict[str, Any]) -> None:
        line = orjson.dumps({"type": kind, "object": item}) + b"\n"
        self._events.append(Event(self.version, place, line))
        self.told()

    def _list(self, place: Where, query: dict[str, str]) -> bytes:
        limit, after, version = int(query.get("limit") or 0), "", str(self.version)
        if token := query.get("continue"):
            version, _, after = token.partition("/")
            if int(version) < self.compacted:
                raise RefusedError(410, "Expired", "the list is too old to go on with")
        paths = sorted(
            path for path in self._objects if _within(where(path), place) and path > after
        )
        page = paths[:limit] if limit else paths
        metadata = {"resourceVersion": version}
        if len(page) < len(paths):
            metadata["continue"] = f"{version}/{page[-1]}"
        items = [self._objects[path] for path in page]
        return orjson.dumps({"kind": "List", "metadata": metadata, "items": items})

    def first_events(self, place: Where) -> Iterator[bytes]:
        """Lines that tell of all objects, and a bookmark."""
        for path, item in sorted(self._objects.items()):
            if _within(where(path), place):
                yield orjson.dumps({"type": "ADDED", "object": item}) + b"\n"
        mark = {
            "annotations": {"k8s.io/initial-events-end": "true"},
            "resourceVersion": str(self.version),
        }
        yield orjson.dumps({"type": "BOOKMARK", "object": {"metadata": mark}}) + b"\n"

    def since(self, sent: int, place: Where) -> Iterator[bytes]:
        """Lines of newer events, the newest first."""
        newer = takewhile(lambda event: event.version > sent, reversed(self._events))
        return (event.line for event in newer if _within(event.place, place))


def _within(one: Where, asked: Where) -> bool:
    return (one.root, one.plural) == (asked.root, asked.plural) and (
        asked.namespace in {None, one.namespace}
    )


def _merged(item: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    merged = dict(item)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = _merged(merged[key], value)
        else:
            merged[key] = value
    return merged
