"""Between rows and API objects: what every kind's module needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import orjson
from pydantic import BaseModel

from hekla.api.meta import ObjectMeta
from hekla.domain import timestamps

LARGEST_PAGE: Final = 500


def to_json(model: BaseModel) -> dict[str, Any]:
    """A part of an object as it is stored: as in YAML, without what is absent."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def last_state(model: BaseModel, version: int) -> dict[str, Any]:
    """An object as it was when it was removed, at the version that its removal gave it."""
    state = to_json(model)
    state["metadata"]["resourceVersion"] = str(version)
    return state


def to_text(value: object) -> str:
    """A JSON parameter of a statement that casts it."""
    return orjson.dumps(value).decode()


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
) -> ObjectMeta:
    """An object's metadata from its columns."""
    return ObjectMeta.model_validate(
        {
            "name": name,
            "namespace": namespace,
            "uid": str(uid),
            "resourceVersion": str(version),
            "generation": generation,
            "creationTimestamp": timestamps.to_text(created_at),
            "deletionTimestamp": timestamps.to_text(deleting_at) if deleting_at else None,
            "labels": dict(labels) or None,
            "annotations": dict(annotations) or None,
            "ownerReferences": list(owners) or None,
        }
    )
