"""Between custom resources, rows as the mirror sees them, and objects."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, TypeVar
from uuid import UUID

from hekla.api import decode
from hekla.api.bounds import violations
from hekla.api.job import Job, JobStatus
from hekla.api.pod_group import PodGroup
from hekla.api.queue import Queue
from hekla.domain import timestamps
from hekla.domain.errors import InvalidError, Violation
from hekla.domain.names import Key
from hekla.domain.phases import FINISHED
from hekla.kube.mirror.custom import Custom, carried
from hekla.kube.mirror.deciding import Row, Source
from hekla.kube.mirror.door import Content
from hekla.store.jobs import StoredJob
from hekla.store.mirrored import Born, Mirrored
from hekla.store.objects import KUBE, to_json

Kind = TypeVar("Kind", Job, PodGroup, Queue)

_KEPT: Final = ("name", "namespace", "uid", "labels", "ownerReferences")


def to_object(kind: type[Kind], custom: Custom) -> Kind:
    """The object that a custom resource holds, strictly read, without its status.

    Raises:
        InvalidError: it holds none.
    """
    meta = custom.raw["metadata"]
    kept: dict[str, Any] = {key: meta[key] for key in _KEPT if meta.get(key) is not None}
    annotations = carried(custom.annotations)
    if annotations:
        kept["annotations"] = annotations
    raw = {key: value for key, value in custom.raw.items() if key != "status"}
    found = decode.decode(raw | {"metadata": kept})
    assert isinstance(found, kind)
    return found


def to_uid(custom: Custom) -> UUID:
    """The uid of a custom resource.

    Raises:
        InvalidError: it is none that a row can have.
    """
    try:
        return UUID(custom.uid)
    except ValueError:
        message = f"must be a UUID, is {custom.uid!r}"
        raise InvalidError.of([Violation("metadata.uid", message)]) from None


def to_birth(custom: Custom) -> datetime:
    """When a custom resource was made.

    Raises:
        InvalidError: it does not say so.
    """
    return timestamps.from_text(str(custom.raw["metadata"].get("creationTimestamp") or ""))


def born(custom: Custom, found: Job | PodGroup) -> Born:
    """What is stored of a custom resource that is new, and holds this object.

    Raises:
        InvalidError: its uid is none that a row can have.
    """
    return Born(
        uid=to_uid(custom),
        generation=max(1, custom.generation),
        object=found,
        created_at=to_birth(custom),
        ended=_ended(custom) if isinstance(found, Job) else None,
    )


def _ended(custom: Custom) -> JobStatus | None:
    """The status of a job that ran to its end before anybody here knew it.

    Its row was lost with a database, or somebody else ran it: it must not run again.
    """
    try:
        status = decode.read_as(JobStatus, custom.status)
    except InvalidError:
        return None
    return status if status.state.phase in FINISHED and not violations(status) else None


def to_row(found: Mirrored, *, owner: dict[str, Any] | None = None, wanted: bool = True) -> Row:
    """A row as the mirror decides by it."""
    return Row(
        key=found.key,
        uid=str(found.uid),
        source=Source.CUSTOM if found.origin == KUBE else Source.ROW,
        custom_uid=str(found.custom_uid) if found.custom_uid is not None else "",
        generation=found.generation,
        deleting=found.deleting,
        wanted=wanted,
        labels=found.labels,
        annotations=found.annotations,
        owner=owner,
        spec=found.spec,
        status=found.status,
    )


def job_to_content(job: Job) -> Content:
    """An admitted job as its custom resource shall be."""
    meta = job.metadata
    return Content(
        key=Key(meta.namespace, meta.name),
        spec=to_json(job.spec),
        labels=meta.labels or {},
        annotations=meta.annotations or {},
    )


def stored_to_row(stored: StoredJob) -> Row:
    """A job that was read whole, as the mirror decides by it."""
    meta = stored.job.metadata
    return Row(
        key=stored.key,
        uid=str(stored.uid),
        source=Source.CUSTOM if stored.origin == KUBE else Source.ROW,
        custom_uid=str(stored.custom_uid) if stored.custom_uid is not None else "",
        generation=meta.generation or 1,
        deleting=stored.deleting_at is not None,
        labels=meta.labels or {},
        annotations=meta.annotations or {},
        spec=to_json(stored.job.spec),
    )
