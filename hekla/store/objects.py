"""Between rows and API objects: what every kind's module needs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol, TypeVar
from uuid import UUID

import orjson
from pydantic import BaseModel, ValidationError
from sqlalchemy import ARRAY, ColumnElement, Uuid, any_, literal

from hekla.domain import timestamps

log = logging.getLogger(__name__)


class HasUid(Protocol):
    """A row that is an object."""

    @property
    def uid(self) -> Any:
        """Its key."""


Row = TypeVar("Row", bound=HasUid)
Object = TypeVar("Object")

Document = dict[str, Any]
"""An object as in YAML."""

LARGEST_PAGE: Final = 500
RPC: Final = "rpc"
"""The origin of an object whose source is its row."""
KUBE: Final = "kube"
"""The origin of an object whose source is a custom resource."""


class Place(NamedTuple):
    """Where a page of a list ended."""

    created_at: datetime
    uid: UUID


def to_json(model: BaseModel) -> dict[str, Any]:
    """A part of an object as it is stored: as in YAML, without what is absent."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def any_of(uids: Sequence[str]) -> ColumnElement[Any]:
    """Any of these uids, as one parameter however many there are."""
    return any_(literal([UUID(uid) for uid in uids], ARRAY(Uuid())))


def last_state(model: BaseModel, version: int) -> dict[str, Any]:
    """An object as it was when it was removed, at the version that its removal gave it."""
    state = to_json(model)
    state["metadata"]["resourceVersion"] = str(version)
    return state


def to_text(value: object) -> str:
    """A JSON parameter of a statement that casts it."""
    return orjson.dumps(value).decode()


def readable(rows: Iterable[Row], read: Callable[[Row], Object]) -> dict[str, Object]:
    """Objects by uid; one that this version cannot read is logged, and hides no other."""
    found = {}
    for row in rows:
        try:
            found[str(row.uid)] = read(row)
        except ValidationError:
            log.exception("stored object cannot be read", extra={"uid": str(row.uid)})
    return found


def metadata(
    *,
    uid: UUID,
    name: str,
    version: int,
    generation: int,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    created_at: datetime,
    namespace: str = "",
    deleting_at: datetime | None = None,
    owners: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """An object's metadata from its columns, as in YAML, without what is absent."""
    found: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": str(uid),
        "resourceVersion": str(version),
        "generation": generation,
        "creationTimestamp": timestamps.to_text(created_at),
    }
    if deleting_at is not None:
        found["deletionTimestamp"] = timestamps.to_text(deleting_at)
    if labels:
        found["labels"] = labels
    if annotations:
        found["annotations"] = annotations
    if owners:
        found["ownerReferences"] = list(owners)
    return found
