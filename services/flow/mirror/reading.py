"""Between custom resources, objects of the API, and rows as the mirror sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from hekla.api import decode
from hekla.api.job_flow import JobFlow
from hekla.api.job_template import JobTemplate
from hekla.domain.errors import PreconditionError
from hekla.domain.names import Key
from hekla.kube.mirror.custom import Custom, carried
from hekla.kube.mirror.deciding import Row, Source
from hekla.kube.mirror.door import Call, Content
from hekla.kube.mirror.rows import DeposedError
from hekla.store.database import Session
from hekla.store.objects import KUBE, to_json
from hekla.store.once import Asking

Kind = TypeVar("Kind", JobFlow, JobTemplate)

Hold = Callable[[Session], None]
"""Proves in a transaction that this process mirrors."""


def to_object(kind: type[Kind], custom: Custom) -> Kind:
    """The object that a custom resource holds, strictly read, without its status.

    Raises:
        InvalidError: it holds none.
    """
    raw = {key: value for key, value in custom.raw.items() if key != "status"}
    found = decode.decode(raw)
    assert isinstance(found, kind)
    kept = {
        "generation": custom.generation,
        "annotations": carried(custom.annotations) or None,
    }
    return found.model_copy(update={"metadata": found.metadata.model_copy(update=kept)})


def to_row(
    found: JobFlow | JobTemplate,
    *,
    origin: str,
    cr_uid: UUID | None,
    deleting: bool = False,
) -> Row:
    """A stored object as the mirror sees it."""
    meta = found.metadata
    return Row(
        key=Key(meta.namespace, meta.name),
        uid=meta.uid,
        source=Source.CUSTOM if origin == KUBE else Source.ROW,
        custom_uid=str(cr_uid) if cr_uid is not None else "",
        generation=meta.generation or 1,
        deleting=deleting,
        labels=meta.labels or {},
        annotations=meta.annotations or {},
        spec=to_json(found.spec),
        status=to_json(found.status),
    )


def to_content(found: JobFlow | JobTemplate) -> Content:
    """An admitted object as a custom resource."""
    meta = found.metadata
    spec: dict[str, Any] = to_json(found.spec)
    return Content(
        key=Key(meta.namespace, meta.name),
        spec=spec,
        labels=meta.labels or {},
        annotations=meta.annotations or {},
    )


def to_call(asking: Asking) -> Call:
    """A call, as custom resources tell of it."""
    return Call.of(asking.method, asking.id, asking.body)


def lead(hold: Hold, session: Session) -> None:
    """Make sure, until the transaction ends, that this process mirrors.

    Raises:
        DeposedError: it does not.
    """
    try:
        hold(session)
    except PreconditionError as error:
        raise DeposedError(str(error)) from error
