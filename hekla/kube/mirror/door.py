"""Writes that come by gRPC and are made to custom resources.

A write is answered when its row has it. What is posted or patched carries which call it is, and
a hash of what was asked: who asks again, also after a crash half way, finds that it is done.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from hekla.domain import names
from hekla.domain.errors import (
    ConflictError,
    DomainError,
    InvalidError,
    NotFoundError,
    UnavailableError,
)
from hekla.domain.names import Key
from hekla.kube import errors
from hekla.kube.client import KubeClient
from hekla.kube.mirror import merging
from hekla.kube.mirror.custom import Custom, carried, read
from hekla.kube.mirror.deciding import Row, Source
from hekla.kube.mirror.rows import Mirrored
from hekla.kube.mirror.standing import Installed
from hekla.kube.requests import Deletion, Patch, Reply
from hekla.kube.resources import Resource

TIMEOUT: Final = 5.0
"""Seconds for the API server to answer."""
PATIENCE: Final = 8.0
"""Seconds for a row to have what was written."""
TRIES: Final = 10
"""So often a change is tried that status writes come before."""
_LOOK: Final = 0.01
_LONGEST_LOOK: Final = 0.2

Found = TypeVar("Found")


class Call(NamedTuple):
    """Which call a write is."""

    id: str
    """Its method and request id; empty: it is always new."""
    digest: str
    """Of what it asks for."""

    @classmethod
    def of(cls, method: str, request_id: str, body: bytes) -> Call:
        """The call of a method with an id, which may be empty."""
        digest = hashlib.sha256(body).hexdigest()
        return cls(f"{method}/{request_id}" if request_id else "", digest)

    @property
    def marks(self) -> dict[str, str]:
        """The annotations that tell of it."""
        if not self.id:
            return {}
        return {names.REQUEST_ID: self.id, names.REQUEST_HASH: self.digest}

    def made(self, custom: Custom) -> bool:
        """Whether the custom resource is as this very call left it.

        Raises:
            InvalidError: the same id came with something else.
        """
        if not self.id or custom.annotations.get(names.REQUEST_ID) != self.id:
            return False
        if custom.annotations.get(names.REQUEST_HASH) != self.digest:
            method, _, id_ = self.id.partition("/")
            raise InvalidError(
                f"request_id {id_!r} was used for another {method}; choose a new one"
            )
        return True


@dataclass(frozen=True, slots=True)
class Content:
    """What a custom resource shall be."""

    key: Key
    spec: Mapping[str, Any]
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


class Gate(Protocol):
    """Whether custom resources are written; ``standing.Mirror`` is one."""

    installed: Installed

    def problem(self) -> str | None:
        """Why custom resources must not be written by anyone here, or None."""


class Door:
    """Writes custom resources of one kind, whose rows follow them."""

    def __init__(
        self, kube: KubeClient, kind: Mirrored, gate: Gate, *, patience: float = PATIENCE
    ) -> None:
        self._kube = kube
        self._kind = kind
        self._resource = kind.resource
        self._gate = gate
        self._patience = patience

    @property
    def used(self) -> bool:
        """Whether custom resources are to be written; else there are rows alone.

        Raises:
            UnavailableError: neither may be written now.
        """
        if self._gate.installed is Installed.NO:
            return False
        problem = self._gate.problem()
        if problem is not None:
            raise UnavailableError(problem)
        return True

    def post(self, content: Content, call: Call) -> Row:
        """Make a custom resource; the one that this call made before counts.

        Returns:
            The row that has it.

        Raises:
            AlreadyExistsError: there is another of that name.
            InvalidError, DeniedError: the API server refuses it.
            UnavailableError: it does not answer, or the row does not have it in time.
        """
        metadata: dict[str, Any] = {
            "name": content.key.name,
            "labels": dict(content.labels),
            "annotations": {**content.annotations, **call.marks},
        }
        if content.key.namespace:
            metadata["namespace"] = content.key.namespace
        body = {
            "apiVersion": self._resource.api_version,
            "kind": self._resource.kind,
            "metadata": metadata,
            "spec": dict(content.spec),
        }
        [reply] = self._kube.create_many(self._resource, [body], timeout=TIMEOUT)
        if reply.status == HTTPStatus.CONFLICT and reply.object is not None:
            there = read(self._resource, reply.object)
            if call.made(there):
                return self._stored(there)
        return self._stored(self._written(reply))

    def change(self, content: Content, call: Call, row: Row) -> Row:
        """Change the custom resource of a row, as it is known.

        Returns:
            The row that has it.

        Raises:
            NotFoundError: it is gone.
            ConflictError: it is another one, or somebody changed it.
            InvalidError, DeniedError: the API server refuses it.
            UnavailableError: it does not answer, or the row does not have it in time.
        """
        for _ in range(TRIES):
            there = self._there(content.key)
            if call.made(there):
                return self._stored(there)
            if (there.uid, there.generation) != (row.custom_uid, row.generation):
                break
            [reply] = self._kube.patch_many(
                [_change(self._resource, there, content, call)], timeout=TIMEOUT
            )
            # A status that was written meanwhile is no change that anybody asked for.
            if reply.status != HTTPStatus.CONFLICT:
                return self._stored(self._written(reply))
        raise ConflictError(f"{self._named(content.key)} changed since it was read; try again")

    def _there(self, key: Key) -> Custom:
        reply = self._kube.get(self._resource, key.namespace or None, key.name, timeout=TIMEOUT)
        return self._written(reply)

    def delete(self, row: Row) -> None:
        """Delete the custom resource of a row; return when the row is gone, or going.

        Raises:
            InvalidError, DeniedError: the API server refuses it.
            UnavailableError: it does not answer, or the row does not go in time.
        """
        key, uid = row.key, row.custom_uid
        deletion = Deletion(
            self._resource, key.namespace or None, key.name, uid, propagation="Background"
        )
        [reply] = self._kube.delete_many([deletion], timeout=TIMEOUT)
        if not reply.ok and reply.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            raise _error(reply)

        def gone() -> bool:
            now = self._row(key)
            return now is None or now.custom_uid != uid or now.deleting

        self._wait(gone, key)

    def tied(self, key: Key) -> Row:
        """The row of that name, once it follows a custom resource.

        Raises:
            NotFoundError: there is none.
            UnavailableError: it is not given a custom resource in time.
        """

        def found() -> Row | None:
            row = self._row(key)
            if row is None:
                raise NotFoundError(f"{self._named(key)} does not exist")
            return row if row.source is Source.CUSTOM else None

        return self._wait(found, key)

    def _stored(self, custom: Custom) -> Row:
        """The row that has what was written, or something newer."""

        def found() -> Row | None:
            row = self._row(custom.key)
            if row is None or row.custom_uid != custom.uid:
                return None
            newer = row.generation > custom.generation
            return row if newer or not self._kind.rules.behind(custom, row) else None

        return self._wait(found, custom.key)

    def _row(self, key: Key) -> Row | None:
        return self._kind.rows.read([key]).get(key)

    def _wait(self, look: Callable[[], Found | None], key: Key) -> Found:
        """What ``look`` gives, as soon as it gives something."""
        by = time.monotonic() + self._patience
        pause = _LOOK
        while not (found := look()):
            if time.monotonic() > by:
                raise UnavailableError(
                    f"{self._named(key)} was written to Kubernetes and is not stored yet, after"
                    f" {self._patience:.0f} s; ask again, or see what /readyz says"
                )
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_LOOK)
        return found

    def _written(self, reply: Reply) -> Custom:
        """The object of an answer that is good.

        Raises:
            DomainError: it is not.
        """
        if reply.ok and reply.object is not None:
            return read(self._resource, reply.object)
        raise _error(reply)

    def _named(self, key: Key) -> str:
        name = str(key) if key.namespace else key.name
        return f"{self._resource.kind} {name}"


def _change(resource: Resource, there: Custom, content: Content, call: Call) -> Patch:
    """What makes a custom resource, at this version, into what it shall be."""
    shown = {"labels": dict(there.labels), "annotations": carried(there.annotations)}
    wanted = {"labels": dict(content.labels), "annotations": dict(content.annotations)}
    metadata = merging.patch(shown, wanted) or {}
    metadata["annotations"] = {**metadata.get("annotations", {}), **call.marks}
    metadata |= {"uid": there.uid, "resourceVersion": str(there.version)}
    body: dict[str, Any] = {"metadata": metadata}
    changes = merging.patch(there.spec, content.spec)
    if changes is not None:
        body["spec"] = changes
    return Patch(resource, there.key.namespace or None, there.key.name, body)


def _error(reply: Reply) -> DomainError:
    """What a refusal means for who called."""
    if reply.status == 0:
        return UnavailableError(f"Kubernetes: {reply.message or reply.reason}")
    return errors.error_for(reply.status, reply.reason, reply.message)
