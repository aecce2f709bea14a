"""Gives a job of the first door its custom resource, before its pods: they need an owner.

The row was there first. The custom resource has the job's name and is marked with the row's
uid, so that making it again finds it, whoever made it and whether or not that was noted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Protocol
from uuid import UUID

from hekla import failpoint
from hekla.domain.errors import DomainError
from hekla.kube.client import KubeClient
from hekla.kube.mirror import bodies
from hekla.kube.mirror.custom import read
from hekla.kube.mirror.standing import Installed
from hekla.kube.requests import Reply
from hekla.kube.resources import JOBFLOWS, JOBS
from hekla.store.jobs import StoredJob
from services.controller.mirror.reading import stored_to_row


class Standing(Protocol):
    """Whether custom resources are to be reckoned with; a ``Mirror`` knows."""

    @property
    def installed(self) -> Installed:
        """Whether there are any."""

    def problem(self) -> str | None:
        """Why none must be written, or None."""


@dataclass(frozen=True, slots=True)
class Owned:
    """What a job's pods belong to."""

    uid: UUID | None = None
    """The custom resource's; None without one."""
    refusal: tuple[str, str] | None = None
    """Reason and message, if pods must not be made now."""
    unknown: bool = False
    """Nobody knows yet: try again."""


NOBODY = Owned()


class Owning:
    """Where custom resources are installed, a job has one while its pods are made."""

    def __init__(self, kube: KubeClient, mirror: Standing) -> None:
        self._kube = kube
        self._mirror = mirror

    def is_settled(self, stored: StoredJob) -> bool:
        """Whether what pods of this job belong to is known, or that they belong to nothing."""
        if self._mirror.installed is Installed.YES:
            return stored.custom_uid is not None and self._mirror.problem() is None
        return self._mirror.installed is Installed.NO

    def of(self, stored: StoredJob, *, timeout: float) -> Owned:
        """What pods of this job belong to; the custom resource is made if it has none."""
        if self._mirror.installed is not Installed.YES:
            return NOBODY if self._mirror.installed is Installed.NO else Owned(unknown=True)
        problem = self._mirror.problem()
        if problem is not None:
            return Owned(refusal=("NotMirrored", problem))
        if stored.custom_uid is not None:
            return Owned(stored.custom_uid)
        try:
            row = replace(stored_to_row(stored), owner=self._flow_of(stored, timeout))
            body = bodies.creation(JOBS, row, status_apart=True)
            [reply] = self._kube.create_many(JOBS, [body], timeout=timeout)
        except DomainError:
            return Owned(unknown=True)
        failpoint.hit("controller.custom-made")
        return self._read(stored, reply)

    def _flow_of(self, stored: StoredJob, timeout: float) -> dict[str, Any] | None:
        """The owner reference to the flow that a job is a step of, if that is there.

        Kubernetes deletes what belongs to an object that it cannot find.

        Raises:
            DomainError: it is not known.
        """
        for owner in stored.job.metadata.owner_references or ():
            if (owner.api_version, owner.kind) == (JOBFLOWS.api_version, JOBFLOWS.kind):
                name, uid = owner.name or "", owner.uid or ""
                reply = self._kube.get(JOBFLOWS, stored.key.namespace, name, timeout=timeout)
                if reply.status == HTTPStatus.NOT_FOUND:
                    return None
                flow = read(JOBFLOWS, reply.found())
                if flow.uid != uid or flow.deleting:
                    return None
                return bodies.owner_reference(JOBFLOWS.api_version, JOBFLOWS.kind, name, uid)
        return None

    def _read(self, stored: StoredJob, reply: Reply) -> Owned:
        if reply.status == 0:
            return Owned(unknown=True)
        if not reply.ok and reply.status != HTTPStatus.CONFLICT:
            if reply.status == HTTPStatus.NOT_FOUND:
                message = f"namespace {stored.key.namespace} does not exist"
                return Owned(refusal=("NamespaceNotFound", message))
            message = f"the custom resource of job {stored.key} was refused: {reply.message}"
            return Owned(refusal=("FailedCreate", message))
        try:
            custom = read(JOBS, reply.object or {})
        except ValueError:
            return Owned(unknown=True)
        if custom.mark == str(stored.uid) and not custom.deleting:
            return Owned(UUID(custom.uid))
        # One of an earlier job of that name goes; one that somebody made waits for the name.
        return Owned(unknown=True) if custom.mark or custom.deleting else NOBODY
